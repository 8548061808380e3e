"""Samples as rows: a partition at one look, as they lie in Parquet and as the pipeline takes them out of the topic's messages.

What could not be asked is null, never a number. Files are partitioned by `date`, the UTC day of `round_ms`.
Leaves out the message of the samples topic, whose arrays the pipeline lays out into these rows, and who looks.
"""

from balance_analytics.model.column import Column, Kind

SCHEMA_ID = 1
"""Of messages and rows alike; another one is left out, and named."""

SAMPLES_TOPIC = "__steward_samples"
"""Where looks are kept and found unless somebody says otherwise."""

DATE = "date"
"""The folder level of samples and of facts: `date=2026-01-31`."""

SAMPLE_ROWS = (
    Column("cluster_id", Kind.STRING, "the cluster's own id"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "its number in the topic"),
    Column("sampled_at_ms", Kind.INT64, "when it was asked, by the sampler's clock"),
    Column("round_ms", Kind.INT64, "when the look was planned: a whole minute"),
    Column("leader", Kind.INT32, "broker that leads, -1 for none"),
    Column("leader_epoch", Kind.INT32, "raised with every election"),
    Column("replicas", Kind.INT32_LIST, "brokers that hold it, the preferred leader first"),
    Column("isr", Kind.INT32_LIST, "those of them that are in sync"),
    Column("start_offset", Kind.INT64, "first offset that is still held", nullable=True),
    Column("end_offset", Kind.INT64, "offset of the next message", nullable=True),
    Column("size_bytes", Kind.INT64_LIST, "size of each replica's log, in the order of `replicas`", nullable=True),
    Column("committed_offset_sum", Kind.INT64, "committed offsets of all groups, added", nullable=True),
    Column("committed_groups", Kind.INT32, "groups that have committed"),
)
