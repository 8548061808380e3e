"""Stage `facts`: samples to hourly facts, day by day.

Idempotent: a day that has samples is computed again, and published with the other days in one step (`publishing`). Late data is included
in the same way, as long as it lies in the window. An hour that is stored with more minutes than the samples still show (retention took them)
stays: of two facts of one hour that of more minutes wins, of equals that with Prometheus' rates, else the new one. So a second run
changes nothing, and an hour keeps its rates when Prometheus no longer has them.

A look belongs to the hour in which most of the round before it lies: the look at 11:00 tells of 10:59.
Leaves out differences between looks (`differences`), where samples come from (`samples`) and how rates are spread (`rates`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from balance_analytics.jobs.differences import NO_LEADER, PARTITION, differences
from balance_analytics.jobs.files import Table, without_corrupt
from balance_analytics.jobs.publishing import Parts, Published, new_run, staging
from balance_analytics.jobs.rates import stage, tell_foreign, with_rates
from balance_analytics.jobs.samples import HOUR_MS, Samples
from balance_analytics.jobs.storage import exists
from balance_analytics.jobs.troubles import AnalyticsError, LeftOuts, told_of
from balance_analytics.model.column import names
from balance_analytics.model.facts import FACTS, KEY
from balance_analytics.model.rate_rows import SOURCE, TOPIC_HOURS
from balance_analytics.model.sample_rows import DATE

MINUTES_PER_HOUR = 60
MINUTE_MS = 60_000

LOOK_BACK_MS = HOUR_MS
"""Read before the window, so that its first hour has a look to differ from."""

PARTITIONS_PER_FILE = 50_000
"""1.2 M rows a day: some 40 MB, which a task holds in memory."""


@dataclass(frozen=True, slots=True)
class FactsOptions:
    """`now_ms` is the time of the run; `window_days` how far back samples are read; `round_ms` how often the sampler looks.

    `rates` is where Prometheus' rates are, if anywhere. `run` names the files of this run.
    """

    now_ms: int
    window_days: int
    round_ms: int = MINUTE_MS
    rates: str | None = None
    run: str = field(default_factory=new_run)


def run(
    spark: SparkSession, samples: Samples, facts_path: str, out: str, options: FactsOptions, left_out: LeftOuts
) -> None:
    """Bring the facts up to date; tables that only this run needs are below `out`. Raises `AnalyticsError`."""
    with staging(spark, out, options.run, options.now_ms) as folder:
        _stage_facts(spark, samples, f"{folder}/facts", options, left_out)
        _store(spark, folder, facts_path, samples, options, left_out)


def _stage_facts(spark: SparkSession, samples: Samples, staged: str, options: FactsOptions, left_out: LeftOuts) -> None:
    """Compute the facts of the window's samples."""
    table = None if samples.in_kafka else samples.table()
    if table is not None and not table.exists():
        raise AnalyticsError(
            f"there are no samples yet at {samples.place}: start `steward sampler`, and run this once it has looked for some hours"
        )
    since_ms = (options.now_ms - options.window_days * 24 * HOUR_MS) // HOUR_MS * HOUR_MS

    def compute() -> None:
        rows = samples.rows(table, options.now_ms, since_ms - LOOK_BACK_MS)
        fresh = hourly(rows, options.round_ms).where(sf.unix_millis("hour") >= since_ms)
        # Samples are read only now: what fails is theirs.
        fresh.withColumn(DATE, sf.to_date("hour")).write.mode("overwrite").parquet(staged)

    with told_of(staged, "staged facts"):
        exists(spark, staged)  # where facts go is asked first, so that it is told as itself when it is away
    if table is None:
        with told_of(samples.place, "samples"):
            compute()
    else:
        without_corrupt(table, left_out, compute)


def hourly(looks: DataFrame, round_ms: int) -> DataFrame:
    """Return the columns of `model/facts.py` out of looks."""
    hour_ms = sf.floor((sf.col("round_ms") - round_ms // 2) / HOUR_MS) * HOUR_MS
    marked = differences(looks, round_ms).withColumn("hour", sf.timestamp_millis(hour_ms.cast("bigint")))
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
    ).select(*names(FACTS))


def _bytes(messages: Column) -> Column:
    """Return messages in bytes: none are none whatever their size."""
    return sf.when(messages == 0, sf.lit(0.0)).otherwise(messages.cast("double") * sf.col("record_bytes"))


def _store(
    spark: SparkSession, folder: str, facts_path: str, samples: Samples, options: FactsOptions, left_out: LeftOuts
) -> None:
    """Publish the staged facts with those that are stored."""
    fresh = Table(spark, f"{folder}/facts", FACTS, "staged facts").read()
    partitions = fresh.select(*PARTITION).distinct().count()
    if not partitions:
        raise AnalyticsError(
            f"there are no samples yet at {samples.place} that can be used: start `steward sampler`, and run this once it has looked for"
            " some hours"
        )
    samples.tell(left_out)
    fresh = _rated(spark, fresh, f"{folder}/rates", options, left_out)
    published = Published(spark, facts_path, "facts")
    base = published.newest(left_out)
    days = [str(row.date) for row in fresh.select(sf.to_date("hour").alias(DATE)).distinct().collect()]
    stored = published.table(base, FACTS, *days, by_day=True)
    buckets = -(-partitions // PARTITIONS_PER_FILE)

    def compute() -> Parts:
        rows = fresh.withColumn(DATE, sf.to_date("hour"))
        if stored.exists():
            rows = merged(rows, stored.read())
        # One file a day and bucket, a partition's hours side by side.
        bucket = sf.pmod(sf.hash(*PARTITION), sf.lit(buckets))
        laid = rows.repartition(sf.col(DATE), bucket).sortWithinPartitions(DATE, *KEY)
        return published.write(laid, options.run)

    published.publish(base, options.run, without_corrupt(stored, left_out, compute), options.now_ms)
    published.sweep(options.now_ms)


def _rated(spark: SparkSession, fresh: DataFrame, staging: str, options: FactsOptions, left_out: LeftOuts) -> DataFrame:
    """Return the facts with Prometheus' rates, where there are any for their cluster."""
    if options.rates is None or not stage(spark, options.rates, staging, options.now_ms, left_out):
        return fresh
    clusters = [row.cluster_id for row in fresh.select("cluster_id").distinct().limit(2).collect()]
    if len(clusters) > 1:
        remedy = "keep each cluster's samples in a place of their own: rates do not say whose a topic is"
        left_out.add("rates, since the samples are of several clusters", 1, remedy)
        return fresh
    hours = Table(spark, staging, TOPIC_HOURS, "staged rates").read()
    tell_foreign(fresh, hours, left_out)
    return with_rates(fresh, hours)


def merged(fresh: DataFrame, stored: DataFrame) -> DataFrame:
    """Return one row for each partition and hour: that of more minutes, of equals that with rates, else the fresh one."""
    both = fresh.withColumn("age", sf.lit(0)).unionByName(stored.withColumn("age", sf.lit(1)))
    rated = sum(((sf.col(name) == SOURCE).cast("int") for name in ("source_in", "bytes_out_source")), sf.lit(0))
    best = Window.partitionBy(*KEY).orderBy(sf.desc("minutes"), rated.desc(), "age")
    return both.withColumn("place", sf.row_number().over(best)).where("place = 1").drop("place", "age")
