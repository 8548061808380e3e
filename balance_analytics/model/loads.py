"""Loads: one row per partition for the window, and one row per broker and hour. Rates are per second of the sampled minutes.

The planner reads the loads of partitions. They contain only partitions that existed at the end of the window; a topic that was deleted
earlier is named in the result.
"""

from balance_analytics.model.column import Column, Kind

STATISTICS = (
    Column("hours", Kind.INT32, "hours with a valid rate"),
    Column("bytes_in_mean", Kind.FLOAT64, "bytes/s, mean over those hours", nullable=True),
    Column("bytes_in_p95", Kind.FLOAT64, "bytes/s: 95 of 100 hours are at or below it", nullable=True),
    Column("bytes_in_peak", Kind.FLOAT64, "bytes/s in the busiest hour", nullable=True),
    Column("bytes_in_peak_hour", Kind.TIMESTAMP, "start of the busiest hour, the first of equals", nullable=True),
    Column("bytes_in_trend", Kind.FLOAT64, "bytes/s more a day, by least squares", nullable=True),
    Column("bytes_out_mean", Kind.FLOAT64, "bytes/s to consumer groups, mean of the hours known", nullable=True),
    Column("messages_in_mean", Kind.FLOAT64, "messages/s, mean", nullable=True),
    Column(
        "size_bytes",
        Kind.INT64,
        "size at the end: of one replica for a partition, of all its replicas for a broker",
        nullable=True,
    ),
    Column("size_trend", Kind.FLOAT64, "bytes more a day, by least squares", nullable=True),
)

PARTITION_LOADS = (
    Column("cluster_id", Kind.STRING, "id of the cluster"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    Column("leader", Kind.INT32, "leader at the end, -1 for none"),
    Column("replicas", Kind.INT32_LIST, "replicas at the end, the preferred leader first"),
    *STATISTICS,
    Column("leader_changes", Kind.INT64, "in the window"),
    Column("resets", Kind.INT64, "in the window"),
    Column("hours_out", Kind.INT32, "hours with valid bytes out"),
    Column("hours_in_rated", Kind.INT32, "hours of `hours` with bytes in from Prometheus"),
    Column("hours_out_rated", Kind.INT32, "hours of `hours_out` with bytes out from Prometheus"),
)

BROKER_HOURS = (
    Column("broker", Kind.INT32, "id"),
    Column("hour", Kind.TIMESTAMP, "start of the hour"),
    Column("leaders", Kind.INT64, "partitions with a known rate that it led for most of the hour"),
    Column("bytes_in", Kind.FLOAT64, "bytes/s of these partitions"),
    Column("bytes_out", Kind.FLOAT64, "bytes/s of these partitions"),
    Column("messages_in", Kind.FLOAT64, "messages/s of these partitions"),
    Column("copies", Kind.INT64, "its replicas with a known size"),
    Column("size_bytes", Kind.FLOAT64, "sum of these sizes"),
)
"""Read by the study, and drawn in the heat map."""

PARTITIONS_PART = "partitions"
BROKER_HOURS_PART = "broker_hours"
"""Parts of the published loads."""

DIGITS = 3
"""Rates are rounded to thousandths of a byte: the last digits of a sum of floating point numbers depend on the order in which tasks end."""
