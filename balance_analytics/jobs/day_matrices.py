"""Rows of DAY_FACTS as numpy matrices of rows x 24 hours: read from the bytes of a file, and cut into buckets of partitions.

All rows of a partition are in the same bucket, whichever file they come from, so that one task computes it. Only what the stage `loads`
needs is read, one column at a time.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from balance_analytics.jobs.facts_columns import Columns, opened, reading
from balance_analytics.model.facts import HOURS
from balance_analytics.model.rate_rows import SOURCE
from balance_analytics.study.arrays import BoolArray, FloatArray, IntArray
from balance_analytics.study.partition_hours import last_true

HOUR_S = 3600
DAY_S = HOURS * HOUR_S
US_PER_DAY = DAY_S * 1_000_000

GONE_AFTER_HOURS = 3
"""A partition that was not sampled for so long, while others were, is deleted; a leader election takes seconds."""

NO_ROW = -1
"""In the place of the minutes of an hour without a row."""

NO_REPLICA = -1

PARTITIONS_PER_BLOCK = 16
"""Neighbours in a topic share a bucket: a file's part of a bucket then names fewer topics."""

_MIX = np.uint64(0x9E3779B97F4A7C15)
"""An odd number near 2^64 divided by the golden ratio: multiplied by it, numbers that follow each other are spread evenly."""

Ends = dict[str, tuple[int, int]]
"""By cluster the first and the last hour that counts, in Unix time."""


