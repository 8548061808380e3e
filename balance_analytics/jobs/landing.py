"""New messages of the samples topic to Parquet by day, each message once, so that later runs read neither the topic nor JSON again.

The rows are stored next to the facts, below `_samples`, in a table whose manifest has the offsets up to which the topic was read: rows and
position are published in one step, so that a run that is killed loses and doubles nothing. A day stays until `OPEN_MS` after the end of
the next day, because its last hour is needed to compute that one again. Samples that come later are left out and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as sf

from balance_analytics.jobs.files import Table
from balance_analytics.jobs.problems import AnalyticsError, LeftOuts, errors_about
from balance_analytics.jobs.publishing import Parts, Published
from balance_analytics.jobs.samples import Samples, address
from balance_analytics.jobs.topic_offsets import OffsetRange, TopicEnds, ends_of, range_to_read
from balance_analytics.model.column import Column as TableColumn
from balance_analytics.model.column import Kind, names
from balance_analytics.model.manifest import Manifest, Position
from balance_analytics.model.new_days import DAY_MS, day_before, day_of, start_ms
from balance_analytics.model.sample_rows import DATE, SAMPLE_ROWS, SCHEMA_ID

FOLDER = "_samples"
"""Below the facts; Spark's readers skip names that begin with an underscore."""

OPEN_MS = 2 * DAY_MS
"""Time after the end of a day in which its late samples are accepted."""

PER_MESSAGE = ("cluster_id", "topic", "sampled_at_ms", "round_ms")
"""Once in a message; all other columns are arrays with an entry for each partition."""

LANDED_ROWS = (*SAMPLE_ROWS, TableColumn("stamped_ms", Kind.INT64, "the message's own time", nullable=True))
"""A message that is not a sample is a row with only `stamped_ms`, so that it is counted."""

MAX_READS = 5
"""Reads of the same messages, of which retention deleted some each time: a broker deletes segments every five minutes by default."""

READERS_A_CORE = 2
"""Parts of the messages for each core: the topic's partitions alone would limit the number of cores that read."""

_ARRAYS = tuple(column for column in SAMPLE_ROWS if column.name not in PER_MESSAGE)
_MESSAGE = ", ".join(
    (
        "schema int",
        *(f"`{column.name}` {column.kind.value}" for column in SAMPLE_ROWS if column.name in PER_MESSAGE),
        *(f"`{column.name}` array<{column.kind.value}>" for column in _ARRAYS),
    )
)


@dataclass
class Landed:
    """The samples that were read from the topic at `place`, by day; `late` of the last messages were too late for their day."""

    place: str
    published: Published
    manifest: Manifest
    late: int = 0

    @property
    def are_read_once(self) -> bool:
        """Whether days are deleted once they are computed: see `forget_closed_days`."""
        return True

    def files_by_day(self, first: str) -> dict[str, dict[str, int]]:
        """Return the sizes in bytes of files by day and name, from the day `first` on."""
        days = [day for day in self.manifest.days() if day >= first]
        return {day: {file.path: file.size for file in self.manifest.parts[day]} for day in days}

    def table(self, days: Sequence[str]) -> Table:
        """Return some days."""
        return self.published.table(self.manifest, LANDED_ROWS, *days, by_day=True)

    def forget_closed_days(self, now_ms: int, run: str) -> None:
        """Delete the days that no later run needs; their facts must be published before. Raises `AnalyticsError`."""
        oldest = oldest_needed(now_ms)
        kept = {day: files for day, files in self.manifest.parts.items() if day >= oldest}
        if kept.keys() != self.manifest.parts.keys():
            self.manifest = self.published.publish(self.manifest, run, kept, now_ms, keeps=False)
        self.published.sweep(now_ms)


