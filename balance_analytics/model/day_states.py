"""The state of each partition before a day's samples: its last sample before 23:00 UTC of the day, and the last leader that it had.

A run that computes a day reads these rows and the samples from 23:00 of the day before on, and nothing earlier. A day has rows for the
partitions with a sample in its 24 hours before 23:00. So the state of a partition is its newest row up to that day.
"""

from balance_analytics.model.column import Column, Kind

STATES = "states"
"""Name of the table of these rows, which is stored alongside the facts."""

LAST_HOUR = 23
"""The hour at which the 24 hours of a day end: the sample at midnight belongs to the last hour of the day before."""

STATE_VALUES = (
    Column("sampled_at_ms", Kind.INT64, "time at which the end offset was read, by the sampler's clock"),
    Column("round_ms", Kind.INT64, "planned time of the sample"),
    Column("end_offset", Kind.INT64, "offset of the next message", nullable=True),
    Column("start_offset", Kind.INT64, "first offset in the log", nullable=True),
    Column("leader", Kind.INT32, "leader, -1 for none"),
    Column("leader_epoch", Kind.INT32, "raised with every election"),
    Column("leader_size", Kind.INT64, "size of the leader's log", nullable=True),
    Column("committed_offset_sum", Kind.INT64, "sum of the committed offsets of all groups", nullable=True),
    Column("committed_groups", Kind.INT32, "groups with a committed offset"),
    Column("known_leader", Kind.INT32, "last leader other than -1, null if there was none yet", nullable=True),
)

DAY_STATES = (
    Column("cluster_id", Kind.STRING, "id of the cluster"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    *STATE_VALUES,
)
