"""Rates of topics from Prometheus, which replace those from offsets; any of them may be missing.

Prometheus counts a topic's bytes, no partition's. So a topic's rate of an hour is spread over its partitions:

- by their share of the rates from offsets: bytes of the same kind divided by minutes with samples;
- if no partition's rate is known, or all are 0, by their share of messages; else evenly;
- a partition without a known rate counts with the mean of the others, and stays without one.

The rates of a topic's partitions then add up to its rate. An hour needs `MIN_RATES` rates; with fewer it keeps the estimate from
offsets. Invalid lines, and topics without samples, are left out and counted.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from balance_analytics.jobs.problems import LeftOuts, errors_about
from balance_analytics.jobs.publishing import write_staged
from balance_analytics.jobs.samples import HOUR_MS, MAX_AHEAD_MS
from balance_analytics.jobs.storage import exists
from balance_analytics.model.column import ddl, names
from balance_analytics.model.facts import FACTS
from balance_analytics.model.loads import DIGITS
from balance_analytics.model.rate_rows import OF_INSTANCES, OF_TOPICS, RATE_ROWS, SOURCE, TOPIC_HOURS

RATE_OF_MS = 300_000
"""A rate covers this time before its own: it belongs to the hour of the middle."""

MIN_RATES = 5
"""Rates that an hour needs, as it needs minutes with samples: a mean of fewer is not that of the hour."""

MAX_NAME_CHARACTERS = 1_024
"""Limit of a line's strings, as in the sampler; longer ones are not rates, and are not kept in memory."""

SECONDS_PER_MINUTE = 60
_BROKEN = "_broken"


def stage(spark: SparkSession, place: str, path: str, now_ms: int, left_out: LeftOuts) -> DataFrame | None:
    """Write the rates at `place`, a file or a folder of files, as TOPIC_HOURS under `path`, and return them if there are any.

    Raises `AnalyticsError` when the place cannot be reached.
    """
    with errors_about(place, "rates"):
        if not exists(spark, place):
            remedy = "start `steward sampler --prometheus-rates` for this place, or remove --rates"
            left_out.add(f"rates: there are none at {place}", 1, remedy)
            return None
        reader = spark.read.schema(f"{ddl(RATE_ROWS)}, `{_BROKEN}` string").option("columnNameOfCorruptRecord", _BROKEN)
        lines = reader.option("maxStringLen", MAX_NAME_CHARACTERS).json(place)
        (seen,) = lines.agg(sf.count_if(_good(now_ms)).alias("good"), sf.count("*").alias("all")).collect()
        remedy = "use only files that `steward sampler --prometheus-rates` wrote"
        left_out.add("lines that are not rates of Prometheus", seen["all"] - seen["good"], remedy)
        if not seen["good"]:
            return None
        return write_staged(topic_hours(lines.where(_good(now_ms))), path, "rates").rows


def _good(now_ms: int) -> Column:
    """Return whether a line can be used; never null."""
    named = sf.length("of").between(1, MAX_NAME_CHARACTERS) & sf.col("resource").isin(*OF_TOPICS, *OF_INSTANCES)
    timed = sf.col("at_ms").between(RATE_OF_MS, now_ms + MAX_AHEAD_MS)
    finite = (sf.col("value") >= 0) & (sf.col("value") < float("inf"))
    whole = sf.col(_BROKEN).isNull() & (sf.col("source") == SOURCE)
    return sf.coalesce(whole & named & timed & finite, sf.lit(False))


def topic_hours(lines: DataFrame) -> DataFrame:
    """Return TOPIC_HOURS of good lines; a line that is there twice, because files overlap, counts once."""
    once = (
        lines.where(sf.col("resource").isin(*OF_TOPICS))
        .groupBy("resource", "of", "at_ms")
        .agg(sf.max("value").alias("value"))
    )
    hour_ms = sf.floor((sf.col("at_ms") - RATE_OF_MS // 2) / HOUR_MS) * HOUR_MS
    of_hour = once.groupBy(sf.col("of").alias("topic"), sf.timestamp_millis(hour_ms.cast("bigint")).alias("hour")).agg(
        *(_mean(name).alias(f"rate_{name}") for name in OF_TOPICS)
    )
    return of_hour.select(*names(TOPIC_HOURS))


def digests(hours: DataFrame) -> dict[str, str]:
    """Return a digest of the TOPIC_HOURS of each day: equal for the same rows in any order."""
    of_day = hours.groupBy(sf.to_date("hour").alias("day")).agg(
        sf.sum(sf.xxhash64(*names(TOPIC_HOURS)).cast("decimal(38,0)")).alias("digest")
    )
    return {str(row.day): str(row.digest) for row in of_day.collect()}


def _mean(resource: str) -> Column:
    """Return the mean of an hour's rates, rounded as every rate is: sums depend on their order in the last digits."""
    value = sf.when(sf.col("resource") == resource, sf.col("value"))
    return sf.when(sf.count(value) >= MIN_RATES, sf.round(sf.avg(value), DIGITS))


def with_rates(facts: DataFrame, hours: DataFrame) -> DataFrame:
    """Return facts of one cluster with their bytes replaced by TOPIC_HOURS, where there are any."""
    joined = facts.join(hours, ["topic", "hour"], "left")
    taken = {}
    for amount, rate, source in (
        ("bytes_in", "rate_bytes_in", "source_in"),
        ("bytes_out", "rate_bytes_out", "bytes_out_source"),
    ):
        given = sf.col(rate).isNotNull() & (sf.col("minutes") > 0)
        spread = sf.col(rate) * _share(sf.col(amount)) * sf.col("minutes") * SECONDS_PER_MINUTE
        taken[amount] = sf.when(given, spread).otherwise(sf.col(amount))
        taken[source] = sf.when(given, sf.lit(SOURCE)).otherwise(sf.col(source))
    return joined.withColumns(taken).select(*names(FACTS))


def _share(amount: Column) -> Column:
    """Return the share of a partition in its topic's rate, by the rules above.

    In order of partitions, so that sums are the same to the last digit in every task.
    """
    of_topic = (
        Window.partitionBy("topic", "hour")
        .orderBy("partition")
        .rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    )
    part = 1 / sf.count("*").over(of_topic)
    shares = []
    for known in (amount, sf.col("messages_in")):
        pace = sf.try_divide(known, sf.when(sf.col("minutes") > 0, sf.col("minutes")))
        mean = sf.avg(pace).over(of_topic)
        shares.append((mean > 0, part * sf.coalesce(sf.try_divide(pace, mean), sf.lit(1.0))))
    (by_bytes, of_bytes), (by_messages, of_messages) = shares
    return sf.when(by_bytes, of_bytes).when(by_messages, of_messages).otherwise(part)


def note_unknown_topics(facts: DataFrame, hours: DataFrame, left_out: LeftOuts) -> None:
    """Note the topics of rates that have no samples: deleted ones, or those of another cluster."""
    foreign = hours.select("topic").distinct().join(facts.select("topic").distinct(), "topic", "left_anti").count()
    left_out.add(
        "topics of rates without samples",
        foreign,
        "nothing, if they are deleted or internal; otherwise limit the query of Prometheus to this cluster",
    )
