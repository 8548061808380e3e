"""Stage `loads`: stored facts to what each partition carries, and each broker by hour.

Facts are read once and shuffled once: all days of a partition meet in one task, which computes the statistics of its partitions and its
part of the brokers' sums with numpy (`study/partition_hours.py`), and writes both into a staged table. The window is found by the days of
the manifest and the minutes of the first and the last day.

An hour counts with `--min-minutes` seen. Of a broker that is what it led; its disk is the size of all replicas that it holds, each taken
as large as the leader's copy. Partitions not seen in the window's last hours are gone: they are named and in no load.
Leaves out the computation of a task (`window_loads`), skew and forecasts (`study`).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from balance_analytics.jobs.arrow import map_batches
from balance_analytics.jobs.day_rows import SERIES, StoredFacts
from balance_analytics.jobs.files import write
from balance_analytics.jobs.publishing import Published, new_run, staging
from balance_analytics.jobs.troubles import AnalyticsError, LeftOuts
from balance_analytics.jobs.window_loads import (
    BROKER,
    COUNTS,
    LAST_HOUR,
    SOURCES,
    STAGED,
    STAGED_INPUT,
    STEADY,
    Window,
    loads_batches,
)
from balance_analytics.model.column import Kind, names
from balance_analytics.model.loads import BROKER_HOURS, BROKER_HOURS_PART, DIGITS, PARTITION_LOADS, PARTITIONS_PART
from balance_analytics.model.rate_rows import SOURCE

HOUR_S = 3600
DAY_S = 24 * HOUR_S

MIN_MINUTES = 5
"""Of an hour, unless --min-minutes says otherwise: the pace of fewer is that of a moment."""

MAX_GONE_NAMED = 20


@dataclass(frozen=True, slots=True)
class LoadsOptions:
    """`cluster_id` where facts are of several clusters; `run` names the files of this run, `now_ms` is its time."""

    window_days: int
    min_hours: int
    cluster_id: str | None
    now_ms: int
    min_minutes: int = MIN_MINUTES
    run: str = field(default_factory=new_run)


def run(spark: SparkSession, facts_path: str, out: str, options: LoadsOptions, left_out: LeftOuts) -> None:
    """Publish the tables of loads under `<out>/loads`. Raises `AnalyticsError`."""
    published = Published(spark, facts_path, "facts")
    facts = published.newest(left_out)
    if not facts.days():
        raise AnalyticsError(f"there are no facts yet at {facts_path}: run the stage `facts` first")
    last = dt.date.fromisoformat(facts.days()[-1])
    first = (last - dt.timedelta(days=options.window_days + 1)).isoformat()
    stored = StoredFacts.of(published, facts).only(day for day in facts.days() if day >= first)
    with staging(spark, out, options.run, options.now_ms) as folder:
        stored.without_corrupt(left_out, lambda: _publish_all(spark, stored, f"{folder}/loads", out, options, left_out))


def _publish_all(
    spark: SparkSession, stored: StoredFacts, staged: str, out: str, options: LoadsOptions, left_out: LeftOuts
) -> None:
    window = _window(stored, options)
    write(_computed(stored, window, options.cluster_id), staged, "loads")
    computed = spark.read.parquet(staged)
    partitions = computed.where(sf.col("topic").isNotNull())
    _check_clusters(stored, [row.cluster_id for row in partitions.select("cluster_id").distinct().collect()])
    is_gone = sf.unix_timestamp(LAST_HOUR) < window.gone_before_s
    _note_gone(partitions.where(is_gone), left_out)
    published = loads_below(spark, out)
    base = published.newest(left_out)
    remaining = partitions.where(~is_gone).select(*names(PARTITION_LOADS))
    parts = {
        **published.write(remaining, options.run, PARTITIONS_PART),
        **published.write(_broker_hours(computed), options.run, BROKER_HOURS_PART),
    }
    published.publish(base, options.run, parts, options.now_ms, keeps=False)
    published.sweep(options.now_ms)


def loads_below(spark: SparkSession, out: str) -> Published:
    """Return the loads under a folder for output; their parts are `PARTITIONS_PART` and `BROKER_HOURS_PART`."""
    return Published(spark, f"{out}/loads", "loads")


def _window(stored: StoredFacts, options: LoadsOptions) -> Window:
    """Return the window; it ends with the last hour that counts."""
    days = list(stored.parts)
    ends = _ends(stored.only({days[0], days[-1]}), options) if stored.is_complete() else None
    if ends is None or (_day_of(ends.first), _day_of(ends.last)) != (days[0], days[-1]):
        # A corrupt file, or a day without an hour that counts: the ends are anywhere.
        ends = _ends(stored, options)
    clusters = ends.clusters if ends is not None else []
    if not clusters and options.cluster_id is None:
        raise AnalyticsError(
            f"no hour at {stored.days.path} was looked at for {options.min_minutes} minutes: let `steward sampler` run on"
        )
    if not clusters or ends is None:
        raise AnalyticsError(
            f"the facts at {stored.days.path} know no cluster {options.cluster_id}: check --cluster-id"
        )
    _check_clusters(stored, clusters)
    end_s = ends.last + HOUR_S
    start_s = max(ends.first, end_s - options.window_days * DAY_S)
    if (end_s - start_s) // HOUR_S < options.min_hours:
        raise AnalyticsError(
            f"there are facts of {(end_s - start_s) // HOUR_S} hours, too few to study: run this again once there are"
            f" {options.min_hours} (--min-hours)"
        )
    last_day_s = int(dt.datetime.fromisoformat(days[-1]).replace(tzinfo=dt.UTC).timestamp())
    return Window(start_s, end_s, (last_day_s + DAY_S - start_s) // HOUR_S, options.min_minutes)


@dataclass(frozen=True, slots=True)
class _Ends:
    """The first and the last hour that counts, in Unix time, and whose facts these are."""

    first: int
    last: int
    clusters: list[str]


def _ends(stored: StoredFacts, options: LoadsOptions) -> _Ends | None:
    """Return the ends of some facts; None if no hour counts."""
    counting = stored.minutes().where(sf.col("minutes") >= options.min_minutes)
    if options.cluster_id is not None:
        counting = counting.where(sf.col("cluster_id") == options.cluster_id)
    hour_s = sf.unix_timestamp("hour")
    (row,) = counting.agg(
        sf.min(hour_s).alias("first"), sf.max(hour_s).alias("last"), sf.collect_set("cluster_id").alias("clusters")
    ).collect()
    return _Ends(row.first, row.last, sorted(row.clusters)) if row.clusters else None


def _day_of(seconds: int) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).date().isoformat()


def _check_clusters(stored: StoredFacts, clusters: list[str]) -> None:
    if len(clusters) > 1:
        raise AnalyticsError(
            f"the facts at {stored.days.path} are of several clusters: say which by --cluster-id ({', '.join(sorted(clusters))})"
        )


def _computed(stored: StoredFacts, window: Window, cluster_id: str | None) -> DataFrame:
    """Return STAGED: a row for each partition, and those of each task for brokers by hour, rounded where they are final."""
    days = stored.only(day for day in stored.parts if day >= _day_of(window.start_s)).by_day()
    if cluster_id is not None:
        days = days.where(sf.col("cluster_id") == cluster_id)
    # Each value that crosses into Python costs; on most days these columns say the same in every hour, or nothing.
    steady = (_steady(name).alias(name) for name in STEADY)
    counts = (sf.when(sf.array_max(name) > 0, sf.col(name)).alias(name) for name in COUNTS)
    sources = (sf.when(sf.array_contains(name, SOURCE), sf.col(name)).alias(name) for name in SOURCES)
    others = [name for name in names(STAGED_INPUT) if name not in {*STEADY, *COUNTS, *SOURCES}]
    # Numbers are compared without reading the rows; names only where their numbers are the same.
    order = sf.xxhash64(*SERIES)
    rows = days.select(*others, *steady, *counts, *sources).repartition(*SERIES).sortWithinPartitions(order, *SERIES)
    found = map_batches(rows.select(*names(STAGED_INPUT)), partial(loads_batches, window), STAGED)
    rounded = [column.name for column in PARTITION_LOADS if column.kind is Kind.FLOAT64]
    return found.withColumns({name: sf.round(name, DIGITS) for name in rounded})


def _steady(name: str) -> Column:
    different = sf.array_distinct(name)
    return sf.when(sf.size(different) == 1, different).otherwise(sf.col(name))


def _note_gone(gone: DataFrame, left_out: LeftOuts) -> None:
    """Name the topics that are gone."""
    topics = gone.groupBy("topic").agg(sf.count("*").alias("partitions"), sf.max(LAST_HOUR).alias("last"))
    found = topics.orderBy("topic").collect()
    for row in found[:MAX_GONE_NAMED]:
        left_out.add(
            f"topic {row.topic}: {row.partitions} partitions not seen since {row.last:%Y-%m-%d %H:00} UTC, deleted meanwhile",
            1,
            "nothing, if that was meant",
        )
    left_out.add("more topics deleted meanwhile", max(0, len(found) - MAX_GONE_NAMED), "nothing, if that was meant")


def _broker_hours(computed: DataFrame) -> DataFrame:
    """Return BROKER_HOURS: the sums of all tasks."""
    rows = computed.where(sf.col(f"{BROKER}broker").isNotNull())
    keys = [sf.col(BROKER + name).alias(name) for name in ("broker", "hour")]
    sums = []
    for column in BROKER_HOURS[len(keys) :]:
        total = sf.sum(BROKER + column.name)
        sums.append((total if column.kind is Kind.INT64 else sf.round(total, DIGITS)).alias(column.name))
    return rows.groupBy(*keys).agg(*sums).coalesce(1).sortWithinPartitions("broker", "hour")
