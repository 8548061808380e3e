"""The computation of one task of the stage `loads`: Arrow batches of partitions' days to their loads and the brokers' sums.

Leaves out the statistics (`study/partition_hours.py`), reading and writing (`loads`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from balance_analytics.jobs.arrow import Batches, whole_groups
from balance_analytics.model.column import Column, Kind, names
from balance_analytics.model.facts import DAY_FACTS, HOURS
from balance_analytics.model.loads import BROKER_HOURS, PARTITION_LOADS, STATISTICS
from balance_analytics.model.rate_rows import SOURCE
from balance_analytics.study.arrays import BoolArray, FloatArray, IntArray
from balance_analytics.study.partition_hours import (
    NO_LEADER,
    SUMS,
    BrokerSums,
    Copies,
    PartitionHours,
    last_true,
    statistics,
)

HOUR_S = 3600
US_PER_S = 1_000_000

GONE_AFTER_HOURS = 3
"""A partition that nobody saw so long, while others were seen, is deleted; a leader election takes seconds."""

SERIES = ("cluster_id", "topic", "partition")
COUNTS = ("leader_changes", "resets")
SOURCES = ("source_in", "bytes_out_source")

_READ = {
    *(*SERIES, "day", "leader", "replicas", "minutes", "bytes_in", "bytes_out", "messages_in", "size_bytes"),
    *(*COUNTS, *SOURCES),
}

STAGED_INPUT = tuple(column for column in DAY_FACTS if column.name in _READ)
"""What a task reads. COUNTS are null for a day on which all are 0, SOURCES for one without Prometheus' rates.

