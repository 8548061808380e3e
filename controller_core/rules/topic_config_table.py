"""Kafka 3.9.2's topic configs in the order in which Kafka validates them: generated, do not edit.

`config_rules` defines the rows. Generate the table again with `python tools/draw_topic_configs.py DIRECTORY_OF_JARS`.
Source: LogConfig.configKeys, ServerTopicConfigSynonyms and MetadataVersion of Kafka 3.9.2.
"""

from controller_core.rules import config_rules

VERSION_NAMES = frozenset(
    (
        "0.10.0",
        "0.10.0-IV0",
        "0.10.0-IV1",
        "0.10.1",
        "0.10.1-IV0",
        "0.10.1-IV1",
        "0.10.1-IV2",
        "0.10.2",
        "0.10.2-IV0",
        "0.11.0",
        "0.11.0-IV0",
        "0.11.0-IV1",
        "0.11.0-IV2",
        "0.8.0",
        "0.8.1",
        "0.8.2",
        "0.9.0",
        "1.0",
        "1.0-IV0",
        "1.1",
        "1.1-IV0",
        "2.0",
        "2.0-IV0",
        "2.0-IV1",
        "2.1",
        "2.1-IV0",
        "2.1-IV1",
        "2.1-IV2",
        "2.2",
        "2.2-IV0",
        "2.2-IV1",
        "2.3",
        "2.3-IV0",
        "2.3-IV1",
        "2.4",
        "2.4-IV0",
        "2.4-IV1",
        "2.5",
        "2.5-IV0",
        "2.6",
        "2.6-IV0",
        "2.7",
        "2.7-IV0",
        "2.7-IV1",
        "2.7-IV2",
        "2.8",
        "2.8-IV0",
        "2.8-IV1",
        "3.0",
        "3.0-IV0",
        "3.0-IV1",
        "3.1",
        "3.1-IV0",
        "3.2",
        "3.2-IV0",
        "3.3",
        "3.3-IV0",
        "3.3-IV1",
        "3.3-IV2",
        "3.3-IV3",
        "3.4",
        "3.4-IV0",
        "3.5",
        "3.5-IV0",
        "3.5-IV1",
        "3.5-IV2",
        "3.6",
        "3.6-IV0",
        "3.6-IV1",
        "3.6-IV2",
        "3.7",
        "3.7-IV0",
        "3.7-IV1",
        "3.7-IV2",
        "3.7-IV3",
        "3.7-IV4",
        "3.8",
        "3.8-IV0",
        "3.9",
        "3.9-IV0",
        "4.0-IV0",
        "4.0-IV1",
    )
)
"""What message.format.version takes."""

