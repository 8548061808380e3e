"""Stage `loads`: hourly facts to what each partition, topic, broker and rack carries.

An hour counts with `--min-minutes` seen. Of a broker that is what it led; its disk is the size of all replicas that it holds, each taken
as large as the leader's copy. Partitions not seen in the window's last hours are gone: they are named and in no load.
Leaves out skew and forecasts (`study`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from balance_analytics.jobs.differences import NO_LEADER
from balance_analytics.jobs.files import Table, without_corrupt, write
from balance_analytics.jobs.statistics import DIGITS, HOUR_S, statistics
from balance_analytics.jobs.troubles import AnalyticsError, LeftOuts
from balance_analytics.model.column import ddl, names
from balance_analytics.model.facts import FACTS
from balance_analytics.model.loads import BROKER_HOURS, BROKER_LOADS, PARTITION_LOADS, RACK_LOADS, TOPIC_LOADS
from balance_analytics.model.rate_rows import SOURCE
from balance_analytics.model.sample_rows import DATE

MIN_MINUTES = 5
"""Of an hour, unless --min-minutes says otherwise: the pace of fewer is that of a moment."""

GONE_AFTER_HOURS = 3
"""A partition that nobody saw so long, while others were seen, is deleted; a leader election takes seconds."""

MAX_GONE_NAMED = 20
PARTITION = ("cluster_id", "topic", "partition")


@dataclass(frozen=True, slots=True)
class LoadsOptions:
    """`racks` by broker, of as many as are known; `cluster_id` where facts hold several clusters."""

    window_days: int
    min_hours: int
    cluster_id: str | None
    racks: Mapping[int, str]
    min_minutes: int = MIN_MINUTES


def run(spark: SparkSession, facts_path: str, out: str, options: LoadsOptions, left_out: LeftOuts) -> None:
    """Write all tables of loads under `out`. Raises `AnalyticsError`."""
    stored = Table(spark, facts_path, FACTS, "facts", by_day=True)
    if not stored.exists():
        raise AnalyticsError(f"there are no facts yet at {facts_path}: run the stage `facts` first")
    without_corrupt(stored, left_out, lambda: _write_all(spark, stored, out, options, left_out))


def _write_all(spark: SparkSession, stored: Table, out: str, options: LoadsOptions, left_out: LeftOuts) -> None:
    facts, start_s, end_s = _window(stored, options)
    hours = _rates(facts, start_s, options.min_minutes)
    everything = _partitions(hours, start_s)
    write(everything, f"{out}/loads/partition_all", "loads")
    known = spark.read.parquet(f"{out}/loads/partition_all")
    gone = known.where(sf.unix_timestamp("last_hour") < end_s - GONE_AFTER_HOURS * HOUR_S)
    hours = _without(hours, gone, left_out)
    write(
        known.join(gone, list(PARTITION), "left_anti").select(*names(PARTITION_LOADS)),
        f"{out}/loads/partition",
        "loads",
    )
    by_topic = hours.groupBy("topic", "at").agg(
        sf.sum("rate").alias("rate"),
        sf.sum("rate_out").alias("rate_out"),
        sf.sum("rate_messages").alias("rate_messages"),
        sf.sum(sf.col("size") * sf.size("replicas")).alias("size"),
    )
    write(statistics(by_topic, ["topic"], start_s).select(*names(TOPIC_LOADS)), f"{out}/loads/topic", "loads")
    write(_broker_hours(hours, start_s), f"{out}/loads/broker_hours", "loads")
    brokers = _again(spark.read.schema(ddl(BROKER_HOURS)).parquet(f"{out}/loads/broker_hours"), start_s)
    write(statistics(brokers, ["broker"], start_s).select(*names(BROKER_LOADS)), f"{out}/loads/broker", "loads")
    if options.racks:
        racks = spark.createDataFrame(sorted(options.racks.items()), "broker int, rack string")
        by_rack = (
            brokers.join(sf.broadcast(racks), "broker")
            .groupBy("rack", "at")
            .agg(*(sf.sum(name).alias(name) for name in ("rate", "rate_out", "rate_messages", "size")))
        )
        write(statistics(by_rack, ["rack"], start_s).select(*names(RACK_LOADS)), f"{out}/loads/rack", "loads")


def _window(stored: Table, options: LoadsOptions) -> tuple[DataFrame, int, int]:
    """Return the facts of the window, its start and its end, in seconds; the end is that of the last hour there is."""
    days = stored.read().select(sf.max(DATE).alias("last")).collect()[0].last
    if days is None:
        raise AnalyticsError(f"there are no facts yet at {stored.path}: run the stage `facts` first")
    facts = stored.read(days - dt.timedelta(days=options.window_days + 1))
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


def _again(broker_hours: DataFrame, start_s: int) -> DataFrame:
    """Return the table as the statistics take it."""
    return broker_hours.select(
        "broker",
        ((sf.unix_timestamp("hour") - start_s) / HOUR_S).cast("int").alias("at"),
        sf.col("bytes_in").alias("rate"),
        sf.col("bytes_out").alias("rate_out"),
        sf.col("messages_in").alias("rate_messages"),
        sf.when(sf.col("copies") > 0, sf.col("size_bytes")).alias("size"),
    )
