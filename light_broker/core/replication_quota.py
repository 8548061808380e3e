"""Throttles of replication (KIP-73): the rates of a broker, which replicas they are for, and what was replicated lately. Pure.

A throttle is for copies that are behind, as in a move: replicas in the ISR are never held back. Source: ReplicationQuotaManager, SimpleRate and
ReplicationQuotaManagerConfig of Kafka.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kafka_node.configs.config_rules import ConfigType, Range
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.setting_rules import Setting
from kafka_wire.topic_partition import TopicPartition

WINDOWS = 11
"""Windows that a rate is measured over (replication.quota.window.num), of which the last is not full."""
WINDOW_MS = 1_000
"""Length of a window (replication.quota.window.size.seconds)."""
UNLIMITED = 2**63 - 1
EVERY_REPLICA = "*"


class Side(StrEnum):
    """Role of the broker in a replication that is throttled."""

    LEADER = "leader"
    FOLLOWER = "follower"

    @property
    def rate_setting(self) -> str:
        """Dynamic config of brokers: bytes per second."""
        return f"{self}.replication.throttled.rate"

    @property
    def replicas_config(self) -> str:
        """Config of topics: PARTITION:BROKER, separated by commas, or all replicas."""
        return f"{self}.replication.throttled.replicas"


DYNAMIC_ONLY: Mapping[str, Setting] = {
    name: Setting(name, ConfigType.LONG, str(UNLIMITED), Range(0, None))
    for name in (Side.LEADER.rate_setting, Side.FOLLOWER.rate_setting)
}
"""Settings that brokers have only as dynamic configs (QuotaConfig.brokerQuotaConfigs)."""


def rate_of(settings: Settings, side: Side) -> int:
    """Return the rate of a broker in bytes per second, UNLIMITED if none is set."""
    name = side.rate_setting
    text = settings.own.get(name, settings.cluster.get(name))
    if text is None:
        return UNLIMITED
    found = DYNAMIC_ONLY[name].read(text)
    assert isinstance(found, int), name
    return found


def is_throttled(replicas: str, partition: TopicPartition, broker_id: int) -> bool:
    """Return whether the config of a topic names a replica.

    >>> is_throttled("0:1,1:2", TopicPartition("t", 1), 2), is_throttled("0:1,1:2", TopicPartition("t", 0), 2)
    (True, False)
    """
    words = [word.strip() for word in replicas.split(",")]
    return EVERY_REPLICA in words or f"{partition.partition}:{broker_id}" in words


@dataclass(slots=True)
class ReplicationQuota:
    """Bytes that a broker replicated lately on one side."""

    bytes_per_second: int = UNLIMITED
    _windows: dict[int, int] = field(default_factory=dict)
    """Bytes by the number of the window."""

    def add(self, size_bytes: int, now_ms: int) -> None:
        """Note replicated bytes."""
        if self.bytes_per_second == UNLIMITED:
            self._windows.clear()
            return
        window = now_ms // WINDOW_MS
        self._windows = {start: size for start, size in self._windows.items() if start > window - WINDOWS}
        self._windows[window] = self._windows.get(window, 0) + size_bytes

    def is_exceeded(self, now_ms: int) -> bool:
        """Return whether the rate of the last windows is above the limit; a rate over less than one window counts as one."""
        if self.bytes_per_second == UNLIMITED:
            return False
        oldest = now_ms // WINDOW_MS - WINDOWS
        current = {start: size for start, size in self._windows.items() if start > oldest}
        if not current:
            return False
        elapsed_ms = max(now_ms - min(current) * WINDOW_MS, WINDOW_MS)
        return sum(current.values()) * 1_000 > self.bytes_per_second * elapsed_ms
