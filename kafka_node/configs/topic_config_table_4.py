"""Kafka 4.3.1's topic configs in the order in which Kafka validates them: generated, do not edit.

`config_rules` defines the rules. Generate it again with `make schemas`. Internal configs are left out.
Source: LogConfig.configKeys and ServerTopicConfigSynonyms of Kafka 4.3.1.
"""

from kafka_node.configs.config_rules import AnyValue, ConfigKey, ConfigType, OneOf, Range, RangeOr, ThrottledReplicas

ROWS = (
    ConfigKey("segment.bytes", ConfigType.INT, "1073741824", Range(1048576), "log.segment.bytes"),
    ConfigKey("segment.ms", ConfigType.LONG, "604800000", Range(1), "log.roll.ms"),
    ConfigKey("segment.jitter.ms", ConfigType.LONG, "0", Range(0), "log.roll.jitter.ms"),
    ConfigKey("segment.index.bytes", ConfigType.INT, "10485760", Range(4), "log.index.size.max.bytes"),
    ConfigKey("flush.messages", ConfigType.LONG, "9223372036854775807", Range(1), "log.flush.interval.messages"),
    ConfigKey("flush.ms", ConfigType.LONG, "9223372036854775807", Range(0), "log.flush.interval.ms"),
    ConfigKey("retention.bytes", ConfigType.LONG, "-1", AnyValue(), "log.retention.bytes"),
    ConfigKey("retention.ms", ConfigType.LONG, "604800000", Range(-1), "log.retention.ms"),
    ConfigKey("max.message.bytes", ConfigType.INT, "1048588", Range(0), "message.max.bytes"),
    ConfigKey("index.interval.bytes", ConfigType.INT, "4096", Range(0), "log.index.interval.bytes"),
    ConfigKey("delete.retention.ms", ConfigType.LONG, "86400000", Range(0), "log.cleaner.delete.retention.ms"),
    ConfigKey("min.compaction.lag.ms", ConfigType.LONG, "0", Range(0), "log.cleaner.min.compaction.lag.ms"),
    ConfigKey(
        "max.compaction.lag.ms", ConfigType.LONG, "9223372036854775807", Range(1), "log.cleaner.max.compaction.lag.ms"
    ),
    ConfigKey("file.delete.delay.ms", ConfigType.LONG, "60000", Range(0), "log.segment.delete.delay.ms"),
    ConfigKey("min.cleanable.dirty.ratio", ConfigType.DOUBLE, "0.5", Range(0, 1), "log.cleaner.min.cleanable.ratio"),
    ConfigKey(
        "cleanup.policy",
        ConfigType.LIST,
        "delete",
        OneOf(("compact", "delete"), names_empty=True),
        "log.cleanup.policy",
    ),
    ConfigKey(
        "unclean.leader.election.enable", ConfigType.BOOLEAN, "false", AnyValue(), "unclean.leader.election.enable"
    ),
    ConfigKey("min.insync.replicas", ConfigType.INT, "1", Range(1), "min.insync.replicas"),
    ConfigKey(
        "compression.type",
        ConfigType.STRING,
        "producer",
        OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        "compression.type",
    ),
    ConfigKey("compression.gzip.level", ConfigType.INT, "-1", RangeOr(1, 9, -1), "compression.gzip.level"),
    ConfigKey("compression.lz4.level", ConfigType.INT, "9", Range(1, 17), "compression.lz4.level"),
    ConfigKey("compression.zstd.level", ConfigType.INT, "3", Range(-131072, 22), "compression.zstd.level"),
    ConfigKey("preallocate", ConfigType.BOOLEAN, "false", AnyValue(), "log.preallocate"),
    ConfigKey(
        "message.timestamp.type",
        ConfigType.STRING,
        "CreateTime",
        OneOf(("CreateTime", "LogAppendTime")),
        "log.message.timestamp.type",
    ),
    ConfigKey(
        "message.timestamp.before.max.ms",
        ConfigType.LONG,
        "9223372036854775807",
        Range(0),
        "log.message.timestamp.before.max.ms",
    ),
    ConfigKey(
        "message.timestamp.after.max.ms", ConfigType.LONG, "3600000", Range(0), "log.message.timestamp.after.max.ms"
    ),
    ConfigKey("leader.replication.throttled.replicas", ConfigType.LIST, "", ThrottledReplicas(), None),
    ConfigKey("follower.replication.throttled.replicas", ConfigType.LIST, "", ThrottledReplicas(), None),
    ConfigKey("remote.storage.enable", ConfigType.BOOLEAN, "false", AnyValue(), None),
    ConfigKey("local.retention.ms", ConfigType.LONG, "-2", Range(-2), "log.local.retention.ms"),
    ConfigKey("local.retention.bytes", ConfigType.LONG, "-2", Range(-2), "log.local.retention.bytes"),
    ConfigKey("remote.log.copy.disable", ConfigType.BOOLEAN, "false", AnyValue(), None),
    ConfigKey("remote.log.delete.on.disable", ConfigType.BOOLEAN, "false", AnyValue(), None),
)

TOPIC_CONFIGS = {row.name: row for row in ROWS}
"""The rows by name, in the order of ROWS."""
