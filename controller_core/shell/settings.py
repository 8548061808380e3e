"""Settings of a controller process, validated before anything is opened.

The command line is in steward.controller_command; settings that brokers report are `active.Defaults`.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from kafka_node.security.settings import SecuritySettings, TlsFiles

DEFAULT_SESSION_TIMEOUT_MS = 6_000
"""Time until ZooKeeper ends the session of a dead controller. Kafka's brokers use 18 s; a controller should be replaced sooner."""
DEFAULT_METRICS_PORT = 9404
"""Port of `/metrics`, `/readyz` and `/healthz`, as in the examples of the Prometheus JMX exporter."""

_LISTENER = re.compile(
    r"(?P<name>[A-Za-z0-9_.-]{1,64})=(?:(?P<protocol>(?:SASL_)?(?:PLAINTEXT|SSL))://)?"
    r"(?P<host>\[[0-9A-Fa-f:]+\]|[^\s:,=\[\]]*):(?P<port>\d{1,5})"
    r"(?:,(?P<advertised_host>\[[0-9A-Fa-f:]+\]|[^\s:,=\[\]]+):(?P<advertised_port>\d{1,5}))?"
)
MAX_PORT = 65_535
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Listener:
    """One of the controller's listeners: Kafka's listener name, bound address and advertised address."""

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int
    security_protocol: str = "PLAINTEXT"


def parse_listener(text: str) -> Listener:
    """Read `NAME=[PROTOCOL://]HOST:PORT[,ADVERTISED_HOST:ADVERTISED_PORT]`. Raises ValueError.

    >>> parse_listener("CLIENT=0.0.0.0:9092,controller.example:9092").advertised_host
    'controller.example'
    """
    match = _LISTENER.fullmatch(text)
    if match is None:
        raise ValueError(
            f"listener {text!r} is not NAME=HOST:PORT or NAME=HOST:PORT,ADVERTISED_HOST:ADVERTISED_PORT, with SSL://, "
            "SASL_PLAINTEXT:// or SASL_SSL:// before HOST for another security protocol than PLAINTEXT"
        )
    host, port = match["host"].strip("[]"), int(match["port"])
    advertised_host = (match["advertised_host"] or host).strip("[]")
    advertised_port = int(match["advertised_port"] or port)
    if max(port, advertised_port) > MAX_PORT:
        raise ValueError(f"listener {text!r} has a port over {MAX_PORT}")
    if advertised_host in {"", "0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
        raise ValueError(f"listener {text!r} binds all addresses: add the advertised address after a comma")
    protocol = match["protocol"] or "PLAINTEXT"
    return Listener(match["name"].upper(), host, port, advertised_host, advertised_port, protocol)


@dataclass(frozen=True, slots=True)
class LeaderBalance:
    """Settings of Kafka's auto leader rebalance, with Kafka's defaults and limits."""

    is_enabled: bool = True
    """`auto.leader.rebalance.enable`."""
    percentage: int = 10
    """`leader.imbalance.per.broker.percentage`: share of its preferred leaderships that a broker may lack. Any 32-bit integer, as
    in Kafka: at 0 and below every leader is moved back, from 100 on none."""
    check_interval_seconds: int = 300
    """`leader.imbalance.check.interval.seconds`: at least 1."""

    def __post_init__(self) -> None:
        """Validate like Kafka's ConfigDef. Raises ValueError with Kafka's message."""
        _check("leader.imbalance.per.broker.percentage", self.percentage, INT32_MIN, INT32_MAX)
        _check("leader.imbalance.check.interval.seconds", self.check_interval_seconds, 1, INT64_MAX)


def _check(name: str, value: int, lowest: int, highest: int) -> None:
    if value < lowest:
        raise ValueError(f"Invalid value {value} for configuration {name}: Value must be at least {lowest}")
    if value > highest:
        raise ValueError(f"Invalid value {value} for configuration {name}: Value must be no more than {highest}")


@dataclass(frozen=True, slots=True)
class AuthorizerSettings:
    """Settings of Kafka's authorizer; the ACLs themselves are in ZooKeeper."""

    is_enabled: bool | None = None
    """None: not set. Then there is no authorizer, and the controller may not log in at brokers: a relayed request could abuse that."""
    super_users: frozenset[str] = frozenset()
    """`super.users`, each TYPE:NAME. Brokers must be among them, or have an ACL for CLUSTER_ACTION."""
    allow_everyone_if_no_acl: bool = False
    """`allow.everyone.if.no.acl.found`."""

    def __post_init__(self) -> None:
        wrong = sorted(user for user in self.super_users if not all(user.partition(":")))
        if wrong:
            raise ValueError(f"super user {wrong[0]!r} is not TYPE:NAME, such as User:admin")
        if not self.is_enabled and (self.super_users or self.allow_everyone_if_no_acl):
            raise ValueError("super users and allow.everyone.if.no.acl.found have no effect without the authorizer")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSecurity:
    """Security of the connection to ZooKeeper, and ACLs of znodes that the controller creates: names and files."""

    tls: TlsFiles | None = None
    """None: the connection has no TLS."""
    digest_file: Path | None = None
    """File with one line USER:PASSWORD: the controller's identity with the scheme digest."""
    set_acl: bool = False
    """Kafka's zookeeper.set.acl. Brokers need the same identity; otherwise they cannot change znodes that the controller creates."""

    def __post_init__(self) -> None:
        shows_certificate = self.tls is not None and self.tls.certificate is not None
        if self.set_acl and self.digest_file is None and not shows_certificate:
            raise ValueError("zookeeper.set.acl needs a digest for ZooKeeper, or a client certificate")


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Settings of one controller process."""

    zookeeper: str
    """`host:port,host:port/chroot`."""
    controller_id: int
    listeners: tuple[Listener, ...]
    """One for each listener of the brokers, with the same name, so that every client finds the controller."""
    inter_broker_listener: str
    """Name of the listener for requests to and from brokers."""
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    rack: str | None = None
    metrics_host: str = "127.0.0.1"
    metrics_port: int = DEFAULT_METRICS_PORT
    leader_balance: LeaderBalance = field(default_factory=LeaderBalance)
    security: SecuritySettings = field(default_factory=SecuritySettings)
    authorizer: AuthorizerSettings = field(default_factory=AuthorizerSettings)
    ignore_topic_policies: bool = False
    """Serve clusters whose brokers set create.topic.policy.class.name or alter.config.policy.class.name, and ignore the policies."""
    zookeeper_security: ZooKeeperSecurity = field(default_factory=ZooKeeperSecurity)

    def __post_init__(self) -> None:
        names = [listener.name for listener in self.listeners]
        if not names:
            raise ValueError("at least one listener is needed: brokers and clients connect to it")
        if len(set(names)) != len(names):
            raise ValueError(f"duplicate listener names: {', '.join(names)}")
        if self.inter_broker_listener not in names:
            raise ValueError(
                f"the inter-broker listener {self.inter_broker_listener} is not among the listeners {', '.join(names)}"
            )
        self.security.check_listeners(listener.security_protocol for listener in self.listeners)
        if self.security.logs_in_at_brokers and self.authorizer.is_enabled is None:
            raise ValueError(
                "relayed requests reach brokers under the controller's login: set --authorizer to check them against ACLs, or "
                "--no-authorizer to give all clients of the listeners the permissions of the controller"
            )
        if self.controller_id < 0:
            raise ValueError(f"the controller's id is {self.controller_id}; it must be at least 0")
