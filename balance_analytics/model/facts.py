"""Hourly facts: one row for a partition and an hour in which it was looked at. Files are partitioned by the hour's UTC day.

Amounts (messages_in, bytes_in, bytes_out, size_growth_bytes) are of the minutes that were seen, not blown up to the hour: the pace
is the amount over `minutes`. An hour that nobody looked at has no row.
Leaves out how they come of samples: `jobs/facts.py`.
"""

from balance_analytics.model.column import Column, Kind

FACTS = (
    Column("cluster_id", Kind.STRING, "the cluster's own id"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "its number in the topic"),
    Column("hour", Kind.TIMESTAMP, "start of the hour"),
    Column("leader", Kind.INT32, "the one of most minutes (of two the lower), -1 when nobody led"),
    Column("replicas", Kind.INT32_LIST, "the last ones, the preferred leader first"),
    Column("minutes", Kind.INT32, "minutes of valid differences from the look before (a look a minute)"),
    Column("gap_minutes", Kind.INT32, "minutes of the hour without one"),
    Column("resets", Kind.INT32, "looks whose offsets lie below those before: begun anew, or cut"),
    Column("leader_changes", Kind.INT32, "looks with another leader than the one before"),
    Column("messages_in", Kind.FLOAT64, "appended in those minutes", nullable=True),
    Column("bytes_in", Kind.FLOAT64, "messages_in x record_bytes", nullable=True),
    Column("bytes_out", Kind.FLOAT64, "read by consumer groups in those minutes", nullable=True),
    Column("bytes_out_source", Kind.STRING, "estimate (committed offsets), prometheus or none"),
    Column("record_bytes", Kind.FLOAT64, "mean size in the leader's log; null when it is empty", nullable=True),
    Column("size_bytes", Kind.INT64, "the last size of the leader's copy", nullable=True),
    Column("size_growth_bytes", Kind.FLOAT64, "of the leader's copy while one broker led", nullable=True),
    Column("source_in", Kind.STRING, "offsets or prometheus"),
)

KEY = ("cluster_id", "topic", "partition", "hour")
"""No two rows share it."""
