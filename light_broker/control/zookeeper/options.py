"""Settings of a broker in ZooKeeper mode that Kafka 4 no longer has, with the types and defaults of Kafka 3.9.

Source: ZkConfigs, ServerConfigs and KafkaConfig of Kafka 3.9.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_node.configs.config_rules import AnyValue, ConfigType, Range
from kafka_node.configs.setting_rules import Setting, SettingError
from light_broker.control.zookeeper import security
from light_broker.control.zookeeper.security import ZooKeeperSecurity

CONNECT = "zookeeper.connect"
INTER_BROKER_VERSION = "inter.broker.protocol.version"

_TABLE = {
    setting.name: setting
    for setting in (
        Setting(CONNECT, ConfigType.STRING, None, AnyValue()),
        Setting("zookeeper.session.timeout.ms", ConfigType.INT, "18000", Range(1_000, None)),
        Setting("zookeeper.connection.timeout.ms", ConfigType.INT, None, Range(1, None)),
        Setting(INTER_BROKER_VERSION, ConfigType.STRING, "3.9", AnyValue()),
        Setting("controlled.shutdown.enable", ConfigType.BOOLEAN, "true", AnyValue()),
        Setting("controlled.shutdown.max.retries", ConfigType.INT, "3", AnyValue()),
        Setting("controlled.shutdown.retry.backoff.ms", ConfigType.LONG, "5000", Range(0, None)),
        Setting("controller.socket.timeout.ms", ConfigType.INT, "30000", Range(1, None)),
    )
}
NAMES = security.NAMES | _TABLE.keys()
"""Settings of ZooKeeper mode."""

_REFUSED = {
    "zookeeper.metadata.migration.enable": "this broker does not take part in a migration to KRaft",
}
_VERSION = re.compile(r"(\d+)\.(\d+)(?:[.-].*)?")
LOWEST_VERSION, HIGHEST_VERSION = (3, 0), (3, 9)
"""Inter-broker versions: AlterPartition and AllocateProducerIds, without which this broker writes to ZooKeeper itself, need 3.0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperOptions:
    """Settings of a broker in ZooKeeper mode."""

    connect: str
    session_timeout_ms: int
    connect_timeout_ms: int
    shuts_down_controlled: bool
    shutdown_retries: int
    shutdown_backoff_ms: int
    controller_timeout_ms: int
    security: ZooKeeperSecurity = field(default_factory=ZooKeeperSecurity)


def read_options(values: Mapping[str, str]) -> ZooKeeperOptions | None:
    """Return the settings; None without zookeeper.connect. Raises SettingError."""
    connect = values.get(CONNECT)
    if not connect:
        return None
    for name, advice in _REFUSED.items():
        if values.get(name, "false").strip().lower() != "false":
            raise SettingError(f"{name} is not supported: {advice}. Set it to false.")
    _check_version(str(_TABLE[INTER_BROKER_VERSION].read(values.get(INTER_BROKER_VERSION))))
    session_timeout_ms = _number(values, "zookeeper.session.timeout.ms")
    has_connect_timeout = "zookeeper.connection.timeout.ms" in values
    return ZooKeeperOptions(
        connect=connect,
        session_timeout_ms=session_timeout_ms,
        connect_timeout_ms=_number(values, "zookeeper.connection.timeout.ms")
        if has_connect_timeout
        else session_timeout_ms,
        shuts_down_controlled=bool(_TABLE["controlled.shutdown.enable"].read(values.get("controlled.shutdown.enable"))),
        shutdown_retries=_number(values, "controlled.shutdown.max.retries"),
        shutdown_backoff_ms=_number(values, "controlled.shutdown.retry.backoff.ms"),
        controller_timeout_ms=_number(values, "controller.socket.timeout.ms"),
        security=security.read_security(values),
    )


def _number(values: Mapping[str, str], name: str) -> int:
    found = _TABLE[name].read(values.get(name))
    assert isinstance(found, int), name
    return found


def _check_version(text: str) -> None:
    match = _VERSION.fullmatch(text)
    if match is None:
        raise SettingError(f"{INTER_BROKER_VERSION} is {text}: a version such as 3.9 is needed.")
    version = (int(match[1]), int(match[2]))
    if not LOWEST_VERSION <= version <= HIGHEST_VERSION:
        lowest, highest = (".".join(map(str, version)) for version in (LOWEST_VERSION, HIGHEST_VERSION))
        raise SettingError(f"{INTER_BROKER_VERSION} is {text}: this broker supports {lowest} to {highest}.")