def oldest_needed(now_ms: int) -> str:
    """Return the oldest day whose samples a run at this time, or a later one, may read.

    >>> oldest_needed(1_767_225_600_000)  # 2026-01-01 00:00: the 30th may still get samples, for which the end of the 29th is needed
    '2025-12-29'
    """
    return day_of((now_ms - OPEN_MS) // DAY_MS * DAY_MS - DAY_MS)


def land(
    samples: Samples,
    facts_path: str,
    now_ms: int,
    first_day: str,
    run: str,
    left_out: LeftOuts,
    recompute_from: str | None = None,
) -> Landed:
    """Read what is new in the topic, and return all that was read of the days that are open. Raises `AnalyticsError`.

    Without a position of an earlier run, messages are read from the day before `first_day` on. With `recompute_from`, a day, closed
    days from the day before that on are read again, as far as the topic still has them. When files of open days are gone or cut, the
    messages of all open days are read again; samples that are there twice count once.
    """
    published = Published(samples.spark, f"{facts_path}/{FOLDER}", "samples that were read from the topic")
    lost = LeftOuts()
    base = published.newest(lost)
    left_out.add_all(lost)
    requested = day_before(first_day)
    oldest_open = max(requested, oldest_needed(base.written_ms)) if base.position.offsets else requested
    if lost.all():
        oldest = oldest_open if recompute_from is None else requested
        wanted = _Wanted(Position(), oldest, oldest, recompute_from)
    else:
        wanted = _Wanted(base.position, oldest_open, requested, recompute_from)
    with errors_about(samples.place, "samples"):
        read = _read(samples, published, run, wanted)
    if read is None:
        return Landed(samples.place, published, base)
    parts = {day: (*base.parts.get(day, ()), *files) for day, files in read.files.items()}
    manifest = published.publish(base, run, parts, now_ms, position=read.position)
    return Landed(samples.place, published, manifest, read.late)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Messages that a run reads: those behind `position`, and with `recompute_from`, a day, older ones again."""

    position: Position
    oldest: str
    """Samples of days before this one are left out."""
    oldest_to_read: str
    """Without a position, messages are read from the start of this day on."""
    recompute_from: str | None


@dataclass(frozen=True, slots=True)
class _Read:
    """Files with the samples, by day, how far the topic was read, and how many new samples were too late for their day."""

    files: Parts
    position: Position
    late: int


def _read(samples: Samples, published: Published, run: str, wanted: _Wanted) -> _Read | None:
    """Write what is wanted to files that are not published yet; None without new messages. Raises `AnalyticsError`.

    A read fails when retention deletes messages before they are read, and begins again with what is left. Spark could skip such messages
    (failOnDataLoss=false), but then it goes on with a consumer that it has already returned to its pool. Where two tasks read the
    same partition they use that consumer at the same time, and the run fails, or misses messages that are still there.
    """
    since_ms = start_ms(wanted.oldest_to_read)
    ends = ends_of(samples, since_ms)
    for _ in range(MAX_READS - 1):
        try:
            return _write(samples, published, run, wanted, ends)
        except AnalyticsError:
            before, ends = ends, ends_of(samples, since_ms)
            if (ends.topic_id, ends.earliest) == (before.topic_id, before.earliest):
                raise
    return _write(samples, published, run, wanted, ends)


def _write(samples: Samples, published: Published, run: str, wanted: _Wanted, ends: TopicEnds) -> _Read | None:
    topic, position = address(samples.place)[1], wanted.position
    new = range_to_read(topic, ends, position)
    seen = Observation()
    frames = []
    if new.count:
        late = sf.count_if(~_since(wanted.oldest) & sf.col("partition").isNotNull()).alias("late")
        frames.append(_rows(samples, new).observe(seen, late).where(_since(wanted.oldest)))
    if wanted.recompute_from is not None and position.offsets and position.topic_id == ends.topic_id:
        before = OffsetRange(
            topic, {partition: min(ends.since[partition], new.start[partition]) for partition in new.start}, new.start
        )
        again = _since(day_before(wanted.recompute_from)) & ~_since(wanted.oldest)
        frames.append(_rows(samples, before).where(again))
    if not frames:
        return None
    files = published.write(reduce(DataFrame.unionByName, frames), run)
    late_count = int(seen.get["late"] or 0) if new.count and position.offsets else 0
    return _Read(files, Position(ends.topic_id, new.end), late_count)


def _since(day: str) -> Column:
    return sf.col(DATE) >= sf.lit(day).cast("date")


def _rows(samples: Samples, new: OffsetRange) -> DataFrame:
    """Return LANDED_ROWS and `DATE` of messages: a row a partition and sample."""
    servers, _ = address(samples.place)
    reader = samples.spark.read.format("kafka").option("kafka.bootstrap.servers", servers).options(**new.options())
    for name, value in samples.options.items():
        reader = reader.option(f"kafka.{name}", value)
    messages = reader.option("failOnDataLoss", True).option("minPartitions", _readers(samples, new)).load()
    parsed = messages.select(
        sf.from_json(sf.col("value").cast("string"), _MESSAGE).alias("said"),
        sf.unix_millis("timestamp").alias("stamped_ms"),
    )
    good = sf.coalesce(sf.col("said.schema") == SCHEMA_ID, sf.lit(False))
    zipped = sf.arrays_zip(*(sf.col(f"said.{column.name}").alias(column.name) for column in _ARRAYS))
    rows = parsed.withColumn("good", good).select(
        "stamped_ms",
        *(sf.when(sf.col("good"), sf.col(f"said.{name}")).alias(name) for name in PER_MESSAGE),
        sf.explode_outer(sf.when(sf.col("good"), zipped)).alias("one"),
    )
    named = rows.select("stamped_ms", *PER_MESSAGE, *(f"one.{column.name}" for column in _ARRAYS))
    return named.select(*names(LANDED_ROWS), _date().alias(DATE))


def _date() -> Column:
    """Return the day of the planned sample; that of the message where the sample's clock is far away, or where it is none."""
    near = sf.abs(sf.col("round_ms") - sf.col("stamped_ms")) <= DAY_MS
    return sf.to_date(sf.timestamp_millis(sf.when(near, sf.col("round_ms")).otherwise(sf.col("stamped_ms"))))


def _readers(samples: Samples, new: OffsetRange) -> int:
    cores = int(samples.spark.sparkContext.defaultParallelism)
    return max(len(new.end), READERS_A_CORE * cores)
