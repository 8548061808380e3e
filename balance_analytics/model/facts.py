"""Hourly facts: one row for a partition and an hour in which it was sampled, and the layout in which they are stored.

Files are partitioned by the hour's UTC day. A row of a file (DAY_FACTS) has a partition's hours of one day: for each column of FACTS
an array of 24 values, null in hours that have no row. Files of earlier versions have the rows of FACTS. `is_of_days` distinguishes both.

Amounts (messages_in, bytes_in, bytes_out, size_growth_bytes) are sums over the sampled minutes, not extrapolated to the hour: the rate
is the amount divided by `minutes`. An hour without samples has no row.
"""

from balance_analytics.model.column import Column, Kind, names

FACTS = (
    Column("cluster_id", Kind.STRING, "id of the cluster"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    Column("hour", Kind.TIMESTAMP, "start of the hour"),
    Column("leader", Kind.INT32, "leader in most minutes (if equal, the lower id), -1 without a leader"),
    Column("replicas", Kind.INT32_LIST, "last known replicas, the preferred leader first"),
    Column("minutes", Kind.INT32, "minutes with a valid difference from the previous sample (one sample per minute)"),
    Column("gap_minutes", Kind.INT32, "minutes of the hour without one"),
    Column("resets", Kind.INT32, "samples whose offsets are below the previous ones: recreated or truncated"),
    Column("leader_changes", Kind.INT32, "samples with another leader than the previous sample"),
    Column("messages_in", Kind.FLOAT64, "messages appended in those minutes", nullable=True),
    Column("bytes_in", Kind.FLOAT64, "messages_in x record_bytes", nullable=True),
    Column("bytes_out", Kind.FLOAT64, "read by consumer groups in those minutes", nullable=True),
    Column("bytes_out_source", Kind.STRING, "estimate (committed offsets), prometheus or none"),
    Column(
        "record_bytes", Kind.FLOAT64, "mean size of a message in the leader's log; null if it is empty", nullable=True
    ),
    Column("size_bytes", Kind.INT64, "last size of the leader's log", nullable=True),
    Column(
        "size_growth_bytes", Kind.FLOAT64, "growth of the leader's log while one broker was the leader", nullable=True
    ),
    Column("source_in", Kind.STRING, "offsets or prometheus"),
)

KEY = ("cluster_id", "topic", "partition", "hour")
"""Unique for each row."""

HOURS = 24
"""Hours of a UTC day: the length of every array of DAY_FACTS."""

_OF_HOURS = {
    Kind.STRING: Kind.STRING_LIST,
    Kind.INT32: Kind.INT32_LIST,
    Kind.INT64: Kind.INT64_LIST,
    Kind.FLOAT64: Kind.FLOAT64_LIST,
    Kind.INT32_LIST: Kind.INT32_LISTS,
}

HOURLY = tuple(column for column in FACTS if column.name not in KEY)
"""The columns that become arrays."""

DAY_FACTS = (
    *(column for column in FACTS if column.name in KEY and column.name != "hour"),
    Column("day", Kind.TIMESTAMP, "start of the UTC day"),
    *(Column(column.name, _OF_HOURS[column.kind], f"by hour: {column.about}") for column in HOURLY),
)

DAY_KEY = ("cluster_id", "topic", "partition", "day")
"""Unique for each row of DAY_FACTS; the rows of a file are in this order."""

DAY_FOLDER = "rows=day"
"""In the path of every file with rows of DAY_FACTS: `v=RUN/rows=day/date=2026-01-31/NAME.parquet`."""


def is_of_days(path: str) -> bool:
    """Return whether a file below the table's folder has rows of DAY_FACTS.

    >>> is_of_days("v=a1/rows=day/date=2026-01-31/a.parquet"), is_of_days("v=a1/date=2026-01-31/a.parquet")
    (True, False)
    """
    return f"/{DAY_FOLDER}/" in path


assert names(FACTS) == [*KEY, *names(HOURLY)], "the hours of a day are unpacked in the order of FACTS"
