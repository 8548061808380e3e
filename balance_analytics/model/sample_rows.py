"""Samples as rows: one partition in one sample, as in Parquet files and as the pipeline decodes messages of the samples topic.

Unknown values are null, never a number. Files are partitioned by `date`, the UTC day of `round_ms`.
"""

from balance_analytics.model.column import Column, Kind

SCHEMA_ID = 1
"""Of messages and rows; samples of another schema are skipped and reported."""

SAMPLES_TOPIC = "__steward_samples"
"""Default name of the samples topic."""

DATE = "date"
"""The folder level of samples and of facts: `date=2026-01-31`."""

SAMPLE_ROWS = (
    Column("cluster_id", Kind.STRING, "id of the cluster"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    Column("sampled_at_ms", Kind.INT64, "time at which the end offset was read, by the sampler's clock"),
    Column("round_ms", Kind.INT64, "planned time of the sample: a multiple of the interval"),
    Column("leader", Kind.INT32, "leader, -1 for none"),
    Column("leader_epoch", Kind.INT32, "incremented by every election"),
    Column("replicas", Kind.INT32_LIST, "replicas, the preferred leader first"),
    Column("isr", Kind.INT32_LIST, "in-sync replicas"),
    Column("start_offset", Kind.INT64, "first offset in the log", nullable=True),
    Column("end_offset", Kind.INT64, "offset of the next message", nullable=True),
    Column("size_bytes", Kind.INT64_LIST, "size of each replica's log, in the order of `replicas`", nullable=True),
    Column("committed_offset_sum", Kind.INT64, "sum of the committed offsets of all groups", nullable=True),
    Column("committed_groups", Kind.INT32, "groups with a committed offset"),
)
