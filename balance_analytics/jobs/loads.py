"""Stage `loads`: hourly facts to what each partition, topic, broker and rack carries.

An hour counts with `--min-minutes` seen. Of a broker that is what it led; its disk is the size of all replicas that it holds, each taken
as large as the leader's copy. Partitions not seen in the window's last hours are gone: they are named and in no load.
Leaves out skew and forecasts (`study`).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from balance_analytics.jobs.differences import NO_LEADER
from balance_analytics.jobs.files import Table, without_corrupt, write
from balance_analytics.jobs.publishing import Published, new_run, staging
from balance_analytics.jobs.statistics import DIGITS, HOUR_S, statistics
from balance_analytics.jobs.troubles import AnalyticsError, LeftOuts
from balance_analytics.model.column import names
from balance_analytics.model.facts import FACTS
from balance_analytics.model.loads import BROKER_HOURS, BROKER_HOURS_PART, PARTITION_LOADS, PARTITIONS_PART
from balance_analytics.model.rate_rows import SOURCE

MIN_MINUTES = 5
"""Of an hour, unless --min-minutes says otherwise: the pace of fewer is that of a moment."""

GONE_AFTER_HOURS = 3
"""A partition that nobody saw so long, while others were seen, is deleted; a leader election takes seconds."""

MAX_GONE_NAMED = 20
PARTITION = ("cluster_id", "topic", "partition")


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
    stored = published.table(facts, FACTS, *(day for day in facts.days() if day >= first), by_day=True)
    with staging(spark, out, options.run, options.now_ms) as folder:
        without_corrupt(stored, left_out, lambda: _publish_all(stored, folder, out, options, left_out))


def _publish_all(stored: Table, folder: str, out: str, options: LoadsOptions, left_out: LeftOuts) -> None:
    facts, start_s, end_s = _window(stored, options)
    hours = _rates(facts, start_s, options.min_minutes)
    write(_partitions(hours, start_s), f"{folder}/partitions", "loads")
    known = stored.spark.read.parquet(f"{folder}/partitions")
    gone = known.where(sf.unix_timestamp("last_hour") < end_s - GONE_AFTER_HOURS * HOUR_S)
    hours = _without(hours, gone, left_out)
    published = loads_below(stored.spark, out)
    base = published.newest(left_out)
    partitions = known.join(gone, list(PARTITION), "left_anti").select(*names(PARTITION_LOADS))
    parts = {
        **published.write(partitions, options.run, PARTITIONS_PART),
        **published.write(_broker_hours(hours, start_s), options.run, BROKER_HOURS_PART),
    }
    published.publish(base, options.run, parts, options.now_ms, keeps=False)
    published.sweep(options.now_ms)


def loads_below(spark: SparkSession, out: str) -> Published:
    """Return the loads under a folder for output; their parts are `PARTITIONS_PART` and `BROKER_HOURS_PART`."""
    return Published(spark, f"{out}/loads", "loads")


def _window(stored: Table, options: LoadsOptions) -> tuple[DataFrame, int, int]:
    """Return the facts of the window, its start and its end, in seconds; the end is that of the last hour there is."""
    facts = stored.read()
    if options.cluster_id is not None:
        facts = facts.where(sf.col("cluster_id") == options.cluster_id)
    looked = (
        facts.where(sf.col("minutes") >= options.min_minutes)
        .agg(
            sf.max(sf.unix_timestamp("hour")).alias("last"),
            sf.min(sf.unix_timestamp("hour")).alias("first"),
            sf.sort_array(sf.collect_set("cluster_id")).alias("clusters"),
        )
        .collect()[0]
    )
    if not looked.clusters and options.cluster_id is None:
        raise AnalyticsError(
            f"no hour at {stored.path} was looked at for {options.min_minutes} minutes: let `steward sampler` run on"
        )
    if not looked.clusters:
        raise AnalyticsError(f"the facts at {stored.path} know no cluster {options.cluster_id}: check --cluster-id")
    if len(looked.clusters) > 1:
        raise AnalyticsError(
            f"the facts at {stored.path} are of several clusters: say which by --cluster-id ({', '.join(looked.clusters)})"
        )
    end_s = looked.last + HOUR_S
    start_s = max(looked.first, end_s - options.window_days * 24 * HOUR_S)
    if (end_s - start_s) // HOUR_S < options.min_hours:
        raise AnalyticsError(
            f"there are facts of {(end_s - start_s) // HOUR_S} hours, too few to study: run this again once there are"
            f" {options.min_hours} (--min-hours)"
        )
    return facts.where(sf.unix_timestamp("hour") >= start_s), start_s, end_s


def _rates(facts: DataFrame, start_s: int, min_minutes: int) -> DataFrame:
    """Return the facts with `at`, hours since the start, and amounts as rates; null where too little was seen."""
    seen = sf.when(sf.col("minutes") >= min_minutes, sf.col("minutes") * 60)
    return facts.select(
        *PARTITION,
        "hour",
        ((sf.unix_timestamp("hour") - start_s) / HOUR_S).cast("int").alias("at"),
        "leader",
        "replicas",
        (sf.col("bytes_in") / seen).alias("rate"),
        (sf.col("bytes_out") / seen).alias("rate_out"),
        (sf.col("messages_in") / seen).alias("rate_messages"),
        sf.col("size_bytes").alias("size"),
        "leader_changes",
        "resets",
        (sf.col("source_in") == SOURCE).alias("rated_in"),
        (sf.col("bytes_out_source") == SOURCE).alias("rated_out"),
    )


def _partitions(hours: DataFrame, start_s: int) -> DataFrame:
    last = (
        sf.max_by("leader", "at").alias("leader"),
        sf.max_by("replicas", "at").alias("replicas"),
        sf.max("hour").alias("last_hour"),
        sf.sum("leader_changes").alias("leader_changes"),
        sf.sum("resets").alias("resets"),
        sf.count("rate_out").cast("int").alias("hours_out"),
        sf.count_if(sf.col("rate").isNotNull() & sf.col("rated_in")).cast("int").alias("hours_in_rated"),
        sf.count_if(sf.col("rate_out").isNotNull() & sf.col("rated_out")).cast("int").alias("hours_out_rated"),
    )
    return statistics(hours, PARTITION, start_s, *last).select(*names(PARTITION_LOADS), "last_hour")


def _without(hours: DataFrame, gone: DataFrame, left_out: LeftOuts) -> DataFrame:
    """Return the hours of what is there at the end; topics that are gone are named."""
    topics = (
        gone.groupBy("topic").agg(sf.count("*").alias("partitions"), sf.max("last_hour").alias("last")).orderBy("topic")
    )
    found = topics.collect()
    for row in found[:MAX_GONE_NAMED]:
        left_out.add(
            f"topic {row.topic}: {row.partitions} partitions not seen since {row.last:%Y-%m-%d %H:00} UTC, deleted meanwhile",
            1,
            "nothing, if that was meant",
        )
    left_out.add("more topics deleted meanwhile", max(0, len(found) - MAX_GONE_NAMED), "nothing, if that was meant")
    return hours.join(sf.broadcast(gone.select(*PARTITION)), list(PARTITION), "left_anti") if found else hours


def _broker_hours(hours: DataFrame, start_s: int) -> DataFrame:
    led = (
        hours.where((sf.col("leader") != NO_LEADER) & sf.col("rate").isNotNull())
        .groupBy(sf.col("leader").alias("broker"), "at")
        .agg(
            sf.count("*").alias("leaders"),
            *(
                sf.coalesce(sf.round(sf.sum(rate), DIGITS), sf.lit(0.0)).alias(name)
                for rate, name in (("rate", "bytes_in"), ("rate_out", "bytes_out"), ("rate_messages", "messages_in"))
            ),
        )
    )
    sized = hours.where(sf.col("size").isNotNull()).select("at", "size", sf.explode("replicas").alias("broker"))
    held = sized.groupBy("broker", "at").agg(
        sf.count("*").alias("copies"), sf.sum("size").cast("double").alias("size_bytes")
    )
    both = led.join(held, ["broker", "at"], "full").fillna(0)
    return (
        both.withColumn("hour", sf.timestamp_seconds(sf.col("at").cast("bigint") * HOUR_S + start_s))
        .select(*names(BROKER_HOURS))
        .coalesce(1)
        .sortWithinPartitions("broker", "hour")
    )
