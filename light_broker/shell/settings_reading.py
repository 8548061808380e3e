"""Reading of a broker's settings from the values of Kafka's server.properties, with Kafka's rules.

Names without effect are returned, and logged by `kafka_node.ignored_settings`. Java classes are refused, except those of Kafka that this
broker has itself. Source: KafkaConfig, AbstractKafkaConfig, SocketServerConfigs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka_log.files.properties_file import read_properties_file
from kafka_node.authorization.authorizer import Rules
from kafka_node.authorization.settings import AUTHORIZER, AUTHORIZERS, OWN_NAMES, read_rules
from kafka_node.configs.java_classes import POLICIES, check_classes
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.setting_rules import SettingError
from kafka_node.configs.setting_table import SETTINGS
from kafka_node.listener_limits import is_of_listener
from kafka_node.node_settings import (
    LISTENERS,
    read_directories,
    read_node_id,
    read_protocols,
    setting_list,
    setting_value,
)
from kafka_node.security.endpoints import ANY_ADDRESS, Endpoint, check_distinct_ports, parse_endpoints
from kafka_node.security.listener_settings import ListenerSecurity, listener_security
from kafka_node.security.settings import SecurityProtocol
from light_broker.control.kraft import options as kraft_options
from light_broker.control.kraft.options import CONTROLLER_LISTENERS, ROLES, KRaftOptions
from light_broker.control.zookeeper import options as zookeeper_options
from light_broker.control.zookeeper.options import ZooKeeperOptions

ADVERTISED_LISTENERS = "advertised.listeners"
INTER_BROKER_LISTENER = "inter.broker.listener.name"
INTER_BROKER_PROTOCOL = "security.inter.broker.protocol"
INTER_BROKER_MECHANISM = "sasl.mechanism.inter.broker.protocol"

_CLASSES: Mapping[str, frozenset[str]] = {
    **POLICIES,
    AUTHORIZER: AUTHORIZERS,
    "client.quota.callback.class": frozenset(),
    "replica.selector.class": frozenset({"org.apache.kafka.common.replica.RackAwareReplicaSelector"}),
}
"""Settings that name Java classes, with the classes that have an equivalent here."""

_REFUSED = {
    "config.providers": "Steward cannot run Java classes; write the values into the file",
    "delegation.token.secret.key": "delegation tokens are not supported",
}
_REFUSED_IF_TRUE = {"remote.log.storage.system.enable": "tiered storage is not supported"}

_UNUSED_PREFIXES = (
    "add.partitions.",
    "alter.log.dirs.",
    "broker.heartbeat.",
    "broker.session.",
    "client.quota.",
    "controller.",
    "cordoned.",
    "delegation.",
    "early.start.",
    "follower.fetch.last.tiered.",
    "group.consumer.",
    "group.coordinator.",
    "group.share.",
    "group.streams.",
    "initial.broker.",
    "internal.",
    "kafka.metrics.",
    "leader.imbalance.",
    "log.local.",
    "metadata.",
    "metrics.",
    "num.replica.alter.",
    "quota.",
    "remote.",
    "replication.quota.",
    "sasl.kerberos.",
    "sasl.login.",
    "sasl.oauthbearer.",
    "share.",
    "telemetry.",
    "transaction.",
    "transactional.",
    "unstable.",
)
"""Beginnings of names that only parts of Kafka read which this broker does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Settings of one broker process."""

    values: Settings
    """All values by name; the other fields are those that the start needs in another form."""
    listeners: tuple[Endpoint, ...]
    """What the process binds; controller listeners are left out."""
    advertised_listeners: tuple[Endpoint, ...]
    """The addresses for clients; an empty host is that of this machine."""
    inter_broker_listener: str
    security: Mapping[str, ListenerSecurity]
    """By listener name."""
    log_directories: tuple[Path, ...]
    authorizer: Rules | None
    """None: there is no authorizer."""
    zookeeper: ZooKeeperOptions | None = None
    """Of a broker in ZooKeeper mode."""
    kraft: KRaftOptions | None = None
    """Of a broker with KRaft controllers."""


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """The settings, and the names in the file that have no effect. Implements IgnoredNames."""

    settings: BrokerSettings
    unused: tuple[str, ...]
    unknown: tuple[str, ...]


def read_settings_file(path: Path | None, overrides: Mapping[str, str], *, is_standalone: bool = False) -> ReadSettings:
    """Read the settings of a file, if there is one, with `overrides` in place of its values. Raises SettingError."""
    try:
        values = {} if path is None else read_properties_file(path)
    except ValueError as error:
        raise SettingError(str(error)) from error
    return read_settings({**values, **overrides}, is_standalone=is_standalone)


def read_settings(values: Mapping[str, str], *, is_standalone: bool = False) -> ReadSettings:
    """Return the settings of a broker; one that is standalone ignores controllers. Raises SettingError, which names the setting."""
    for name in values:
        if name in SETTINGS:
            setting_value(values, name)
    _check_supported(values)
    zookeeper = None if is_standalone or ROLES in values else zookeeper_options.read_options(values)
    kraft = None if is_standalone else kraft_options.read_options(values, read_node_id(values))
    own = {
        *OWN_NAMES,
        *(() if zookeeper is None else zookeeper_options.NAMES),
        *(() if kraft is None else kraft_options.NAMES),
    }
    known = [name for name in sorted(values) if name in SETTINGS or name in own]
    unused = tuple(name for name in known if name.startswith(_UNUSED_PREFIXES) and name not in own)
    unknown = tuple(name for name in sorted(values) if name not in set(known) and not is_of_listener(name))
    return ReadSettings(_settings(values, zookeeper, kraft), unused, unknown)


def _settings(
    values: Mapping[str, str], zookeeper: ZooKeeperOptions | None, kraft: KRaftOptions | None
) -> BrokerSettings:
    node_id = read_node_id(values)
    listeners = _listeners(values)
    advertised = _advertised(values, listeners)
    inter_broker = _inter_broker_listener(values, advertised)
    is_alone = zookeeper is None and kraft is None
    logins = {} if is_alone else {inter_broker: INTER_BROKER_MECHANISM}
    return BrokerSettings(
        values=Settings.of_file(node_id, values),
        listeners=listeners,
        advertised_listeners=advertised,
        inter_broker_listener=inter_broker,
        security={
            endpoint.listener: listener_security(values, endpoint, login_setting=logins.get(endpoint.listener))
            for endpoint in listeners
        },
        log_directories=read_directories(values),
        authorizer=read_rules(values),
        zookeeper=zookeeper,
        kraft=kraft,
    )


def _check_supported(values: Mapping[str, str]) -> None:
    for name, advice in _REFUSED.items():
        if values.get(name):
            raise SettingError(f"{name} is not supported: {advice}.")
    for name, advice in _REFUSED_IF_TRUE.items():
        if setting_value(values, name):
            raise SettingError(f"{name} is not supported: {advice}. Set it to false.")
    check_classes(values, _CLASSES)
    if ROLES in values and "broker" not in setting_list(values, ROLES):
        raise SettingError(f"{ROLES} is {values[ROLES]}: this is a broker. Add broker, or run `steward quorum`.")


def _listeners(values: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Return the listeners for clients and brokers; the process opens none for controllers."""
    controllers = {name.upper() for name in values.get(CONTROLLER_LISTENERS, "").split(",") if name}
    protocols = read_protocols(values, tuple(controllers))
    found = parse_endpoints(setting_list(values, LISTENERS), protocols, setting=LISTENERS)
    check_distinct_ports(found)
    listeners = tuple(endpoint for endpoint in found if endpoint.listener not in controllers)
    if not listeners:
        raise SettingError(f"{LISTENERS} has no listener for clients. Add one that is not in {CONTROLLER_LISTENERS}.")
    return listeners