ROWS = (
    config_rules.ConfigKey(
        "segment.bytes", config_rules.ConfigType.INT, "1073741824", config_rules.Range(14), "log.segment.bytes"
    ),
    config_rules.ConfigKey(
        "segment.ms", config_rules.ConfigType.LONG, "604800000", config_rules.Range(1), "log.roll.ms"
    ),
    config_rules.ConfigKey(
        "segment.jitter.ms", config_rules.ConfigType.LONG, "0", config_rules.Range(0), "log.roll.jitter.ms"
    ),
    config_rules.ConfigKey(
        "segment.index.bytes",
        config_rules.ConfigType.INT,
        "10485760",
        config_rules.Range(4),
        "log.index.size.max.bytes",
    ),
    config_rules.ConfigKey(
        "flush.messages",
        config_rules.ConfigType.LONG,
        "9223372036854775807",
        config_rules.Range(1),
        "log.flush.interval.messages",
    ),
    config_rules.ConfigKey(
        "flush.ms", config_rules.ConfigType.LONG, "9223372036854775807", config_rules.Range(0), "log.flush.interval.ms"
    ),
    config_rules.ConfigKey(
        "retention.bytes", config_rules.ConfigType.LONG, "-1", config_rules.AnyValue(), "log.retention.bytes"
    ),
    config_rules.ConfigKey(
        "retention.ms", config_rules.ConfigType.LONG, "604800000", config_rules.Range(-1), "log.retention.ms"
    ),
    config_rules.ConfigKey(
        "max.message.bytes", config_rules.ConfigType.INT, "1048588", config_rules.Range(0), "message.max.bytes"
    ),
    config_rules.ConfigKey(
        "index.interval.bytes", config_rules.ConfigType.INT, "4096", config_rules.Range(0), "log.index.interval.bytes"
    ),
    config_rules.ConfigKey(
        "delete.retention.ms",
        config_rules.ConfigType.LONG,
        "86400000",
        config_rules.Range(0),
        "log.cleaner.delete.retention.ms",
    ),
    config_rules.ConfigKey(
        "min.compaction.lag.ms",
        config_rules.ConfigType.LONG,
        "0",
        config_rules.Range(0),
        "log.cleaner.min.compaction.lag.ms",
    ),
    config_rules.ConfigKey(
        "max.compaction.lag.ms",
        config_rules.ConfigType.LONG,
        "9223372036854775807",
        config_rules.Range(1),
        "log.cleaner.max.compaction.lag.ms",
    ),
    config_rules.ConfigKey(
        "file.delete.delay.ms",
        config_rules.ConfigType.LONG,
        "60000",
        config_rules.Range(0),
        "log.segment.delete.delay.ms",
    ),
    config_rules.ConfigKey(
        "min.cleanable.dirty.ratio",
        config_rules.ConfigType.DOUBLE,
        "0.5",
        config_rules.Range(0, 1),
        "log.cleaner.min.cleanable.ratio",
    ),
    config_rules.ConfigKey(
        "cleanup.policy",
        config_rules.ConfigType.LIST,
        "delete",
        config_rules.OneOf(("compact", "delete")),
        "log.cleanup.policy",
    ),
    config_rules.ConfigKey(
        "unclean.leader.election.enable",
        config_rules.ConfigType.BOOLEAN,
        "false",
        config_rules.AnyValue(),
        "unclean.leader.election.enable",
    ),
    config_rules.ConfigKey(
        "min.insync.replicas", config_rules.ConfigType.INT, "1", config_rules.Range(1), "min.insync.replicas"
    ),
    config_rules.ConfigKey(
        "compression.type",
        config_rules.ConfigType.STRING,
        "producer",
        config_rules.OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        "compression.type",
    ),
    config_rules.ConfigKey(
        "compression.gzip.level",
        config_rules.ConfigType.INT,
        "-1",
        config_rules.RangeOr(1, 9, -1),
        "compression.gzip.level",
    ),
    config_rules.ConfigKey(
        "compression.lz4.level", config_rules.ConfigType.INT, "9", config_rules.Range(1, 17), "compression.lz4.level"
    ),
    config_rules.ConfigKey(
        "compression.zstd.level",
        config_rules.ConfigType.INT,
        "3",
        config_rules.Range(-131072, 22),
        "compression.zstd.level",
    ),
    config_rules.ConfigKey(
        "preallocate", config_rules.ConfigType.BOOLEAN, "false", config_rules.AnyValue(), "log.preallocate"
    ),
    config_rules.ConfigKey(
        "message.format.version",
        config_rules.ConfigType.STRING,
        "3.0-IV1",
        config_rules.VersionName(VERSION_NAMES),
        "log.message.format.version",
    ),
    config_rules.ConfigKey(
        "message.timestamp.type",
        config_rules.ConfigType.STRING,
        "CreateTime",
        config_rules.OneOf(("CreateTime", "LogAppendTime")),
        "log.message.timestamp.type",
    ),
    config_rules.ConfigKey(
        "message.timestamp.difference.max.ms",
        config_rules.ConfigType.LONG,
        "9223372036854775807",
        config_rules.Range(0),
        "log.message.timestamp.difference.max.ms",
    ),
    config_rules.ConfigKey(
        "message.timestamp.before.max.ms",
        config_rules.ConfigType.LONG,
        "9223372036854775807",
        config_rules.Range(0),
        "log.message.timestamp.before.max.ms",
    ),
    config_rules.ConfigKey(
        "message.timestamp.after.max.ms",
        config_rules.ConfigType.LONG,
        "9223372036854775807",
        config_rules.Range(0),
        "log.message.timestamp.after.max.ms",
    ),
    config_rules.ConfigKey(
        "leader.replication.throttled.replicas",
        config_rules.ConfigType.LIST,
        "",
        config_rules.ThrottledReplicas(),
        None,
    ),
    config_rules.ConfigKey(
        "follower.replication.throttled.replicas",
        config_rules.ConfigType.LIST,
        "",
        config_rules.ThrottledReplicas(),
        None,
    ),
    config_rules.ConfigKey(
        "message.downconversion.enable",
        config_rules.ConfigType.BOOLEAN,
        "true",
        config_rules.AnyValue(),
        "log.message.downconversion.enable",
    ),
    config_rules.ConfigKey(
        "remote.storage.enable", config_rules.ConfigType.BOOLEAN, "false", config_rules.AnyValue(), None
    ),
    config_rules.ConfigKey(
        "local.retention.ms", config_rules.ConfigType.LONG, "-2", config_rules.Range(-2), "log.local.retention.ms"
    ),
    config_rules.ConfigKey(
        "local.retention.bytes", config_rules.ConfigType.LONG, "-2", config_rules.Range(-2), "log.local.retention.bytes"
    ),
    config_rules.ConfigKey(
        "remote.log.copy.disable", config_rules.ConfigType.BOOLEAN, "false", config_rules.AnyValue(), None
    ),
    config_rules.ConfigKey(
        "remote.log.delete.on.disable", config_rules.ConfigType.BOOLEAN, "false", config_rules.AnyValue(), None
    ),
)

TOPIC_CONFIGS = {row.name: row for row in ROWS}
"""The rows by name, in the order of ROWS."""
