"""Settings of a topic's logs from its configs. Source: Kafka's LogConfig."""

from collections.abc import Mapping

from kafka_log.files.partition_settings import PartitionSettings, broker_log_settings
from kafka_log.files.producer_recovery import DEFAULT_EXPIRATION_MS
from kafka_log.format.cleaning_schedule import CleaningSettings
from kafka_log.format.flush_schedule import FlushSettings
from kafka_log.format.leader_append import AppendSettings
from kafka_log.format.retention import RetentionSettings
from kafka_node.configs.config_rules import ConfigValue, InvalidValue
from kafka_node.configs.topic_configs import config_value
from kafka_wire.compression import Compression

CODECS: Mapping[str, Compression | None] = {
    "producer": None,
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
"""Values of compression.type."""


def partition_settings(
    configs: Mapping[str, str], *, producer_expiration_ms: int = DEFAULT_EXPIRATION_MS
) -> PartitionSettings:
    """Return the settings of a topic's logs from its valid configs, as texts by name; a missing one has Kafka's default.

    `configs` has the topic's own configs over the broker's defaults.

    >>> partition_settings({"cleanup.policy": "compact", "segment.bytes": "1048576"}).log.segment_bytes
    1048576
    """

    def number(name: str) -> int:
        found = _value(name, configs)
        assert isinstance(found, int), name
        return found

    policies = _value("cleanup.policy", configs)
    ratio = _value("min.cleanable.dirty.ratio", configs)
    assert isinstance(policies, tuple)
    assert isinstance(ratio, int | float)
    segment_bytes = number("segment.bytes")
    return PartitionSettings(
        log=broker_log_settings(
            segment_bytes=segment_bytes,
            segment_ms=number("segment.ms"),
            segment_jitter_ms=number("segment.jitter.ms"),
            index_interval_bytes=number("index.interval.bytes"),
            index_max_bytes=number("segment.index.bytes"),
        ),
        append=AppendSettings(
            max_message_bytes=number("max.message.bytes"),
            segment_bytes=segment_bytes,
            compression=CODECS[str(_value("compression.type", configs))],
            is_compacted="compact" in policies,
            log_append_time=_value("message.timestamp.type", configs) == "LogAppendTime",
            timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
            timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
        ),
        retention=RetentionSettings(
            deletes="delete" in policies,
            retention_bytes=number("retention.bytes"),
            retention_ms=number("retention.ms"),
        ),
        cleaning=CleaningSettings(
            min_compaction_lag_ms=number("min.compaction.lag.ms"),
            max_compaction_lag_ms=number("max.compaction.lag.ms"),
            min_cleanable_ratio=ratio,
            delete_retention_ms=number("delete.retention.ms"),
        ),
        flush=FlushSettings(messages=number("flush.messages"), interval_ms=number("flush.ms")),
        file_delete_delay_ms=number("file.delete.delay.ms"),
        producer_expiration_ms=producer_expiration_ms,
    )


def _value(name: str, configs: Mapping[str, str]) -> ConfigValue:
    found = config_value(name, configs)
    assert not isinstance(found, InvalidValue), found
    return found