STEADY have one value in the place of 24 equal ones.
"""

STEADY = ("leader", "replicas", "minutes")

BROKER = "broker_"
"""Before the names of BROKER_HOURS in STAGED."""

LAST_HOUR = "last_hour"

_BROKER_SUMS = tuple(Column(f"{BROKER}{one.name}", one.kind, one.about, nullable=True) for one in BROKER_HOURS)

STAGED = (*PARTITION_LOADS, Column(LAST_HOUR, Kind.TIMESTAMP, "the last one with a row"), *_BROKER_SUMS)
"""Rows with a topic are those of partitions; the others are sums of one task, for a broker and an hour."""

_TYPES = {
    Kind.STRING: pa.string(),
    Kind.INT32: pa.int32(),
    Kind.INT64: pa.int64(),
    Kind.FLOAT64: pa.float64(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.INT32_LIST: pa.list_(pa.int32()),
}


MAX_CELLS = 400_000
"""Partitions x hours at once: some 20 arrays of 3 MB. Partitions that existed for a day take as much as those of the whole window."""


@dataclass(frozen=True, slots=True)
class Window:
    """Unix time in seconds of the first hour and of the end of the last hour that counts.

    `hours` reach from the start to the end of the last stored day, as facts of fewer than `min_minutes` may follow the window's end.
    """

    start_s: int
    end_s: int
    hours: int
    min_minutes: int

    @property
    def gone_before_s(self) -> int:
        """Partitions whose last hour starts before are gone."""
        return self.end_s - GONE_AFTER_HOURS * HOUR_S

    @property
    def skipped_hours(self) -> int:
        """Hours of the first day before the window."""
        return self.start_s // HOUR_S % HOURS


def loads_batches(window: Window, batches: Iterable[Any]) -> Batches:
    """Turn rows of STAGED_INPUT, sorted by SERIES, into rows of STAGED."""
    sums = BrokerSums(window.hours)
    for batch, starts in _cut(whole_groups(batches, SERIES), max(1, MAX_CELLS // window.hours)):
        days = _Days(window, batch, starts)
        hours = days.hours()
        kept = np.asarray(hours.there.any(axis=1))
        last_at = last_true(hours.there)
        is_gone = np.asarray(window.start_s + last_at * HOUR_S < window.gone_before_s)
        yield _batch(_partitions(days, hours, last_at), kept)
        _add(sums, days, hours, ~is_gone)
    yield _batch(_of_brokers(window, sums))


def _cut(groups: Iterable[tuple[Any, IntArray]], count: int) -> Iterator[tuple[Any, IntArray]]:
    """Cut batches of whole partitions into some of at most `count` partitions."""
    for batch, starts in groups:
        for first in range(0, len(starts), count):
            chosen = starts[first : first + count]
            end = starts[first + count] if first + count < len(starts) else batch.num_rows
            yield batch.slice(chosen[0], end - chosen[0]), chosen - chosen[0]


class _Days:
    """A batch of whole partitions, with the place of each of its rows: partition, and day of the window."""

    def __init__(self, window: Window, batch: Any, starts: IntArray) -> None:
        self.window, self.batch, self.starts = window, batch, starts
        self.count = len(starts)
        self.partition = np.repeat(np.arange(self.count), np.diff([*starts, batch.num_rows]))
        first_day_s = window.start_s - window.skipped_hours * HOUR_S
        day_s = batch["day"].cast(pa.int64()).to_numpy() // US_PER_S
        self.day = (day_s - first_day_s) // (HOURS * HOUR_S)
        self.days = -(-(window.hours + window.skipped_hours) // HOURS)

    def hours(self) -> PartitionHours:
        """Return the hours of the window."""
        minutes = self.values("minutes")
        with np.errstate(invalid="ignore"):
            seconds = np.where(minutes >= self.window.min_minutes, minutes * 60, np.nan)
        leader = self.values("leader")
        return PartitionHours(
            there=self.spread(~np.isnan(minutes), False),
            leader=self.spread(np.where(np.isnan(leader), NO_LEADER, leader).astype(np.int64), NO_LEADER),
            rate=self.spread(self.values("bytes_in") / seconds, np.nan),
            rate_out=self.spread(self.values("bytes_out") / seconds, np.nan),
            rate_messages=self.spread(self.values("messages_in") / seconds, np.nan),
            size=self.spread(self.values("size_bytes"), np.nan),
        )

    def values(self, name: str) -> FloatArray:
        """Return a column as rows x 24, NaN for null; no row of it is null."""
        values = np.asarray(self.batch[name].values.to_numpy(zero_copy_only=False), dtype=np.float64)
        return np.asarray(values[_places(self.batch[name])])

    def spread(self, values: Any, nothing: Any, at: Any = slice(None)) -> Any:
        """Return rows x 24 as partitions x hours of the window; `at` chooses the rows of the batch that they are of."""
        wide = np.full((self.count, self.days, HOURS), nothing, dtype=values.dtype)
        wide[self.partition[at], self.day[at]] = values
        skipped = self.window.skipped_hours
        return wide.reshape(self.count, -1)[:, skipped : skipped + self.window.hours]

    def sum_of(self, name: str) -> IntArray:
        """Return the sum of one of COUNTS for each partition."""
        column = self.batch[name]
        at = pc.indices_nonzero(column.is_valid()).to_numpy()
        if not len(at):
            return np.zeros(self.count, dtype=np.int64)
        flat = column.flatten().fill_null(0).to_numpy().reshape(-1, HOURS).astype(np.int64)
        return np.asarray(self.spread(flat, 0, at).sum(axis=1))

    def rated(self, name: str, known: BoolArray) -> IntArray:
        """Return the number of hours of each partition that are `known` and whose source is Prometheus."""
        column = self.batch[name]
        at = pc.indices_nonzero(column.is_valid()).to_numpy()
        if not len(at):
            return np.zeros(self.count, dtype=np.int64)
        rated = pc.equal(column.flatten(), SOURCE).fill_null(False).to_numpy(zero_copy_only=False)
        return np.asarray((self.spread(rated.reshape(-1, HOURS), False, at) & known).sum(axis=1))

    def replicas_at(self, hour: IntArray) -> Any:
        """Return the replicas of each partition in its hour."""
        day, at = np.divmod(np.maximum(hour, 0) + self.window.skipped_hours, HOURS)
        row = np.full((self.count, self.days), -1)
        row[self.partition, self.day] = np.arange(len(self.day))
        element = _places(self.batch["replicas"])[row[np.arange(self.count), day], at]
        return self.batch["replicas"].values.take(pa.array(element, mask=hour < 0))

    def copies(self, kept: BoolArray) -> Copies:
        """Return the replicas of all hours of the window, of the partitions that are `kept`."""
        lists = self.batch["replicas"].values
        place = _places(self.batch["replicas"])
        hour = self.day[:, None] * HOURS + np.arange(HOURS) - self.window.skipped_hours
        chosen = (hour >= 0) & kept[self.partition][:, None]
        length = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)[place[chosen]]
        first = lists.offsets.to_numpy()[place[chosen]]
        entry = np.arange(int(length.sum())) + np.repeat(first - (np.cumsum(length) - length), length)
        broker = lists.values.to_numpy(zero_copy_only=False)[entry].astype(np.int64)
        partition = np.broadcast_to(self.partition[:, None], hour.shape)[chosen]
        return Copies(np.repeat(partition, length), np.repeat(hour[chosen], length), broker)


def _places(column: Any) -> IntArray:
    """Return where the 24 values of each row of a column of lists are in its `values`; a list of one value has it for all hours."""
    offsets = column.offsets.to_numpy().astype(np.int64)
    step = (np.diff(offsets) > 1).astype(np.int64)
    return np.asarray(offsets[:-1, None] + step[:, None] * np.arange(HOURS))


def _partitions(days: _Days, hours: PartitionHours, last_at: IntArray) -> dict[str, Any]:
    """Return the columns of STAGED that partitions have."""
    first = pa.array(days.starts)
    rows = np.arange(days.count)
    known_out = ~np.isnan(hours.rate_out)
    found = dict(statistics(hours))
    found["bytes_in_peak_hour"] = _micros(days.window, found["bytes_in_peak_hour"])
    return {
        **{name: days.batch[name].take(first) for name in SERIES},
        "leader": hours.leader[rows, last_at],
        "replicas": days.replicas_at(last_at),
        **{name: _nullable(found[name]) for name in names(STATISTICS)},
        **{name: days.sum_of(name) for name in COUNTS},
        "hours_out": known_out.sum(axis=1),
        "hours_in_rated": days.rated("source_in", ~np.isnan(hours.rate)),
        "hours_out_rated": days.rated("bytes_out_source", known_out),
        LAST_HOUR: _micros(days.window, last_at).astype(np.int64),
    }


def _add(sums: BrokerSums, days: _Days, hours: PartitionHours, kept: BoolArray) -> None:
    leader = np.where(kept[:, None], hours.leader, NO_LEADER)
    counted = PartitionHours(hours.there, leader, hours.rate, hours.rate_out, hours.rate_messages, hours.size)
    sums.add(counted, days.copies(kept))


def _of_brokers(window: Window, sums: BrokerSums) -> dict[str, Any]:
    """Return the columns of STAGED that brokers have, for hours in which they led or held anything."""
    columns: dict[str, list[Any]] = {name: [] for name in ("broker", "hour", *SUMS)}
    for broker, totals in sums.totals.items():
        at = np.flatnonzero((totals[SUMS.index("leaders")] > 0) | (totals[SUMS.index("copies")] > 0))
        columns["broker"].append(np.full(len(at), broker))
        columns["hour"].append(_micros(window, at))
        for name, values in zip(SUMS, totals, strict=True):
            columns[name].append(values[at])
    return {f"{BROKER}{name}": np.concatenate(parts) for name, parts in columns.items() if parts}


def _micros(window: Window, at: Any) -> Any:
    """Return hours of the window as Unix time in microseconds."""
    return (window.start_s + at * HOUR_S) * US_PER_S


def _nullable(values: FloatArray) -> Any:
    return pa.array(values, mask=np.isnan(values))


def _batch(columns: dict[str, Any], kept: BoolArray | None = None) -> Any:
    """Return rows of STAGED; columns that are not given are null."""
    count = len(next(iter(columns.values()), ()))
    arrays = []
    for column in STAGED:
        values = columns.get(column.name)
        array = pa.nulls(count) if values is None else pa.array(values) if isinstance(values, np.ndarray) else values
        arrays.append(_cast(array, _TYPES[column.kind]))
    batch = pa.RecordBatch.from_arrays(arrays, names=names(STAGED))
    return batch if kept is None else batch.filter(pa.array(kept))


def _cast(array: Any, to: Any) -> Any:
    if pa.types.is_floating(array.type) and pa.types.is_timestamp(to):
        array = array.cast(pa.int64())
    return array.cast(to)
