"""From looks to differences: what changed in a partition since the look before, or that nothing can be said.

Counters only count while somebody looks and nobody begins them anew. So a difference is valid when both looks know the end offset, lie
no further apart than `MAX_ROUNDS` rounds, and no offset went back; all others are marked and give no number:

- too far apart, or not known: a gap. What came meanwhile has no minute to belong to.
- the end or the start lies below that of the look before: a reset (a topic deleted and made again, a log cut by an unclean election).
- another leader than the last one known: counted; offsets are the same on every replica, so that messages go on, but sizes are
  not, so that the growth of the leader's copy is not taken.
- the number of groups changed: committed offsets cannot be compared.

Each window is a partition's looks in order of time. Leaves out hours (`facts`).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

MAX_ROUNDS = 2.5
"""One look may be missing: the two minutes' messages are still known within the hour."""

PARTITION = ("cluster_id", "topic", "partition")
NO_LEADER = -1


def differences(looks: DataFrame, round_ms: int) -> DataFrame:
    """Return the looks with what changed: `elapsed_ms`, `messages` and `committed`, `growth_bytes` (null when not valid), flags.

    A look that is there twice (a sampler that wrote again) counts once.
    """
    leader_size = sf.get("size_bytes", (sf.array_position("replicas", sf.col("leader")) - 1).cast("int"))
    sized = looks.withColumn("leader_size", leader_size)
    order = ("sampled_at_ms", "round_ms", "end_offset", "start_offset", "leader", "leader_epoch", "leader_size")
    in_time = Window.partitionBy(*PARTITION).orderBy(*order)
    so_far = in_time.rowsBetween(Window.unboundedPreceding, -1)
    before = (
        "sampled_at_ms",
        "end_offset",
        "start_offset",
        "leader",
        "leader_size",
        "committed_offset_sum",
        "committed_groups",
    )
    with_before = sized.select(
        "*",
        *(sf.lag(name).over(in_time).alias(f"{name}_before") for name in before),
        sf.last(sf.when(sf.col("leader") != NO_LEADER, sf.col("leader")), ignorenulls=True)
        .over(so_far)
        .alias("last_leader"),
    )
    elapsed = sf.col("sampled_at_ms") - sf.col("sampled_at_ms_before")
    near = elapsed.between(1, int(MAX_ROUNDS * round_ms))
    reset = sf.coalesce(_fell("end_offset") | _fell("start_offset"), sf.lit(False))
    messages = sf.col("end_offset") - sf.col("end_offset_before")
    committed = sf.col("committed_offset_sum") - sf.col("committed_offset_sum_before")
    same_groups = sf.col("committed_groups") == sf.col("committed_groups_before")
    same_leader = sf.col("leader") == sf.col("leader_before")
    moved = (sf.col("leader") != NO_LEADER) & (sf.col("leader") != sf.col("last_leader"))
    marked = with_before.where(elapsed.isNull() | (elapsed != 0)).select(
        "*",
        reset.cast("int").alias("reset"),
        sf.coalesce(moved, sf.lit(False)).cast("int").alias("moved"),
        sf.when(near & ~reset & messages.isNotNull(), elapsed).alias("elapsed_ms"),
        sf.when(near & ~reset, messages).alias("messages"),
        sf.when(near & ~reset & same_groups & (committed >= 0), committed).alias("committed"),
        sf.when(near & ~reset & same_leader, sf.col("leader_size") - sf.col("leader_size_before")).alias(
            "growth_bytes"
        ),
    )
    return marked.drop(*(f"{name}_before" for name in before), "last_leader")


def _fell(name: str) -> Column:
    return sf.col(name) < sf.col(f"{name}_before")