@dataclass(frozen=True, slots=True)
class Window:
    """Unix time in seconds of the first hour, of the end of the last hour that counts, and of the end of the last stored day.

    Facts of fewer than `min_minutes` may follow the window's end.
    """

    start_s: int
    end_s: int
    stored_until_s: int
    min_minutes: int

    @property
    def gone_before_s(self) -> int:
        """Partitions whose last hour starts before are gone."""
        return self.end_s - GONE_AFTER_HOURS * HOUR_S

    @property
    def first_day(self) -> int:
        """The day in which the window starts, in days since 1970."""
        return self.start_s // DAY_S

    @property
    def days(self) -> int:
        """Days of which a part or all is in the window."""
        return -(-self.stored_until_s // DAY_S) - self.first_day


class DayMatrices(NamedTuple):
    """Some rows of DAY_FACTS. Matrices have the shape (rows, 24); hours before the window are as those without a row."""

    series: tuple[tuple[str, str], ...]
    """Cluster and topic, numbered by `number`."""
    number: npt.NDArray[np.int32]
    partition: npt.NDArray[np.int32]
    day: npt.NDArray[np.int32]
    """Days since 1970."""
    minutes: npt.NDArray[np.int16]
    """NO_ROW in hours without a row."""
    leader: npt.NDArray[np.int32]
    bytes_in: FloatArray
    bytes_out: FloatArray
    messages_in: FloatArray
    size_bytes: FloatArray
    """NaN where unknown, as the three before."""
    replicas: npt.NDArray[np.int32]
    """In the last hour with a row, padded with NO_REPLICA: of shape (rows, longest)."""
    changed: IntArray
    """Rows whose replicas are not the same in all hours."""
    changed_replicas: npt.NDArray[np.int32]
    """Those of these rows: of shape (rows that changed, 24, longest)."""
    leader_changes: npt.NDArray[np.int32]
    resets: npt.NDArray[np.int32]
    rated_in: npt.NDArray[np.int32]
    """Hours whose bytes in count and are Prometheus' rates."""
    rated_out: npt.NDArray[np.int32]

    def rows(self, chosen: IntArray) -> DayMatrices:
        """Return some rows."""
        numbers, number = np.unique(self.number[chosen], return_inverse=True)
        at = np.full(len(self.number), -1)
        at[self.changed] = np.arange(len(self.changed))
        changed = np.flatnonzero(at[chosen] >= 0)
        return self._replace(
            series=tuple(self.series[number] for number in numbers.tolist()),
            number=number.astype(np.int32),
            changed=changed,
            changed_replicas=self.changed_replicas[at[chosen][changed]],
            **{name: getattr(self, name)[chosen] for name in _BY_ROW},
        )


_BY_ROW = tuple(name for name in DayMatrices._fields if name not in {"series", "number", "changed", "changed_replicas"})


def matrices_of_file(window: Window, cluster_id: str | None, path: str, data: bytes) -> Iterator[DayMatrices]:
    """Yield the rows of a file, of one cluster or of all; its path shows which layout it has. Raises `UnreadableFileError`."""
    for columns in opened(path, data):
        with reading(path):
            found = matrices(window, columns)
        yield found if cluster_id is None else of_cluster(found, cluster_id)


def ends_of_file(min_minutes: int, path: str, data: bytes) -> Ends:
    """Return the first and the last hour that counts, in Unix time, by cluster. Raises `UnreadableFileError`."""
    found: Ends = {}
    for columns in opened(path, data, needed=("cluster_id", "minutes")):
        with reading(path):
            clusters = columns.get("cluster_id").dictionary_encode()
            row, hour = np.nonzero(_minutes(columns) >= min_minutes)
            hour_s = _days(columns)[row].astype(np.int64) * DAY_S + hour * HOUR_S
        cluster = clusters.indices.to_numpy()[row]
        for number, name in enumerate(clusters.dictionary.to_pylist()):
            of_it = hour_s[cluster == number]
            if len(of_it):
                found = joined_ends(found, {name: (int(of_it.min()), int(of_it.max()))})
    return found


def joined_ends(one: Ends, other: Ends) -> Ends:
    """Return the ends of two sets of facts.

    >>> joined_ends({"a": (2, 3)}, {"a": (1, 2), "b": (5, 5)})
    {'a': (1, 3), 'b': (5, 5)}
    """
    found = dict(one)
    for cluster, (first, last) in other.items():
        before = found.get(cluster, (first, last))
        found[cluster] = min(before[0], first), max(before[1], last)
    return found


def matrices(window: Window, columns: Columns) -> DayMatrices:
    """Return all rows of some columns."""
    day, minutes = _days(columns), _minutes(columns)
    hour = day.astype(np.int64)[:, None] * HOURS + np.arange(HOURS)
    minutes[hour < window.start_s // HOUR_S] = NO_ROW
    there = minutes != NO_ROW
    bytes_in, bytes_out = _amounts(columns, "bytes_in"), _amounts(columns, "bytes_out")
    size = np.where(there, _amounts(columns, "size_bytes"), np.nan)
    series, number = _series(columns)
    counts = minutes >= max(1, window.min_minutes)
    return DayMatrices(
        series,
        number,
        columns.get("partition").to_numpy().astype(np.int32, copy=False),
        day,
        minutes,
        _numbers(columns, "leader", NO_REPLICA, np.int32),
        bytes_in,
        bytes_out,
        _amounts(columns, "messages_in"),
        size,
        *_replicas(columns, there),
        _sums(columns, "leader_changes", there),
        _sums(columns, "resets", there),
        _rated(columns, "source_in", counts & ~np.isnan(bytes_in)),
        _rated(columns, "bytes_out_source", counts & ~np.isnan(bytes_out)),
    )


def of_cluster(found: DayMatrices, cluster_id: str) -> DayMatrices:
    """Return the rows of one cluster."""
    of_it = [number for number, (cluster, _) in enumerate(found.series) if cluster == cluster_id]
    return found if len(of_it) == len(found.series) else found.rows(np.flatnonzero(np.isin(found.number, of_it)))


def by_bucket(found: DayMatrices, buckets: int) -> Iterator[tuple[int, DayMatrices]]:
    """Yield the rows of each bucket that has any, with its number."""
    seeds = np.array([zlib.crc32("\0".join(names).encode()) for names in found.series], dtype=np.uint64)
    block = (found.partition // PARTITIONS_PER_BLOCK).astype(np.uint64)
    mixed = (((seeds[found.number] << np.uint64(20)) + block) * _MIX) >> np.uint64(33)
    bucket = (mixed % np.uint64(buckets)).astype(np.int64)
    order = np.argsort(bucket, kind="stable")
    ends = np.searchsorted(bucket[order], np.arange(buckets + 1))
    for number in np.flatnonzero(np.diff(ends)).tolist():
        yield number, found.rows(order[ends[number] : ends[number + 1]])


def _days(columns: Columns) -> npt.NDArray[np.int32]:
    at = columns.get("day")
    micros = at.cast(pa.timestamp("us", at.type.tz)).cast(pa.int64()).to_numpy()
    return np.asarray(micros // US_PER_DAY, dtype=np.int32)


def _minutes(columns: Columns) -> npt.NDArray[np.int16]:
    return np.array(_numbers(columns, "minutes", NO_ROW, np.int16))


def _series(columns: Columns) -> tuple[tuple[tuple[str, str], ...], npt.NDArray[np.int32]]:
    """Return the distinct clusters and topics, and their number by row."""
    clusters, topics = (columns.get(name).dictionary_encode() for name in ("cluster_id", "topic"))
    names = topics.dictionary.to_pylist()
    both = clusters.indices.to_numpy().astype(np.int64) * len(names) + topics.indices.to_numpy()
    distinct, number = np.unique(both, return_inverse=True)
    of_cluster = clusters.dictionary.to_pylist()
    series = tuple((of_cluster[number // len(names)], names[number % len(names)]) for number in distinct.tolist())
    return series, number.astype(np.int32)


def _flat(columns: Columns, name: str) -> Any:
    """Return the values of a column's lists, 24 for each row."""
    lists = columns.get(name)
    flat = lists.flatten()
    if len(flat) != len(lists) * HOURS or lists.null_count:
        raise ValueError(f"the column {name} has not {HOURS} values in each row")
    return flat


def _numbers(columns: Columns, name: str, null: int, kind: type[np.signedinteger[Any]]) -> Any:
    flat = _flat(columns, name)
    return pc.fill_null(flat, null).to_numpy().reshape(-1, HOURS).astype(kind, copy=False)


def _amounts(columns: Columns, name: str) -> FloatArray:
    return np.asarray(_flat(columns, name).to_numpy(zero_copy_only=False).reshape(-1, HOURS), dtype=np.float64)


def _sums(columns: Columns, name: str, there: BoolArray) -> npt.NDArray[np.int32]:
    """Return the sum of a column for each row, in hours that are there."""
    if not columns.may_hold(name, 1):
        return np.zeros(len(there), dtype=np.int32)
    return np.asarray(np.where(there, _numbers(columns, name, 0, np.int32), 0).sum(axis=1), dtype=np.int32)


def _rated(columns: Columns, name: str, known: BoolArray) -> npt.NDArray[np.int32]:
    """Return the number of hours of each row that are `known` and whose source is Prometheus."""
    if not columns.may_hold(name, SOURCE):
        return np.zeros(len(known), dtype=np.int32)
    rated = pc.equal(_flat(columns, name), SOURCE).fill_null(False).to_numpy(zero_copy_only=False)
    return np.asarray((rated.reshape(-1, HOURS) & known).sum(axis=1), dtype=np.int32)


def _replicas(columns: Columns, there: BoolArray) -> tuple[Any, IntArray, Any]:
    """Return `replicas`, `changed` and `changed_replicas` of DayMatrices."""
    lists = _flat(columns, "replicas")
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).reshape(-1, HOURS)
    width = max(1, int(lengths.max(initial=0)))
    padded = np.full((*there.shape, width), NO_REPLICA, dtype=np.int32)
    padded[np.arange(width) < lengths[:, :, None]] = lists.flatten().to_numpy(zero_copy_only=False)
    last = padded[np.arange(len(there)), np.maximum(last_true(there), 0)]
    steady = ((padded == last[:, None, :]).all(axis=2) | ~there).all(axis=1)
    changed = np.flatnonzero(~steady)
    return last, changed, padded[changed]
