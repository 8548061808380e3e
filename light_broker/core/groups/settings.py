"""Settings of the group coordinator, with Kafka's names and defaults (GroupCoordinatorConfig of Kafka 4.3.1)."""

from dataclasses import dataclass

from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.setting_rules import SettingError
from kafka_wire.compression import Compression

MS_PER_MINUTE = 60_000

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""Time after which a new member that waits for the end of a rebalance is removed. A client that is still there joins again, so that clients which
have gone do not add members forever (CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS)."""

MAX_PENDING_MEMBERS = 10_000
"""Member ids of one group that were given out and have not joined yet. Kafka has no limit; each takes memory until its session ends."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Settings of the group coordinator."""

    min_session_timeout_ms: int = 6_000
    """group.min.session.timeout.ms"""
    max_session_timeout_ms: int = 1_800_000
    """group.max.session.timeout.ms"""
    initial_rebalance_delay_ms: int = 3_000
    """group.initial.rebalance.delay.ms"""
    max_size: int = 2**31 - 1
    """group.max.size"""
    offset_metadata_max_bytes: int = 4_096
    """offset.metadata.max.bytes; Kafka counts characters (UTF-16 units)."""
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    """offsets.retention.minutes"""
    offsets_retention_check_interval_ms: int = 600_000
    """offsets.retention.check.interval.ms"""
    offsets_commit_timeout_ms: int = 5_000
    """offsets.commit.timeout.ms: limit for the replication of every write of the coordinator."""
    offsets_load_buffer_bytes: int = 5 * 1024 * 1024
    """offsets.load.buffer.size"""
    offsets_topic_partitions: int = 50
    """offsets.topic.num.partitions"""
    offsets_topic_compression: Compression = Compression.NONE
    """offsets.topic.compression.codec"""


def group_settings(values: Settings) -> GroupSettings:
    """Return the settings of the group coordinator of a broker. Raises SettingError."""
    return GroupSettings(
        min_session_timeout_ms=values.number("group.min.session.timeout.ms"),
        max_session_timeout_ms=values.number("group.max.session.timeout.ms"),
        initial_rebalance_delay_ms=values.number("group.initial.rebalance.delay.ms"),
        max_size=values.number("group.max.size"),
        offset_metadata_max_bytes=values.number("offset.metadata.max.bytes"),
        offsets_retention_ms=values.number("offsets.retention.minutes") * MS_PER_MINUTE,
        offsets_retention_check_interval_ms=values.number("offsets.retention.check.interval.ms"),
        offsets_commit_timeout_ms=values.number("offsets.commit.timeout.ms"),
        offsets_load_buffer_bytes=values.number("offsets.load.buffer.size"),
        offsets_topic_partitions=values.number("offsets.topic.num.partitions"),
        offsets_topic_compression=_compression(values.number("offsets.topic.compression.codec")),
    )


def _compression(number: int) -> Compression:
    try:
        return Compression(number)
    except ValueError:
        known = ", ".join(f"{codec.value} ({codec.name.lower()})" for codec in Compression)
        raise SettingError(f"offsets.topic.compression.codec is {number}, and must be one of {known}.") from None
