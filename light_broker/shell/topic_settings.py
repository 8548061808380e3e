"""Settings of a topic's logs and replicas, made of its configs and the broker's settings.

Source: LogConfig, KafkaConfig.extractLogConfigMap.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_log.files.partition_settings import PartitionSettings, broker_log_settings
from kafka_log.format.cleaning_schedule import CleaningSettings
from kafka_log.format.flush_schedule import FlushSettings
from kafka_log.format.leader_append import AppendSettings
from kafka_log.format.retention import RetentionSettings
from kafka_log.format.roll import max_segment_ms
from kafka_node.configs.described_configs import topic_value
from kafka_node.configs.layered_settings import Settings
from kafka_wire.compression import Compression

COMPRESSIONS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
"""Values of compression.type; `producer` keeps the producer's."""


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Effective configs of a topic."""

    overrides: Mapping[str, str]
    broker: Settings

    def number(self, name: str) -> int:
        """Return a config of type INT or LONG."""
        value = topic_value(name, self.overrides, self.broker)
        assert isinstance(value, int), name
        return value

    def decimal(self, name: str) -> float:
        """Return a config of type DOUBLE."""
        value = topic_value(name, self.overrides, self.broker)
        assert isinstance(value, float), name
        return value

    def text(self, name: str) -> str:
        """Return a config of type STRING."""
        value = topic_value(name, self.overrides, self.broker)
        assert isinstance(value, str), name
        return value

    @property
    def cleanup_policy(self) -> tuple[str, ...]:
        """Return the elements of cleanup.policy."""
        value = topic_value("cleanup.policy", self.overrides, self.broker)
        assert isinstance(value, tuple)
        return value

    @property
    def partition(self) -> PartitionSettings:
        """Return the settings of the topic's logs."""
        segment_bytes, is_compacted = self.number("segment.bytes"), "compact" in self.cleanup_policy
        max_compaction_lag_ms = self.number("max.compaction.lag.ms")
        return PartitionSettings(
            log=broker_log_settings(
                segment_bytes=segment_bytes,
                segment_ms=max_segment_ms(
                    self.number("segment.ms"), is_compacted=is_compacted, max_compaction_lag_ms=max_compaction_lag_ms
                ),
                segment_jitter_ms=self.number("segment.jitter.ms"),
                index_interval_bytes=self.number("index.interval.bytes"),
                index_max_bytes=self.number("segment.index.bytes"),
            ),
            append=AppendSettings(
                max_message_bytes=self.number("max.message.bytes"),
                segment_bytes=segment_bytes,
                compression=COMPRESSIONS.get(self.text("compression.type")),
                is_compacted=is_compacted,
                log_append_time=self.text("message.timestamp.type") == "LogAppendTime",
                timestamp_before_max_ms=self.number("message.timestamp.before.max.ms"),
                timestamp_after_max_ms=self.number("message.timestamp.after.max.ms"),
            ),
            retention=RetentionSettings(
                deletes="delete" in self.cleanup_policy,
                retention_bytes=self.number("retention.bytes"),
                retention_ms=self.number("retention.ms"),
            ),
            cleaning=CleaningSettings(
                min_compaction_lag_ms=self.number("min.compaction.lag.ms"),
                max_compaction_lag_ms=max_compaction_lag_ms,
                min_cleanable_ratio=self.decimal("min.cleanable.dirty.ratio"),
                delete_retention_ms=self.number("delete.retention.ms"),
            ),
            flush=FlushSettings(messages=self.number("flush.messages"), interval_ms=self.number("flush.ms")),
            producer_expiration_ms=self.broker.number("producer.id.expiration.ms"),
            file_delete_delay_ms=self.number("file.delete.delay.ms"),
        )