def _advertised(values: Mapping[str, str], listeners: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
    """Return the advertised addresses, by default those of the listeners; an address on all interfaces is that of this machine."""
    protocols = {endpoint.listener: endpoint.security_protocol for endpoint in listeners}
    words = setting_list(values, ADVERTISED_LISTENERS)
    if not words:
        return tuple(
            Endpoint(
                listener.listener,
                listener.security_protocol,
                "" if listener.host == ANY_ADDRESS else listener.host,
                listener.port,
            )
            for listener in listeners
        )
    all_protocols = {**read_protocols(values, ()), **protocols}
    given = parse_endpoints(words, all_protocols, setting=ADVERTISED_LISTENERS)
    if any(endpoint.host == ANY_ADDRESS for endpoint in given):
        raise SettingError(f"{ADVERTISED_LISTENERS} cannot use {ANY_ADDRESS}. Use an address that clients can reach.")
    advertised = tuple(endpoint for endpoint in given if endpoint.listener in protocols)
    if not advertised:
        raise SettingError(f"{ADVERTISED_LISTENERS} names none of {LISTENERS}.")
    return advertised


def _inter_broker_listener(values: Mapping[str, str], advertised: tuple[Endpoint, ...]) -> str:
    """Return the listener of other brokers: named, or the one whose name is the inter-broker protocol."""
    name = setting_value(values, INTER_BROKER_LISTENER)
    if name is not None and INTER_BROKER_PROTOCOL in values:
        raise SettingError(f"Only one of {INTER_BROKER_LISTENER} and {INTER_BROKER_PROTOCOL} should be set.")
    if name is None and INTER_BROKER_PROTOCOL not in values and len(advertised) == 1:
        return advertised[0].listener
    wanted = str(SecurityProtocol(str(setting_value(values, INTER_BROKER_PROTOCOL)))) if name is None else str(name)
    if wanted.upper() not in {endpoint.listener for endpoint in advertised}:
        raise SettingError(
            f"{INTER_BROKER_LISTENER} must be a listener name defined in {ADVERTISED_LISTENERS}: {wanted} is not there."
        )
    return wanted.upper()
