"""Settings of a broker in a cluster with KRaft controllers. Source: QuorumConfig, KRaftConfigs and KafkaConfig of Kafka 4.3."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kafka_node.configs.setting_rules import SettingError
from kafka_node.node_settings import read_protocols, setting_list, setting_number
from kafka_node.security.endpoints import Address, parse_address
from kafka_node.security.listener_settings import CONTROLLER_MECHANISM, ListenerSecurity, client_security
from kafka_node.security.settings import SecurityProtocol

ROLES = "process.roles"
CONTROLLER_LISTENERS = "controller.listener.names"
VOTERS = "controller.quorum.voters"
BOOTSTRAP_SERVERS = "controller.quorum.bootstrap.servers"

_NUMBERS = {
    "heartbeat_interval_ms": "broker.heartbeat.interval.ms",
    "registration_timeout_ms": "initial.broker.registration.timeout.ms",
    "request_timeout_ms": "controller.quorum.request.timeout.ms",
    "retry_backoff_ms": "controller.quorum.retry.backoff.ms",
    "fetch_max_bytes": "controller.quorum.fetch.max.bytes",
    "fetch_snapshot_max_bytes": "controller.quorum.fetch.snapshot.max.bytes",
}
NAMES = frozenset({CONTROLLER_LISTENERS, VOTERS, BOOTSTRAP_SERVERS, CONTROLLER_MECHANISM, *_NUMBERS.values()})
"""Settings that this module reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KRaftOptions:
    """Settings of a broker in a cluster with KRaft controllers."""

    voters: Mapping[int, Address]
    """Static voters by id; empty where the voters are in the log."""
    servers: tuple[Address, ...]
    """Controllers to ask first; at least one."""
    protocol: SecurityProtocol
    """Of the controllers' listener."""
    security: ListenerSecurity
    """Of connections to it."""
    heartbeat_interval_ms: int
    registration_timeout_ms: int
    request_timeout_ms: int
    retry_backoff_ms: int
    fetch_max_bytes: int
    fetch_snapshot_max_bytes: int


def read_options(values: Mapping[str, str], node_id: int) -> KRaftOptions | None:
    """Return the settings; None without process.roles. Raises SettingError."""
    if ROLES not in values:
        return None
    if set(setting_list(values, ROLES)) != {"broker"}:
        raise SettingError(
            f"{ROLES} is {values[ROLES]}: this program is a broker only. Set it to broker, and run the controller as a "
            "process of its own, `steward quorum`; or add --standalone for a broker without controllers."
        )
    names = setting_list(values, CONTROLLER_LISTENERS)
    if not names:
        raise SettingError(f"{CONTROLLER_LISTENERS} must name the listener of the controllers, for example CONTROLLER.")
    voters = _voters(setting_list(values, VOTERS))
    if node_id in voters:
        raise SettingError(f"The node id {node_id} must not be among the voters {sorted(voters)} of {VOTERS}.")
    servers = tuple(parse_address(word, setting=BOOTSTRAP_SERVERS) for word in setting_list(values, BOOTSTRAP_SERVERS))
    if not servers and not voters:
        raise SettingError(f"Set {BOOTSTRAP_SERVERS} to controllers of the cluster, or {VOTERS} to all of its voters.")
    listener = names[0].upper()
    protocols = read_protocols(values, tuple(name.upper() for name in names))
    if listener not in protocols:
        raise SettingError(f"listener.security.protocol.map has no security protocol for the listener {listener}.")
    return KRaftOptions(
        voters=voters,
        servers=servers or tuple(voters.values()),
        protocol=protocols[listener],
        security=client_security(values, listener, protocols[listener], login_setting=CONTROLLER_MECHANISM),
        **{field: setting_number(values, name) for field, name in _NUMBERS.items()},
    )


def _voters(entries: tuple[str, ...]) -> dict[int, Address]:
    voters = {}
    for entry in entries:
        match = re.fullmatch(r"([0-9]{1,10})@(.+)", entry, re.ASCII)
        if match is None:
            raise SettingError(f"{VOTERS}: {entry!r} is not ID@HOST:PORT")
        voters[int(match[1])] = parse_address(match[2], setting=VOTERS)
    return voters
