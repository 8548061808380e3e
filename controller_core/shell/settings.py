"""What a controller process is told at its start, checked before anything is opened.

Leaves out the command line (steward) and what brokers tell (active.Defaults).
"""

import re
from dataclasses import dataclass, field

from controller_core.shell.zookeeper.security import ZooKeeperSecurity
from kafka_node.security.settings import SecuritySettings

DEFAULT_SESSION_TIMEOUT_MS = 6_000
"""How long a dead controller keeps its place. Kafka's brokers take 18 s; a controller should be missed for less."""
DEFAULT_METRICS_PORT = 9404
"""Where `/metrics`, `/readyz` and `/healthz` are served: the port of the Prometheus JMX exporter's examples."""

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
    """One of the controller's listeners: Kafka's listener name, where it listens, and where it says that it is."""

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
            "SASL_PLAINTEXT:// or SASL_SSL:// before HOST where it speaks that"
        )
    host, port = match["host"].strip("[]"), int(match["port"])
    advertised_host = (match["advertised_host"] or host).strip("[]")
    advertised_port = int(match["advertised_port"] or port)
    if max(port, advertised_port) > MAX_PORT:
        raise ValueError(f"listener {text!r} names a port over {MAX_PORT}")
    if advertised_host in {"", "0.0.0.0", "::"}:  # noqa: S104 - looked for, not bound
        raise ValueError(f"listener {text!r} listens on every address: say after a comma under which one it is reached")
    protocol = match["protocol"] or "PLAINTEXT"
    return Listener(match["name"].upper(), host, port, advertised_host, advertised_port, protocol)


@dataclass(frozen=True, slots=True)
class LeaderBalance:
    """Kafka's settings of the auto leader rebalance, with its defaults and its limits."""

    is_enabled: bool = True
    """`auto.leader.rebalance.enable`."""
    percentage: int = 10
    """`leader.imbalance.per.broker.percentage`: how much of its leaderships a broker may lack. Any 32-bit integer, as in
    Kafka: at 0 and below every leader is brought back, from 100 on none is."""
    check_interval_seconds: int = 300
    """`leader.imbalance.check.interval.seconds`: at least 1."""

    def __post_init__(self) -> None:
        """Refuse what Kafka's own ConfigDef refuses. Raises ValueError, in its words."""
        _check("leader.imbalance.per.broker.percentage", self.percentage, INT32_MIN, INT32_MAX)
        _check("leader.imbalance.check.interval.seconds", self.check_interval_seconds, 1, INT64_MAX)


def _check(name: str, value: int, lowest: int, highest: int) -> None:
    if value < lowest:
        raise ValueError(f"Invalid value {value} for configuration {name}: Value must be at least {lowest}")
    if value > highest:
        raise ValueError(f"Invalid value {value} for configuration {name}: Value must be no more than {highest}")


@dataclass(frozen=True, slots=True)
class AuthorizerSettings:
    """Kafka's settings of its authorizer; the ACLs themselves are in ZooKeeper."""

    is_enabled: bool | None = None
    """None: nobody said; then there is none, and there is no login at brokers that a relayed request could abuse."""
    super_users: frozenset[str] = frozenset()
    """`super.users`, each TYPE:NAME; brokers have to be among them, or have an ACL for CLUSTER_ACTION."""
    allow_everyone_if_no_acl: bool = False
    """`allow.everyone.if.no.acl.found`."""

    def __post_init__(self) -> None:
        wrong = sorted(user for user in self.super_users if not all(user.partition(":")))
        if wrong:
            raise ValueError(f"super user {wrong[0]!r} is not TYPE:NAME, such as User:admin")
        if not self.is_enabled and (self.super_users or self.allow_everyone_if_no_acl):
            raise ValueError("super users and what is allowed without an ACL mean nothing without the authorizer")


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Settings of one controller process."""

    zookeeper: str
    """`host:port,host:port/chroot`."""
    controller_id: int
    listeners: tuple[Listener, ...]
    """One for each listener that the brokers have, by the same names, so that every client finds the controller."""
    inter_broker_listener: str
    """The listener by which brokers are told what to do, and by which they ask."""
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    rack: str | None = None
    metrics_host: str = "127.0.0.1"
    metrics_port: int = DEFAULT_METRICS_PORT
    leader_balance: LeaderBalance = field(default_factory=LeaderBalance)
    security: SecuritySettings = field(default_factory=SecuritySettings)
    authorizer: AuthorizerSettings = field(default_factory=AuthorizerSettings)
    ignore_topic_policies: bool = False
    """Serve clusters whose brokers set create.topic.policy.class.name or alter.config.policy.class.name, without the policies."""
    zookeeper_security: ZooKeeperSecurity = field(default_factory=ZooKeeperSecurity)

    def __post_init__(self) -> None:
        names = [listener.name for listener in self.listeners]
        if not names:
            raise ValueError("no listener is given: brokers and clients could not reach the controller")
        if len(set(names)) != len(names):
            raise ValueError(f"a listener is given twice: {', '.join(names)}")
        if self.inter_broker_listener not in names:
            raise ValueError(
                f"the inter-broker listener {self.inter_broker_listener} is none of the listeners {', '.join(names)}"
            )
        self.security.check_listeners(listener.security_protocol for listener in self.listeners)
        if self.security.logs_in_at_brokers and self.authorizer.is_enabled is None:
            raise ValueError(
                "what is relayed reaches brokers under the controller's own login: say --authorizer, so that ACLs judge who may "
                "do what, or --no-authorizer where whoever a listener lets in may do all that the controller may"
            )
        if self.controller_id < 0:
            raise ValueError(f"the controller's id is {self.controller_id}; a number from 0 on is needed")
