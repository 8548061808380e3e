"""The state of each partition before a day's samples: its last sample before 23:00 UTC of the day, and the last leader that it had.

A run that computes a day reads these rows and the samples from 23:00 of the day before on, and nothing earlier. A day has rows for the
partitions with a sample in its 24 hours before 23:00. So the state of a partition is its newest row up to that day.
Leaves out how facts follow from samples: `jobs/differences.py`.
"""

from balance_analytics.model.column import Column, Kind

STATES = "states"
"""The table of these rows, beside the facts."""

LAST_HOUR = 23
"""The hour at which the 24 hours of a day end: the sample at midnight belongs to the last hour of the day before."""

STATE_VALUES = (
    Column("sampled_at_ms", Kind.INT64, "when it was asked, by the sampler's clock"),
    Column("round_ms", Kind.INT64, "when the sample was planned"),
    Column("end_offset", Kind.INT64, "offset of the next message", nullable=True),
    Column("start_offset", Kind.INT64, "first offset that was still held", nullable=True),
    Column("leader", Kind.INT32, "broker that led, -1 for none"),
    Column("leader_epoch", Kind.INT32, "raised with every election"),
    Column("leader_size", Kind.INT64, "size of the leader's log", nullable=True),
    Column("committed_offset_sum", Kind.INT64, "committed offsets of all groups, added", nullable=True),
    Column("committed_groups", Kind.INT32, "groups that had committed"),
    Column("known_leader", Kind.INT32, "the last broker that led, null before the first", nullable=True),
)

DAY_STATES = (
    Column("cluster_id", Kind.STRING, "the cluster's own id"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "its number in the topic"),
    *STATE_VALUES,
)
