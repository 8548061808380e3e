"""Reading of a quorum controller's settings from the values of Kafka's properties file, with Kafka's rules.

Names that Kafka does not have, and those that this controller does not use, are returned; `ignored_settings` logs them.
Source: KafkaConfig.validateValues, AbstractKafkaConfig, QuorumConfig, MetadataLogConfig, KRaftConfigs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from controller_core.metadata.delegation_tokens import TokenSettings
from controller_core.shell.quorum.endpoints import BOOTSTRAP_SERVERS, VOTERS, parse_voters
from controller_core.shell.quorum.restart_settings import NAMES as RESTART_NAMES
from controller_core.shell.quorum.restart_settings import read_disconnected_session_timeout_ms, read_restart_policy
from controller_core.shell.quorum.settings import ControllerSettings, MetadataLogSettings, QuorumSettings, QuorumTimes
from kafka_node import node_settings
from kafka_node.authorization.settings import AUTHORIZER, OWN_NAMES, STANDARD_AUTHORIZER, read_rules
from kafka_node.configs import java_classes, setting_rules, setting_table
from kafka_node.configs.layered_settings import Settings
from kafka_node.listener_limits import NAMES as LIMITS
from kafka_node.listener_limits import is_of_listener
from kafka_node.security.endpoints import (
    ANY_ADDRESS,
    Address,
    Endpoint,
    check_distinct_ports,
    parse_address,
    parse_endpoints,
)
from kafka_node.security.listener_settings import CONTROLLER_MECHANISM, listener_security
from kafka_node.security.settings import SecurityProtocol

CONTROLLER_LISTENER_NAMES = "controller.listener.names"
ADVERTISED_LISTENERS = "advertised.listeners"
ROLES = "process.roles"

EARLY_START = "early.start.listeners"
SECRET_KEY = "delegation.token.secret.key"  # noqa: S105 - the name of the setting

_CLASSES = {**java_classes.POLICIES, AUTHORIZER: frozenset({STANDARD_AUTHORIZER})}
"""Settings that name Java classes, with the classes that have an equivalent here."""

_TIMES = {
    "election_timeout_ms": "controller.quorum.election.timeout.ms",
    "fetch_timeout_ms": "controller.quorum.fetch.timeout.ms",
    "election_backoff_max_ms": "controller.quorum.election.backoff.max.ms",
    "append_linger_ms": "controller.quorum.append.linger.ms",
    "request_timeout_ms": "controller.quorum.request.timeout.ms",
    "retry_backoff_ms": "controller.quorum.retry.backoff.ms",
    "auto_join_enable": "controller.quorum.auto.join.enable",
    "fetch_snapshot_max_bytes": "controller.quorum.fetch.snapshot.max.bytes",
    "fetch_max_bytes": "controller.quorum.fetch.max.bytes",
}
_LOG = {
    "max_record_bytes_between_snapshots": "metadata.log.max.record.bytes.between.snapshots",
    "max_snapshot_interval_ms": "metadata.log.max.snapshot.interval.ms",
    "segment_bytes": "metadata.log.segment.bytes",
    "segment_ms": "metadata.log.segment.ms",
    "max_retention_bytes": "metadata.max.retention.bytes",
    "max_retention_ms": "metadata.max.retention.ms",
    "max_idle_interval_ms": "metadata.max.idle.interval.ms",
    "max_batch_size_bytes": "internal.metadata.max.batch.size.in.bytes",
    "delete_delay_ms": "internal.metadata.delete.delay.millis",
}
_CONTROLLER = {
    "broker_session_timeout_ms": "broker.session.timeout.ms",
    "num_partitions": "num.partitions",
    "default_replication_factor": "default.replication.factor",
    "min_insync_replicas": "min.insync.replicas",
    "unclean_leader_election_enable": "unclean.leader.election.enable",
    "unclean_leader_election_interval_ms": "unclean.leader.election.interval.ms",
    "auto_leader_rebalance_enable": "auto.leader.rebalance.enable",
    "leader_imbalance_check_interval_s": "leader.imbalance.check.interval.seconds",
}
_SEGMENT_BYTES_OF_TESTS = "internal.metadata.log.segment.bytes"
"""Overrides the size of segments without a lower bound, as in Kafka."""

USED = frozenset(
    (
        *_TIMES.values(),
        *_LOG.values(),
        *_CONTROLLER.values(),
        _SEGMENT_BYTES_OF_TESTS,
        *(
            VOTERS,
            BOOTSTRAP_SERVERS,
            CONTROLLER_LISTENER_NAMES,
            node_settings.LISTENERS,
            ADVERTISED_LISTENERS,
            node_settings.PROTOCOL_MAP,
            ROLES,
        ),
        *("node.id", "broker.id", "log.dir", "log.dirs", "metadata.log.dir"),
        *("inter.broker.listener.name", "unstable.feature.versions.enable"),
        *(AUTHORIZER, *OWN_NAMES, EARLY_START, *_CLASSES),
        *(SECRET_KEY, "delegation.token.max.lifetime.ms", "delegation.token.expiry.time.ms"),
        "delegation.token.expiry.check.interval.ms",
        *RESTART_NAMES,
        *LIMITS,
    )
)
"""Settings that this module reads; those of TLS and SASL are in `kafka_node.security.listener_settings`."""

_PROVIDERS = "config.providers"


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """The settings, and the names in the file that have no effect."""

    settings: QuorumSettings
    unused: tuple[str, ...]
    """Settings of Kafka that this controller does not use, sorted."""
    unknown: tuple[str, ...]
    """Names that Kafka does not have, sorted."""


def read_settings(values: Mapping[str, str]) -> ReadSettings:
    """Return the settings of a controller. Raises SettingError, which names the setting."""
    if _PROVIDERS in values:
        raise setting_rules.SettingError(
            f"{_PROVIDERS} is not supported: Steward cannot run Java classes; write the values into the file"
        )
    java_classes.check_classes(values, _CLASSES)
    others = [name for name in sorted(values) if name not in USED and not is_of_listener(name)]
    for name in sorted(values):
        if name in setting_table.SETTINGS:
            node_settings.setting_value(values, name)
    return ReadSettings(
        _settings(values),
        tuple(name for name in others if name in setting_table.SETTINGS),
        tuple(name for name in others if name not in setting_table.SETTINGS),
    )


def _settings(values: Mapping[str, str]) -> QuorumSettings:
    _check_roles(values)
    node_id = node_settings.read_node_id(values)
    voters, servers = _members(values, node_id)
    names = node_settings.setting_list(values, CONTROLLER_LISTENER_NAMES)
    protocols = node_settings.read_protocols(values, names)
    listeners = parse_endpoints(
        node_settings.setting_list(values, node_settings.LISTENERS), protocols, setting=node_settings.LISTENERS
    )
    _check_listeners(values, listeners, names)
    directories = node_settings.read_directories(values)
    return QuorumSettings(
        node_id=node_id,
        listeners=listeners,
        controller_listener_names=names,
        advertised_listeners=_advertised(values, listeners, names, protocols, voters.get(node_id)),
        security={
            endpoint.listener: listener_security(
                values, endpoint, login_setting=CONTROLLER_MECHANISM if endpoint.listener == names[0] else None
            )
            for endpoint in listeners
        },
        log_directories=directories,
        metadata_log_directory=_metadata_directory(values, directories),
        voters=voters,
        bootstrap_servers=servers,
        times=QuorumTimes(**{field: node_settings.setting_value(values, name) for field, name in _TIMES.items()}),  # type: ignore[arg-type]
        log=_log_settings(values),
        controller=ControllerSettings(
            **{field: node_settings.setting_value(values, name) for field, name in _CONTROLLER.items()},  # type: ignore[arg-type]
            disconnected_session_timeout_ms=read_disconnected_session_timeout_ms(
                values, node_settings.setting_number(values, "broker.session.timeout.ms")
            ),
            restarts=read_restart_policy(values),
        ),
        unstable_feature_versions_enable=bool(node_settings.setting_value(values, "unstable.feature.versions.enable")),
        authorizer=read_rules(values),
        tokens=_token_settings(values),
        token_check_interval_ms=node_settings.setting_number(values, "delegation.token.expiry.check.interval.ms"),
        values=Settings.of_file(node_id, values),
    )


def _token_settings(values: Mapping[str, str]) -> TokenSettings:
    key = node_settings.setting_value(values, SECRET_KEY)
    return TokenSettings(
        None if key is None else str(key),
        node_settings.setting_number(values, "delegation.token.max.lifetime.ms"),
        node_settings.setting_number(values, "delegation.token.expiry.time.ms"),
    )


def _check_roles(values: Mapping[str, str]) -> None:
    roles = node_settings.setting_list(values, ROLES)
    if roles != ("controller",):
        raise setting_rules.SettingError(
            f"{ROLES} is {','.join(roles) or 'empty'}: Steward is only a controller. Set {ROLES}=controller, and run brokers "
            "as Kafka processes of their own."
        )


def _members(values: Mapping[str, str], node_id: int) -> tuple[dict[int, Address], tuple[Address, ...]]:
    voters = parse_voters(node_settings.setting_list(values, VOTERS))
    servers = tuple(
        parse_address(entry, setting=BOOTSTRAP_SERVERS)
        for entry in node_settings.setting_list(values, BOOTSTRAP_SERVERS)
    )
    if not voters and not servers:
        raise setting_rules.SettingError(
            f"Set {BOOTSTRAP_SERVERS} to controllers of the quorum, or {VOTERS} to all of its voters."
        )
    if voters and node_id not in voters:
        raise setting_rules.SettingError(
            f"The node id {node_id} must be among the voters {sorted(voters)} of {VOTERS}."
        )
    return voters, servers


def _check_listeners(values: Mapping[str, str], listeners: tuple[Endpoint, ...], names: tuple[str, ...]) -> None:
    bound = {endpoint.listener for endpoint in listeners}
    if not names:
        raise setting_rules.SettingError(f"{CONTROLLER_LISTENER_NAMES} must name at least one listener.")
    if missing := [name for name in names if name not in bound]:
        raise setting_rules.SettingError(
            f"{CONTROLLER_LISTENER_NAMES} must only contain names of {node_settings.LISTENERS}, in capitals; {', '.join(missing)} is not there."
        )
    if others := sorted(bound - set(names)):
        raise setting_rules.SettingError(
            f"{node_settings.LISTENERS} must only contain controller listeners: add {', '.join(others)} to {CONTROLLER_LISTENER_NAMES}, or "
            "remove it."
        )
    if node_settings.setting_value(values, "inter.broker.listener.name") in names:
        raise setting_rules.SettingError(f"inter.broker.listener.name must not be in {CONTROLLER_LISTENER_NAMES}.")
    if unbound := [name for name in node_settings.setting_list(values, EARLY_START) if name not in bound]:
        raise setting_rules.SettingError(
            f"{EARLY_START} contains listener {unbound[0]}, but this node doesn't have any listener with that name. All listeners "
            "start early: remove the setting, or correct it."
        )
    check_distinct_ports(listeners)


def _advertised(
    values: Mapping[str, str],
    listeners: tuple[Endpoint, ...],
    names: tuple[str, ...],
    protocols: Mapping[str, SecurityProtocol],
    voter: Address | None,
) -> tuple[Endpoint, ...]:
    """Return the endpoints for other processes: the advertised ones, else the bound ones.

    Without an advertised address, a first listener on all interfaces has the address of this node among the static voters.
    """
    given = parse_endpoints(
        node_settings.setting_list(values, ADVERTISED_LISTENERS), protocols, setting=ADVERTISED_LISTENERS
    )
    advertised = {endpoint.listener: endpoint for endpoint in given}
    bound = {endpoint.listener: endpoint for endpoint in listeners}
    if any(endpoint.host == ANY_ADDRESS for endpoint in given):
        raise setting_rules.SettingError(
            f"{ADVERTISED_LISTENERS} cannot use {ANY_ADDRESS}. Use an address that others can reach."
        )
    found = []
    for name in names:
        endpoint = advertised.get(name)
        if endpoint is None:
            endpoint = bound[name]
            if endpoint.host in {"", ANY_ADDRESS}:
                override = voter if name == names[0] else None
                host, port = ("", endpoint.port) if override is None else (override.host, override.port)
                endpoint = Endpoint(name, endpoint.security_protocol, host, port)
        found.append(endpoint)
    return tuple(found)


def _metadata_directory(values: Mapping[str, str], directories: tuple[Path, ...]) -> Path:
    chosen = node_settings.setting_value(values, "metadata.log.dir")
    return directories[0] if chosen is None else Path(str(chosen))


def _log_settings(values: Mapping[str, str]) -> MetadataLogSettings:
    found = {field: node_settings.setting_number(values, name) for field, name in _LOG.items()}
    size = node_settings.setting_value(values, _SEGMENT_BYTES_OF_TESTS)
    if size is not None:
        found["segment_bytes"] = int(str(size))
    return MetadataLogSettings(**found)
