"""Configs of groups and of client metrics in Kafka 4.3.1, in the order in which Kafka validates them: generated, do not edit.

`config_rules` defines the rules. Generate it again with `make schemas`. Source: GroupConfig and ClientMetricsConfigs of Kafka 4.3.1.
"""

from kafka_node.configs.config_rules import AnyValue, ConfigKey, ConfigType, OffsetReset, OneOf, Range, Words

_GROUP_ROWS = (
    ConfigKey("consumer.session.timeout.ms", ConfigType.INT, "45000", Range(1), "group.consumer.session.timeout.ms"),
    ConfigKey(
        "consumer.heartbeat.interval.ms", ConfigType.INT, "5000", Range(1), "group.consumer.heartbeat.interval.ms"
    ),
    ConfigKey(
        "consumer.assignment.interval.ms", ConfigType.INT, "1000", Range(0), "group.consumer.assignment.interval.ms"
    ),
    ConfigKey("share.session.timeout.ms", ConfigType.INT, "45000", Range(1), "group.share.session.timeout.ms"),
    ConfigKey("share.heartbeat.interval.ms", ConfigType.INT, "5000", Range(1), "group.share.heartbeat.interval.ms"),
    ConfigKey(
        "share.record.lock.duration.ms", ConfigType.INT, "30000", Range(1000), "group.share.record.lock.duration.ms"
    ),
    ConfigKey("share.delivery.count.limit", ConfigType.INT, "5", Range(2), "group.share.delivery.count.limit"),
    ConfigKey(
        "share.partition.max.record.locks", ConfigType.INT, "2000", Range(100), "group.share.partition.max.record.locks"
    ),
    ConfigKey("share.auto.offset.reset", ConfigType.STRING, "latest", OffsetReset(), None),
    ConfigKey(
        "share.isolation.level",
        ConfigType.STRING,
        "read_uncommitted",
        OneOf(("read_committed", "read_uncommitted")),
        None,
    ),
    ConfigKey("share.renew.acknowledge.enable", ConfigType.BOOLEAN, "true", AnyValue(), None),
    ConfigKey("share.assignment.interval.ms", ConfigType.INT, "1000", Range(0), "group.share.assignment.interval.ms"),
    ConfigKey("streams.session.timeout.ms", ConfigType.INT, "45000", Range(1), "group.streams.session.timeout.ms"),
    ConfigKey("streams.heartbeat.interval.ms", ConfigType.INT, "5000", Range(1), "group.streams.heartbeat.interval.ms"),
    ConfigKey("streams.num.standby.replicas", ConfigType.INT, "0", Range(0), "group.streams.num.standby.replicas"),
    ConfigKey(
        "streams.initial.rebalance.delay.ms",
        ConfigType.INT,
        "3000",
        Range(0),
        "group.streams.initial.rebalance.delay.ms",
    ),
    ConfigKey(
        "streams.assignment.interval.ms", ConfigType.INT, "1000", Range(0), "group.streams.assignment.interval.ms"
    ),
)

GROUP_CONFIGS = {row.name: row for row in _GROUP_ROWS}
"""Configs of groups by name."""

_CLIENT_METRICS_ROWS = (
    ConfigKey("metrics", ConfigType.LIST, "", Words(), None),
    ConfigKey("interval.ms", ConfigType.INT, "300000", AnyValue(), None),
    ConfigKey("match", ConfigType.LIST, "", Words(), None),
)

CLIENT_METRICS_CONFIGS = {row.name: row for row in _CLIENT_METRICS_ROWS}
"""Configs of subscriptions to client metrics by name."""
