"""From samples to differences: what changed in a partition since the sample before, or that nothing can be said.

Counters only count while they are sampled and are not set back. So a difference is valid when both samples know the end offset, lie
no further apart than `MAX_ROUNDS` rounds, and no offset went back; all others are marked and give no number:

- too far apart, or not known: a gap. What came meanwhile has no minute to belong to.
- the end or the start lies below that of the sample before: a reset (a topic deleted and created again, a log cut by an unclean election).
- another leader than the last one known: counted; offsets are the same on every replica, so that messages go on, but sizes are
  not, so that the growth of the leader's copy is not taken.
- the number of groups changed: committed offsets cannot be compared.

Each window is a partition's samples in order of time, behind its state before them (`model/day_states.py`). Leaves out hours (`hourly`).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from balance_analytics.model.column import names
from balance_analytics.model.day_states import DAY_STATES

MAX_ROUNDS = 2.5
"""One sample may be missing: the two minutes' messages are still known within the hour."""

PARTITION = ("cluster_id", "topic", "partition")
NO_LEADER = -1

BEFORE = (
    "sampled_at_ms",
    "end_offset",
    "start_offset",
    "leader",
    "leader_size",
    "committed_offset_sum",
    "committed_groups",
)
"""What is compared with the sample before."""

ORDER = ("sampled_at_ms", "round_ms", "end_offset", "start_offset", "leader", "leader_epoch", "leader_size")
"""Of a partition's samples: by time; samples of one time have an order too, so that two runs compute the same."""

IS_STATE = "is_state"


def differences(samples: DataFrame, round_ms: int, states: DataFrame | None = None) -> DataFrame:
    """Return the samples with what changed: `elapsed_ms`, `messages` and `committed`, `growth_bytes` (null when not valid), flags.

    `states` are DAY_STATES before the samples, one row a partition. `known_leader` is the last leader so far. A sample that is there
    twice (a sampler that wrote again) counts once.
    """
    in_time = Window.partitionBy(*PARTITION).orderBy("sampled_at_ms", sf.desc(IS_STATE), *ORDER[1:])
    so_far = in_time.rowsBetween(Window.unboundedPreceding, -1)
    with_before = _behind_states(samples, states).select(
        "*",
        *(sf.lag(name).over(in_time).alias(f"{name}_before") for name in BEFORE),
        sf.last("known_leader", ignorenulls=True).over(so_far).alias("last_leader"),
    )
    elapsed = sf.col("sampled_at_ms") - sf.col("sampled_at_ms_before")
    near = elapsed.between(1, int(MAX_ROUNDS * round_ms))
    reset = sf.coalesce(_fell("end_offset") | _fell("start_offset"), sf.lit(False))
    messages = sf.col("end_offset") - sf.col("end_offset_before")
    committed = sf.col("committed_offset_sum") - sf.col("committed_offset_sum_before")
    same_groups = sf.col("committed_groups") == sf.col("committed_groups_before")
    same_leader = sf.col("leader") == sf.col("leader_before")
    moved = (sf.col("leader") != NO_LEADER) & (sf.col("leader") != sf.col("last_leader"))
    fresh = ~sf.col(IS_STATE) & (elapsed.isNull() | (elapsed != 0))
    marked = with_before.where(fresh).select(
        *(name for name in with_before.columns if name != "known_leader"),
        sf.coalesce("known_leader", "last_leader").alias("known_leader"),
        reset.cast("int").alias("reset"),
        sf.coalesce(moved, sf.lit(False)).cast("int").alias("moved"),
        sf.when(near & ~reset & messages.isNotNull(), elapsed).alias("elapsed_ms"),
        sf.when(near & ~reset, messages).alias("messages"),
        sf.when(near & ~reset & same_groups & (committed >= 0), committed).alias("committed"),
        sf.when(near & ~reset & same_leader, sf.col("leader_size") - sf.col("leader_size_before")).alias(
            "growth_bytes"
        ),
    )
    return marked.drop(*(f"{name}_before" for name in BEFORE), "last_leader", IS_STATE)


def _behind_states(samples: DataFrame, states: DataFrame | None) -> DataFrame:
    """Return the samples and the states as rows of one frame."""
    leader_size = sf.get("size_bytes", (sf.array_position("replicas", sf.col("leader")) - 1).cast("int"))
    sized = samples.withColumns(
        {
            "leader_size": leader_size,
            "known_leader": sf.when(sf.col("leader") != NO_LEADER, sf.col("leader")),
            IS_STATE: sf.lit(False),
        }
    )
    if states is None:
        return sized
    return sized.unionByName(
        states.select(*names(DAY_STATES)).withColumn(IS_STATE, sf.lit(True)), allowMissingColumns=True
    )


def _fell(name: str) -> Column:
    return sf.col(name) < sf.col(f"{name}_before")
