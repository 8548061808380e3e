"""Location of samples, and the rows that can be used (`model/sample_rows.py`).

Samples are Parquet in folders by day: the sampler's own, or those that `landing` made of the samples topic. What cannot be used is left
out and counted by day while the rows go by, so that nothing is read twice: messages that are not samples or have another schema, samples
whose clocks disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf

from balance_analytics.jobs.files import Table, note_corrupt
from balance_analytics.jobs.problems import AnalyticsError, LeftOuts, errors_about
from balance_analytics.jobs.storage import files_in_each, folders_in
from balance_analytics.model.column import names
from balance_analytics.model.manifest import Source, is_day
from balance_analytics.model.sample_rows import DATE, SAMPLE_ROWS, SAMPLES_TOPIC

SCHEME = "kafka"
HOUR_MS = 3_600_000

MAX_LATE_MS = 120_000
"""From the planned time of a sample to the sample: a round that takes longer has run into the next two."""

MAX_AHEAD_MS = 600_000
"""A sample stamped so long after now, or a message stamped so long away from its sample, was made by a wrong clock."""

MESSAGES, CLOCKS, CORRUPT = "messages", "clocks", "corrupt "
"""Kinds of what is left out; CORRUPT is followed by the name of a file."""

_MESSAGES = {
    MESSAGES: ("messages that are not samples of this version", "let nothing but `steward sampler` write the topic"),
    CLOCKS: ("samples whose clocks disagree", "set the clock of the sampler's machine by NTP"),
}

_DAY_FOLDER = f"{DATE}="


@dataclass(frozen=True)
class Samples:
    """Where samples are: `place` is kafka://host:port[,host:port][/topic] or a folder. `options` are Kafka's, for access."""

    spark: SparkSession
    place: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def in_kafka(self) -> bool:
        """Whether they are in a topic."""
        return self.place.startswith(f"{SCHEME}://")

    @property
    def are_read_once(self) -> bool:
        """Whether days are deleted once they are computed: not those of a folder, which the sampler deletes."""
        return False

    def table(self, days: Sequence[str]) -> Table:
        """Return some days of the folder as a table."""
        folders = [f"{_DAY_FOLDER}{day}" for day in days]
        return Table(self.spark, self.place, SAMPLE_ROWS, "samples", by_day=True, files=folders)

    def files_by_day(self, first: str) -> dict[str, dict[str, int]]:
        """Return the sizes in bytes of the folder's files by day and name, from the day `first` on. Raises `AnalyticsError`."""
        with errors_about(self.place, "samples"):
            days = [day for day in _days_in(self.spark, self.place) if day >= first]
            found = files_in_each(self.spark, [f"{self.place}/{_DAY_FOLDER}{day}" for day in days])
        return {day: _parquet(files) for day, files in zip(days, found, strict=True)}


def _parquet(files: Mapping[str, int]) -> dict[str, int]:
    return {name: size for name, size in files.items() if name.endswith(".parquet")}


def _days_in(spark: SparkSession, place: str) -> list[str]:
    names_of_days = (
        name.removeprefix(_DAY_FOLDER) for name in folders_in(spark, place) if name.startswith(_DAY_FOLDER)
    )
    return [day for day in names_of_days if is_day(day)]


@dataclass
class Usable:
    """Rows that can be used, and what is left out of each of `days`, which is known once something has read the rows to the end."""

    rows: DataFrame
    days: Sequence[str]
    _seen: Observation | None = None
    _counts: DataFrame | None = None

    def left_out(self) -> dict[str, dict[str, int]]:
        """Return the numbers of rows left out, by day and kind; empty where none was.

        A task that Spark repeats because an executor was lost is counted again while the rows go by. So where anything was counted,
        the rows of these days are read and counted once more.
        """
        if self._seen is None or self._counts is None:
            return {}
        seen = self._seen.get
        days = [day for day in self.days if any(seen[f"{kind} {day}"] for kind in _MESSAGES)]
        if not days:
            return {}
        counted = self._counts.where(sf.col(DATE).cast("string").isin(days)).collect()
        return {str(row[DATE]): {kind: int(row[kind]) for kind in _MESSAGES if row[kind]} for row in counted}


def usable(rows: DataFrame, now_ms: int, days: Sequence[str]) -> Usable:
    """Return the rows that can be used: rows of SAMPLE_ROWS and `DATE`, with `stamped_ms` if they came in messages.

    A row without a partition is a message that is not a sample. `days` are those whose rows are counted.
    """
    stamped = sf.col("stamped_ms") if "stamped_ms" in rows.columns else sf.col("sampled_at_ms")
    apart = sf.col("sampled_at_ms") - sf.col("round_ms")
    right = apart.between(-HOUR_MS // 60, MAX_LATE_MS) & (sf.col("sampled_at_ms") <= now_ms + MAX_AHEAD_MS)
    right &= sf.abs(stamped - sf.col("sampled_at_ms")) <= MAX_AHEAD_MS
    is_sample = sf.col("partition").isNotNull()
    wrong = {MESSAGES: ~is_sample, CLOCKS: is_sample & ~sf.coalesce(right, sf.lit(False))}
    used = is_sample & right
    if not days:
        return Usable(rows.where(used).select(*names(SAMPLE_ROWS)), days)
    seen = Observation()
    observed = rows.observe(seen, *(_count(wrong[kind], day).alias(f"{kind} {day}") for day in days for kind in wrong))
    counts = rows.groupBy(DATE).agg(*(sf.count_if(wrong[kind]).alias(kind) for kind in wrong))
    return Usable(observed.where(used).select(*names(SAMPLE_ROWS)), days, seen, counts)


def _count(wrong: Column, day: str) -> Column:
    return sf.count_if(wrong & (sf.col(DATE) == sf.lit(day).cast("date")))


def note_left_out(sources: Mapping[str, Source], first: str, left_out: LeftOuts) -> None:
    """Note what was left out of the samples of the days from `first` on, when they were read."""
    kinds = [(kind, count) for day in sorted(sources) if day >= first for kind, count in sources[day].left_out.items()]
    for kind, count in kinds:
        if kind in _MESSAGES:
            left_out.add(_MESSAGES[kind][0], count, _MESSAGES[kind][1])
    note_corrupt([kind.removeprefix(CORRUPT) for kind, _ in kinds if kind.startswith(CORRUPT)], left_out)


def address(place: str) -> tuple[str, str]:
    """Return bootstrap servers and topic of kafka://host:port[,host:port][/topic].

    >>> address("kafka://a:9092,b:9092/samples"), address("kafka://a:9092")
    (('a:9092,b:9092', 'samples'), ('a:9092', '__steward_samples'))
    """
    parts = urlsplit(place)
    if not parts.netloc or any(":" not in address for address in parts.netloc.split(",")):
        raise AnalyticsError(f"{place} names no brokers: write kafka://HOST:PORT[,HOST:PORT][/TOPIC]")
    return parts.netloc, parts.path.strip("/") or SAMPLES_TOPIC
