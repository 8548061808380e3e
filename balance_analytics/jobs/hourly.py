"""Samples to hourly facts (`model/facts.py`), and the state of each partition at the end of each hour.

A sample belongs to the hour in which most of the round before it lies: the sample at 11:00 tells of 10:59.
Leaves out differences between samples (`differences`) and what is stored (`facts`).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from balance_analytics.jobs.differences import NO_LEADER, ORDER, PARTITION, differences
from balance_analytics.jobs.samples import HOUR_MS
from balance_analytics.model.column import names
from balance_analytics.model.day_states import DAY_STATES, STATE_VALUES
from balance_analytics.model.facts import FACTS, KEY
from balance_analytics.model.sample_rows import DATE

MINUTES_PER_HOUR = 60
MINUTE_MS = 60_000

STATE = "state"
"""A column of hourly rows beside the facts: the partition's state (STATE_VALUES) after its last sample of the hour."""


def hour_of(round_ms: int) -> Column:
    """Return the start of the hour to which a sample belongs, in Unix milliseconds; `round_ms` is the interval of samples."""
    return (sf.floor((sf.col("round_ms") - round_ms // 2) / HOUR_MS) * HOUR_MS).cast("bigint")


def hourly(samples: DataFrame, round_ms: int, states: DataFrame | None = None) -> DataFrame:
    """Return the columns of FACTS and `STATE` for samples; `states` are DAY_STATES before them, one row a partition."""
    marked = differences(samples, round_ms, states).withColumn("hour", sf.timestamp_millis(hour_of(round_ms)))
    sized = sf.col("leader_size").isNotNull() & (sf.col("end_offset") > sf.col("start_offset"))
    held = sf.col("end_offset") - sf.col("start_offset")
    in_hour = marked.groupBy(*KEY).agg(
        sf.mode(sf.when(sf.col("leader") != NO_LEADER, sf.col("leader")), deterministic=True).alias("leader"),
        sf.max_by("replicas", "sampled_at_ms").alias("replicas"),
        sf.sum("elapsed_ms").alias("known_ms"),
        sf.sum("reset").cast("int").alias("resets"),
        sf.sum("moved").cast("int").alias("leader_changes"),
        sf.sum("messages").alias("messages"),
        sf.sum("committed").alias("committed"),
        sf.sum(sf.when(sf.col("committed").isNotNull(), sf.col("elapsed_ms"))).alias("committed_ms"),
        (sf.sum(sf.when(sized, sf.col("leader_size"))) / sf.sum(sf.when(sized, held))).alias("record_bytes"),
        sf.max_by("leader_size", sf.when(sf.col("leader_size").isNotNull(), sf.col("sampled_at_ms"))).alias(
            "size_bytes"
        ),
        sf.sum("growth_bytes").cast("double").alias("size_growth_bytes"),
        sf.max_by(sf.struct(*names(STATE_VALUES)), sf.struct(*ORDER)).alias(STATE),
    )
    return _columns(in_hour)


def _columns(in_hour: DataFrame) -> DataFrame:
    minutes = sf.coalesce(sf.round(sf.col("known_ms") / MINUTE_MS), sf.lit(0)).cast("int")
    # Groups that were known for less than half of the time say nothing of the rest.
    known = sf.col("committed_ms") * 2 >= sf.col("known_ms")
    read = sf.when(known, sf.col("committed") * sf.col("known_ms") / sf.col("committed_ms"))
    out = _bytes(read)
    return in_hour.select(
        *KEY,
        sf.coalesce("leader", sf.lit(NO_LEADER)).alias("leader"),
        "replicas",
        minutes.alias("minutes"),
        sf.greatest(sf.lit(0), MINUTES_PER_HOUR - minutes).alias("gap_minutes"),
        "resets",
        "leader_changes",
        sf.col("messages").cast("double").alias("messages_in"),
        _bytes(sf.col("messages")).alias("bytes_in"),
        out.alias("bytes_out"),
        sf.when(out.isNull(), "none").otherwise("estimate").alias("bytes_out_source"),
        "record_bytes",
        "size_bytes",
        "size_growth_bytes",
        sf.lit("offsets").alias("source_in"),
        STATE,
    ).select(*names(FACTS), STATE)


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


def _bytes(messages: Column) -> Column:
    """Return messages in bytes: none are none whatever their size."""
    return sf.when(messages == 0, sf.lit(0.0)).otherwise(messages.cast("double") * sf.col("record_bytes"))
