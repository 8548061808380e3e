"""Loads: what a partition carried over the window, and a broker in each hour, a row for each. Rates are per second of the minutes seen.

The planner reads the partitions' loads. Only what was there at the window's end is in them: a topic deleted meanwhile is named in the result, and moves nothing any more.
Leaves out how they are worked out: `jobs/loads.py`.
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
    Column("size_bytes", Kind.INT64, "held at the end: of a partition one copy, else all copies there", nullable=True),
    Column("size_trend", Kind.FLOAT64, "bytes more a day, by least squares", nullable=True),
)

PARTITION_LOADS = (
    Column("cluster_id", Kind.STRING, "the cluster's own id"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "its number in the topic"),
    Column("leader", Kind.INT32, "at the end, -1 for none"),
    Column("replicas", Kind.INT32_LIST, "at the end, the preferred leader first"),
    *STATISTICS,
    Column("leader_changes", Kind.INT64, "in the window"),
    Column("resets", Kind.INT64, "in the window"),
    Column("hours_out", Kind.INT32, "hours with valid bytes out"),
    Column("hours_in_rated", Kind.INT32, "of `hours`, those whose bytes in are Prometheus' rates"),
    Column("hours_out_rated", Kind.INT32, "of `hours_out`, those whose bytes out are Prometheus' rates"),
)

BROKER_HOURS = (
    Column("broker", Kind.INT32, "id"),
    Column("hour", Kind.TIMESTAMP, "start of the hour"),
    Column("leaders", Kind.INT64, "partitions that it led for most of the hour, and whose rate is known"),
    Column("bytes_in", Kind.FLOAT64, "bytes/s, of the partitions that it led"),
    Column("bytes_out", Kind.FLOAT64, "bytes/s, likewise"),
    Column("messages_in", Kind.FLOAT64, "messages/s, likewise"),
    Column("copies", Kind.INT64, "replicas that it holds and whose size is known"),
    Column("size_bytes", Kind.FLOAT64, "of those"),
)
"""The table between loads and study, and what the heat map is drawn of."""

PARTITIONS_PART = "partitions"
BROKER_HOURS_PART = "broker_hours"
"""Parts of the published loads."""

DIGITS = 3
"""Rates are rounded to thousandths of a byte: the last digits of a sum of floating point numbers depend on the order in which tasks end."""
