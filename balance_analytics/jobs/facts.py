"""Stage `facts`: samples to hourly facts. A run computes the days that are new, and publishes them in one step (`publishing`).

The manifest of the facts lists from which files of samples, and from which rates, each day was computed (`model/new_days.py`). A run
without new files reads no samples. Otherwise it computes from the first day with new files to the end, and begins with the state of
each partition at 23:00 of the day before (`model/day_states.py`). The result is that of one run over all samples.

An hour that is stored with more minutes than the samples still show (retention took them) stays: of two facts of one hour that of more
minutes wins, of equals that with Prometheus' rates, else the new one. So an hour keeps its rates when Prometheus no longer has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from balance_analytics.jobs.day_rows import StoredFacts, by_day
from balance_analytics.jobs.files import Table, without_corrupt
from balance_analytics.jobs.hourly import STATE, hour_of, hourly, newest_states, state_day, states_of
from balance_analytics.jobs.landing import land
from balance_analytics.jobs.packed_samples import PARTITION
from balance_analytics.jobs.problems import AnalyticsError, LeftOuts, errors_about, none_yet
from balance_analytics.jobs.publishing import ROWS, Parts, Published, Staged, new_run, staging, write_staged
from balance_analytics.jobs.rates import digests, note_unknown_topics, stage, with_rates
from balance_analytics.jobs.sample_hours import MINUTE_MS
from balance_analytics.jobs.samples import CORRUPT, HOUR_MS, Samples, note_left_out, usable
from balance_analytics.jobs.storage import exists
from balance_analytics.model.day_states import DAY_STATES, STATES
from balance_analytics.model.facts import DAY_FOLDER, DAY_KEY, KEY
from balance_analytics.model.manifest import Manifest, Source
from balance_analytics.model.new_days import (
    DAY_MS,
    DayRange,
    day_after,
    day_before,
    day_of,
    days_to_compute,
    sources_after,
    start_ms,
)
from balance_analytics.model.rate_rows import SOURCE
from balance_analytics.model.sample_rows import DATE

PARTITIONS_PER_FILE = 50_000
"""1.2 M rows a day: some 40 MB, which a task holds in memory."""

PARTITIONS, DAYS, STATE_DAYS, FIRST_CLUSTER, LAST_CLUSTER = "partitions", "days", "state_days", "first", "last"
"""Names of what is observed of the staged hours while they are written: another pass over them takes longer."""


class DaysOfSamples(Protocol):
    """Samples by day: a folder, or what was read from a topic."""

    @property
    def place(self) -> str:
        """Where they are, for messages."""

    @property
    def are_read_once(self) -> bool:
        """Whether days are deleted once they are computed, so that there may be facts without samples."""

    def files_by_day(self, first: str) -> dict[str, dict[str, int]]:
        """Return the sizes in bytes of files by day and name, from the day `first` on."""

    def table(self, days: Sequence[str]) -> Table:
        """Return some days."""


@dataclass(frozen=True, slots=True)
class FactsOptions:
    """`now_ms` is the time of the run; samples of the last `window_days` are read; `round_ms` the interval of samples.

    `rates` is where Prometheus' rates are, if anywhere. `recompute` names the first and the last day (None: the newest) that are computed
    although their samples have not changed. `run` names the files of this run.
    """

    now_ms: int
    window_days: int
    round_ms: int = MINUTE_MS
    rates: str | None = None
    recompute: tuple[str, str | None] | None = None
    run: str = field(default_factory=new_run)

    @property
    def first_day(self) -> str:
        """The first day of the window."""
        return day_of(self.now_ms - self.window_days * DAY_MS)


def run(
    spark: SparkSession, samples: Samples, facts_path: str, out: str, options: FactsOptions, left_out: LeftOuts
) -> None:
    """Bring the facts up to date; tables that only this run needs are below `out`. Raises `AnalyticsError`."""
    with errors_about(out, "staged facts"):
        exists(spark, out)  # first, so that an error names this place if it cannot be reached
    published = Published(spark, facts_path, "facts")
    base = published.newest(left_out)
    landed = None
    if samples.in_kafka:
        again = None if options.recompute is None else max(options.recompute[0], options.first_day)
        landed = land(samples, facts_path, options.now_ms, options.first_day, options.run, left_out, again)
    with staging(spark, out, options.run, options.now_ms) as folder:
        newest = _bring_up_to_date(published, base, landed or samples, folder, options, left_out)
    note_left_out(newest.sources, options.first_day, left_out)
    if landed is not None:
        left_out.add("samples that came more than two days late", landed.late, "let `steward sampler` reach the topic")
    published.sweep(options.now_ms)
    if landed is not None:
        landed.forget_closed_days(options.now_ms, options.run)


def _bring_up_to_date(
    published: Published, base: Manifest, samples: DaysOfSamples, folder: str, options: FactsOptions, left_out: LeftOuts
) -> Manifest:
    """Compute the days that are new, if any, and return the manifest of the facts then."""
    spark = published.spark
    files = samples.files_by_day(day_before(options.first_day))
    if not any(files.values()) and not (samples.are_read_once and base.days()):
        raise AnalyticsError(none_yet("samples", samples.place))
    hours = None
    if options.rates is not None:
        hours = stage(spark, options.rates, f"{folder}/rates", options.now_ms, left_out)
    rates = {} if hours is None else digests(hours)
    days = days_to_compute(base.sources, files, rates, options.first_day, options.recompute)
    newest = base
    if days is not None:
        computation = _Computed(published, base, samples, files, days, options, folder, left_out)
        staged, sources = computation.stage()
        computed = {day: replace(source, rates=rates.get(day, source.rates)) for day, source in sources.items()}
        newest = computation.publish(staged, hours, computed)
    if hours is not None:
        stored = StoredFacts.of(published, newest).only(day for day in newest.days() if day >= options.first_day)
        topics = stored.topics()
        if _is_one_cluster(topics):
            note_unknown_topics(topics, hours, left_out)
        else:
            remedy = "store the samples of each cluster in a place of their own: rates have no cluster"
            left_out.add("rates, because the samples are of several clusters", 1, remedy)
    return newest


@dataclass(frozen=True)
class _Computed:
    """Days that this run computes: from samples to staged hours, and from these to published facts and states."""

    published: Published
    base: Manifest
    samples: DaysOfSamples
    files: Mapping[str, Mapping[str, int]]
    days: DayRange
    options: FactsOptions
    folder: str
    left_out: LeftOuts

    def stage(self) -> tuple[Staged, dict[str, Source]]:
        """Write the hours of the days, and return them, and from what each day was computed. Raises `AnalyticsError`."""
        first, last = self.days.first, self.days.last
        oldest, after = day_before(first), None if last is None else day_after(last)
        read = [day for day in self.files if day >= oldest and (after is None or day <= after)]
        inside = [day for day in read if self.days.holds(day)]
        table = self.samples.table(read)
        midnight_ms = start_ms(first)
        begin_ms = midnight_ms - HOUR_MS
        belongs_ms = hour_of(self.options.round_ms)

        def compute() -> tuple[Staged, set[tuple[str, str]], dict[str, dict[str, int]]]:
            rows = table.read()
            last_hour = rows.where((sf.col(DATE) < sf.lit(first).cast("date")) & (sf.col("round_ms") >= begin_ms))
            counted = usable(rows.where(sf.col(DATE) >= sf.lit(first).cast("date")), self.options.now_ms, inside)
            used = counted.rows.unionByName(usable(last_hour, self.options.now_ms, ()).rows)
            hours = hourly(used.where(belongs_ms >= begin_ms), self.options.round_ms, self._states_before())
            hour_ms = sf.unix_millis("hour")
            wanted = hour_ms >= (begin_ms if self.days.after_others else midnight_ms)
            if after is not None:
                wanted &= hour_ms < start_ms(after)
            staged = write_staged(hours.where(wanted), f"{self.folder}/hours", "staged hours", *_observed())
            return staged, {_day_and_name(path) for path in rows.inputFiles()}, counted.left_out()

        staged, seen, left_out = without_corrupt(table, LeftOuts(), compute)
        seen |= {_day_and_name(path) for path in table.without}
        corrupt = {day: [path for path in table.without if _day_and_name(path)[0] == day] for day in inside}
        return staged, {
            day: Source(
                # Without those that the store had not listed any more when Spark listed them: a later run reads them.
                {name: size for name, size in self.files[day].items() if (day, name.rpartition("/")[2]) in seen},
                self.base.sources[day].rates if day in self.base.sources else "",
                {**left_out.get(day, {}), **{f"{CORRUPT}{path}": 1 for path in sorted(corrupt[day])}},
            )
            for day in inside
        }

    def publish(self, staged: Staged, rates: DataFrame | None, computed: Mapping[str, Source]) -> Manifest:
        """Publish the staged hours with the facts that are stored, and return the new manifest. Raises `AnalyticsError`."""
        is_empty = not staged.seen[ROWS]
        if is_empty and not self.base.days():
            raise AnalyticsError(none_yet("samples that can be used", self.samples.place))
        parts: Parts = {} if is_empty else {**self._facts(staged, rates), **self._states(staged)}
        sources = sources_after(self.base.sources, computed, self.options.first_day)
        return self.published.publish(self.base, self.options.run, parts, self.options.now_ms, sources=sources)

    def _facts(self, staged: Staged, rates: DataFrame | None) -> Parts:
        """Write the days of the fresh hours, each with what is stored of it."""
        fresh, seen = staged.rows.drop(STATE), staged.seen
        if rates is not None and seen[FIRST_CLUSTER] == seen[LAST_CLUSTER]:
            fresh = with_rates(fresh, rates)
        stored = StoredFacts.of(self.published, self.base).only(map(str, seen[DAYS]))
        buckets = -(-seen[PARTITIONS] // PARTITIONS_PER_FILE)

        def compute() -> Parts:
            rows = merged(fresh, stored.by_hour()) if stored.exists() else fresh
            # One file a day and bucket; a partition's hours follow each other, of one day after another.
            bucket = sf.pmod(sf.hash(*PARTITION), sf.lit(buckets))
            laid = by_day(rows.repartition(sf.to_date("hour"), bucket).sortWithinPartitions(*KEY))
            by_date = laid.withColumn(DATE, sf.to_date("day")).sortWithinPartitions(DATE, *DAY_KEY)
            return self.published.write(by_date, self.options.run, layout=DAY_FOLDER)

        return stored.without_corrupt(self.left_out, compute)

    def _states(self, staged: Staged) -> Parts:
        """Write the states of the days of the staged hours; a stored state that is later stays."""
        fresh = states_of(staged.rows)
        stored = self._stored_states([str(day) for day in staged.seen[STATE_DAYS]])
        both = fresh if stored is None else newest_states(fresh.unionByName(stored), DATE)
        laid = both.repartition(sf.col(DATE)).sortWithinPartitions(DATE, *PARTITION)
        return self.published.write(laid, self.options.run, table=STATES)

    def _states_before(self) -> DataFrame | None:
        oldest = day_before(self.options.first_day)
        stored = self._stored_states([day for day in self.base.days(STATES) if oldest <= day < self.days.first])
        return None if stored is None else newest_states(stored)

    def _stored_states(self, days: Sequence[str]) -> DataFrame | None:
        table = self.published.table(self.base, DAY_STATES, *(f"{STATES}/{day}" for day in days), by_day=True)
        return table.read() if table.exists() else None


def _observed() -> tuple[Column, ...]:
    return (
        sf.approx_count_distinct(sf.xxhash64(*PARTITION)).alias(PARTITIONS),
        sf.collect_set(sf.to_date("hour")).alias(DAYS),
        sf.collect_set(state_day()).alias(STATE_DAYS),
        sf.min("cluster_id").alias(FIRST_CLUSTER),
        sf.max("cluster_id").alias(LAST_CLUSTER),
    )


def _day_and_name(path: str) -> tuple[str, str]:
    """Return the day and the name of a file of samples.

    >>> _day_and_name("s3a://bucket/samples/date=2026-01-05/a.parquet")
    ('2026-01-05', 'a.parquet')
    """
    folder, _, name = path.rpartition("/")
    return folder.rpartition(f"{DATE}=")[2], unquote(name)


def _is_one_cluster(hours: DataFrame) -> bool:
    """Return whether rates can be used: they have no cluster."""
    return hours.select("cluster_id").distinct().limit(2).count() <= 1


def merged(fresh: DataFrame, stored: DataFrame) -> DataFrame:
    """Return one row for each partition and hour: that of more minutes, of equals that with rates, else the fresh one."""
    both = fresh.withColumn("age", sf.lit(0)).unionByName(stored.withColumn("age", sf.lit(1)))
    rated = sum(((sf.col(name) == SOURCE).cast("int") for name in ("source_in", "bytes_out_source")), sf.lit(0))
    best = Window.partitionBy(*KEY).orderBy(sf.desc("minutes"), rated.desc(), "age")
    return both.withColumn("place", sf.row_number().over(best)).where("place = 1").drop("place", "age")
