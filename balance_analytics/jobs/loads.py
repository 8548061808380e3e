"""Stage `loads`: stored facts to what each partition carries, and each broker by hour.

Tasks read the files of facts as bytes, by Hadoop's file systems, and decode them in Python (`day_matrices`). One shuffle brings all days of
a partition into one task, which computes with numpy (`window_loads`). Their results come to the driver, some 100 bytes for a partition,
which writes both tables. The window is found by the days of the manifest and the minutes of the first and the last day.

An hour counts with `--min-minutes` seen. Of a broker that is what it led; its disk is the size of all replicas that it holds, each taken
as large as the leader's copy. Partitions not seen in the window's last hours are gone: they are named and in no load.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import RDD
from pyspark.sql import SparkSession

from balance_analytics.jobs.day_matrices import DAY_S, HOUR_S, Ends, Window, joined_ends
from balance_analytics.jobs.day_rows import StoredFacts
from balance_analytics.jobs.files import whole_files
from balance_analytics.jobs.loads_tasks import (
    Packed,
    SumsParam,
    bucket_of,
    ends_of_files,
    facts_by_bucket,
    packed_loads,
)
from balance_analytics.jobs.problems import AnalyticsError, LeftOuts
from balance_analytics.jobs.publishing import Published, new_run
from balance_analytics.jobs.window_loads import Gone, broker_hours
from balance_analytics.model.loads import BROKER_HOURS_PART, PARTITIONS_PART
from balance_analytics.study.partition_hours import BrokerSums

MIN_MINUTES = 5
"""Default of --min-minutes: a rate of fewer minutes is not that of the hour."""

MAX_GONE_NAMED = 20

BYTES_PER_BUCKET = 32_000_000
"""Of files of facts: 4,000 partitions and 14 days, which a task holds twice, as rows and as partitions x hours: 110 MB."""

PARTITIONS_PER_FILE = 250_000
"""Of loads: some 40 MB, 80 MB while it is written."""


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
    size = sum(file.size for day in stored.parts for file in facts.parts[day])
    buckets = max(spark.sparkContext.defaultParallelism, -(-size // BYTES_PER_BUCKET))
    window, found, sums = stored.without_corrupt(left_out, lambda: _computed(spark, stored, buckets, options))
    _check_clusters(stored, {cluster for part in found for cluster in part.clusters})
    _note_gone([topic for part in found for topic in part.gone], left_out)
    target = loads_below(spark, out)
    base = target.newest(left_out)
    parts = {
        **target.write_tables(_joined(found), options.run, PARTITIONS_PART),
        **target.write_tables(iter([broker_hours(window, sums)]), options.run, BROKER_HOURS_PART),
    }
    target.publish(base, options.run, parts, options.now_ms, keeps=False)
    target.sweep(options.now_ms)


def _computed(
    spark: SparkSession, stored: StoredFacts, buckets: int, options: LoadsOptions
) -> tuple[Window, list[Packed], BrokerSums]:
    """Return the window, the loads that tasks found, and the sums of all tasks."""
    window = _window(spark, stored, options)
    days = stored.only(day for day in stored.parts if day >= _day_of(window.start_s))
    # Of the tasks whose results are used; added one after the other, as the sums of a task are larger than its loads.
    sums = spark.sparkContext.accumulator(BrokerSums.none(), SumsParam())
    facts = _files(spark, days).flatMap(partial(facts_by_bucket, window, options.cluster_id, buckets))
    found = facts.partitionBy(buckets, bucket_of).mapPartitions(partial(packed_loads, window, sums)).collect()
    return window, found, sums.value


def _files(spark: SparkSession, stored: StoredFacts) -> RDD[tuple[str, bytes]]:
    """Return the files, path and content, about one in each task."""
    names = stored.names()
    return whole_files(spark, names, len(names))


def _joined(found: Iterable[Packed]) -> Iterator[Any]:
    """Yield the loads of several tasks as tables of about PARTITIONS_PER_FILE rows."""
    tables: list[Any] = []
    for part in found:
        tables.append(part.table())
        if sum(map(len, tables)) >= PARTITIONS_PER_FILE:
            yield pa.concat_tables(tables)
            tables = []
    if tables:
        yield pa.concat_tables(tables)


def loads_below(spark: SparkSession, out: str) -> Published:
    """Return the loads under a folder for output; their parts are `PARTITIONS_PART` and `BROKER_HOURS_PART`."""
    return Published(spark, f"{out}/loads", "loads")


def _window(spark: SparkSession, stored: StoredFacts, options: LoadsOptions) -> Window:
    """Return the window; it ends with the last hour that counts."""
    days = list(stored.parts)
    ends = _ends(spark, stored.only({days[0], days[-1]}), options) if stored.is_complete() else None
    if ends is None or (_day_of(ends[0]), _day_of(ends[1])) != (days[0], days[-1]):
        # A corrupt file, or a day without an hour that counts: the ends are anywhere.
        ends = _ends(spark, stored, options)
    if ends is None and options.cluster_id is None:
        raise AnalyticsError(
            f"no hour at {stored.days.path} has samples of {options.min_minutes} minutes: let `steward sampler` run longer"
        )
    if ends is None:
        raise AnalyticsError(
            f"the facts at {stored.days.path} have no cluster {options.cluster_id}: check --cluster-id"
        )
    first_s, last_s, clusters = ends
    _check_clusters(stored, clusters)
    end_s = last_s + HOUR_S
    start_s = max(first_s, end_s - options.window_days * DAY_S)
    if (end_s - start_s) // HOUR_S < options.min_hours:
        raise AnalyticsError(
            f"there are facts of {(end_s - start_s) // HOUR_S} hours, too few to study: run this again once there are"
            f" {options.min_hours} (--min-hours)"
        )
    last_day_s = int(dt.datetime.fromisoformat(days[-1]).replace(tzinfo=dt.UTC).timestamp())
    return Window(start_s, end_s, last_day_s + DAY_S, options.min_minutes)


def _ends(spark: SparkSession, stored: StoredFacts, options: LoadsOptions) -> tuple[int, int, list[str]] | None:
    """Return the first and the last hour that counts, and whose facts these are; None if no hour counts."""
    if not stored.names():
        return None
    found: Ends = {}
    for ends_of_part in _files(spark, stored).map(partial(ends_of_files, options.min_minutes)).collect():
        found = joined_ends(found, ends_of_part)
    if options.cluster_id is not None:
        found = {cluster: ends for cluster, ends in found.items() if cluster == options.cluster_id}
    if not found:
        return None
    return min(first for first, _ in found.values()), max(last for _, last in found.values()), sorted(found)


def _day_of(seconds: int) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).date().isoformat()


def _check_clusters(stored: StoredFacts, clusters: Collection[str]) -> None:
    if len(clusters) > 1:
        raise AnalyticsError(
            f"the facts at {stored.days.path} are of several clusters: select one by --cluster-id ({', '.join(sorted(clusters))})"
        )


def _note_gone(gone: Iterable[Gone], left_out: LeftOuts) -> None:
    """Name the topics that are gone."""
    topics: dict[str, Gone] = {}
    for topic in gone:
        before = topics.get(topic.topic, Gone(topic.topic, 0, 0))
        topics[topic.topic] = Gone(topic.topic, before.partitions + topic.partitions, max(before.last_s, topic.last_s))
    for topic in sorted(topics.values())[:MAX_GONE_NAMED]:
        last = dt.datetime.fromtimestamp(topic.last_s, dt.UTC)
        left_out.add(
            f"topic {topic.topic}: {topic.partitions} partitions not seen since {last:%Y-%m-%d %H:00} UTC, deleted since then",
            1,
            "nothing, if that was intended",
        )
    left_out.add("more deleted topics", max(0, len(topics) - MAX_GONE_NAMED), "nothing, if that was intended")
