"""Samples to hourly facts (`model/facts.py`), and the state of each partition at the end of each hour.

A sample belongs to the hour in which most of the round before it is: the sample at 11:00 is of 10:59. Samples are packed
(`packed_samples`), then shuffled, so that all of a partition meet in one task, which computes with numpy (`sample_hours`).
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from balance_analytics.jobs.arrow import map_batches
from balance_analytics.jobs.packed_samples import FIELDS, PACKED, PARTITION, packed_batches
from balance_analytics.jobs.sample_hours import SAMPLE_HOURS, STATE_PREFIX, hour_batches
from balance_analytics.jobs.samples import HOUR_MS
from balance_analytics.model.column import names
from balance_analytics.model.day_states import DAY_STATES, STATE_VALUES
from balance_analytics.model.facts import FACTS
from balance_analytics.model.sample_rows import DATE

STATE = "state"
"""A column of hourly rows in addition to the facts: the partition's state (STATE_VALUES) after its last sample of the hour."""

ORDER = ("sampled_at_ms", "round_ms", "end_offset", "start_offset", "leader", "leader_epoch", "leader_size")
"""Of a partition's states: by time; states of one time have an order too, so that two runs compute the same."""


def hour_of(round_ms: int) -> Column:
    """Return the start of the hour to which a sample belongs, in Unix milliseconds; `round_ms` is the interval of samples."""
    return (sf.floor((sf.col("round_ms") - round_ms // 2) / HOUR_MS) * HOUR_MS).cast("bigint")


def hourly(samples: DataFrame, round_ms: int, states: DataFrame | None = None) -> DataFrame:
    """Return the columns of FACTS and `STATE` for samples; `states` are DAY_STATES before them, one row a partition."""
    packed = map_batches(_behind_states(samples, states), partial(packed_batches, round_ms), PACKED)
    # Numbers are compared without reading the rows; names only where their numbers are the same.
    together = packed.repartition(*PARTITION).sortWithinPartitions(sf.xxhash64(*PARTITION), *PARTITION)
    found = map_batches(together, partial(hour_batches, round_ms), SAMPLE_HOURS)
    state = sf.struct(*(sf.col(f"{STATE_PREFIX}{value.name}").alias(value.name) for value in STATE_VALUES))
    return found.select(*names(FACTS), state.alias(STATE))


def _behind_states(samples: DataFrame, states: DataFrame | None) -> DataFrame:
    """Return samples and states as rows of one frame, with the columns that are packed."""
    leader_size = sf.get("size_bytes", (sf.array_position("replicas", sf.col("leader")) - 1).cast("int"))
    added = {"leader_size": leader_size, "known_leader": sf.lit(None).cast("int"), "is_sample": sf.lit(1)}
    columns = (*PARTITION, "replicas", *FIELDS)
    rows = samples.withColumns(added).select(*columns)
    if states is None:
        return rows
    added = {"replicas": sf.lit(None).cast("array<int>"), "is_sample": sf.lit(0)}
    return rows.unionByName(states.withColumns(added).select(*columns))


def states_of(hours: DataFrame) -> DataFrame:
    """Return DAY_STATES and the day of each: the last state of the hours of a day, which end at 23:00."""
    last = hours.groupBy(*PARTITION, state_day()).agg(sf.max_by(STATE, "hour").alias(STATE))
    return last.select(*PARTITION, f"{STATE}.*", DATE).select(*names(DAY_STATES), DATE)


def state_day() -> Column:
    """Return the day to whose states an `hour` belongs, as `DATE`: days of states end at 23:00."""
    return sf.to_date(sf.col("hour") + sf.expr("interval 1 hour")).alias(DATE)


def newest_states(states: DataFrame, *by: str) -> DataFrame:
    """Return the newest of DAY_STATES of each partition, or of each partition and further columns `by`."""
    newest = sf.max_by(sf.struct(*names(STATE_VALUES)), sf.struct(*ORDER)).alias(STATE)
    grouped = states.groupBy(*PARTITION, *by).agg(newest)
    return grouped.select(*PARTITION, *by, f"{STATE}.*").select(*names(DAY_STATES), *by)
