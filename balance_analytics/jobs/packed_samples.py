"""Samples of a partition and hour packed into one row, before they are shuffled: 50 samples cost hardly more than one.

A task gathers `ROWS_AT_ONCE` samples in any order and writes a row of PACKED for each partition, hour and list of replicas among them.
`samples` of such a row are the bytes of an int64 matrix with the columns FIELDS; NULL represents null.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from balance_analytics.jobs.day_batches import Batches
from balance_analytics.model.column import Column, Kind, names
from balance_analytics.study.arrays import IntArray

PARTITION = ("cluster_id", "topic", "partition")

FIELDS = (
    "sampled_at_ms",
    "is_sample",
    "round_ms",
    "end_offset",
    "start_offset",
    "leader",
    "leader_epoch",
    "leader_size",
    "committed_offset_sum",
    "committed_groups",
    "known_leader",
)
"""`is_sample` is 0 for a stored state (`model/day_states.py`), else 1. The first eight are the order of a partition's samples."""

NULL = np.iinfo(np.int64).min
"""Sorted before all values, as Spark sorts null."""

PACKED = (
    Column("cluster_id", Kind.STRING, "the cluster's own id"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "its number in the topic"),
    Column("replicas", Kind.INT32_LIST, "of all samples of the row", nullable=True),
    Column("samples", Kind.BINARY, "a matrix of int64 with the columns FIELDS"),
)

ROWS_AT_ONCE = 500_000
"""Of a task, in memory: some 200 MB with their copies. With 10,000 partitions these are 50 samples of each."""

PARTITION_BITS = 32
PARTITION_MASK = (1 << PARTITION_BITS) - 1
"""A partition's number is never negative."""

MAX_SAMPLES = 64
"""Of a row: an hour of minutes. Spark hands 10,000 rows at a time to Python, which are then at most 56 MB."""

HOUR_MS = 3_600_000


def packed_batches(round_ms: int, batches: Iterable[Any]) -> Batches:
    """Turn samples, with the columns PARTITION, `replicas` and FIELDS, into rows of PACKED; `round_ms` is the interval of samples."""
    for gathered in _gathered(batches):
        yield _packed(gathered, round_ms)


def _packed(rows: _Rows, round_ms: int) -> Any:
    series, matrix, replicas = rows.joined()
    order = np.argsort(series, kind="stable")
    series, matrix = series[order], matrix[order]
    replicas = replicas.take(pa.array(order))
    starts = _starts(series, hour_of(matrix[:, FIELDS.index("round_ms")], round_ms), replicas)
    first = pa.array(starts)
    name = pa.array(series[starts] >> PARTITION_BITS)
    clusters, topics = zip(*rows.names, strict=True)
    arrays = [pa.array(names_of, pa.string()).take(name) for names_of in (clusters, topics)]
    arrays += [
        pa.array((series[starts] & PARTITION_MASK).astype(np.int32)),
        replicas.take(first),
        _binary(matrix, starts),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=names(PACKED))


def unpacked(batch: Any) -> tuple[IntArray, IntArray]:
    """Return the samples of rows of PACKED as a matrix with the columns FIELDS, and the row of each."""
    column = batch["samples"]
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    lengths = np.diff(offsets) // (8 * len(FIELDS))
    data = np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    matrix = np.frombuffer(data.tobytes(), np.int64).reshape(-1, len(FIELDS))
    return matrix, np.repeat(np.arange(len(column)), lengths)


def matrix_of(columns: Mapping[str, Any]) -> IntArray:
    """Return columns of Arrow, by the names of FIELDS, as a matrix."""
    found = np.empty((len(columns[FIELDS[0]]), len(FIELDS)), np.int64)
    for at, name in enumerate(FIELDS):
        found[:, at] = columns[name].cast(pa.int64()).fill_null(NULL).to_numpy(zero_copy_only=False)
    return found


def hour_of(planned_ms: IntArray, round_ms: int) -> IntArray:
    """Return the hour, counted from 1970, to which samples planned for `planned_ms` belong."""
    return (planned_ms - round_ms // 2) // HOUR_MS


class _Rows:
    """Samples that are gathered: numbers in place of names, so that Arrow's batches are released at once."""

    def __init__(self) -> None:
        self.names: dict[tuple[str, str], int] = {}
        """The number of each cluster and topic, in order."""
        self.count = 0
        self._parts: list[tuple[IntArray, IntArray, Any]] = []

    def add(self, batch: Any) -> None:
        """Add a batch."""
        # Copied, since a part of a batch keeps all of it.
        replicas = pa.concat_arrays([batch["replicas"], batch["replicas"].slice(0, 0)])
        self._parts.append((self._series(batch), matrix_of({name: batch[name] for name in FIELDS}), replicas))
        self.count += batch.num_rows

    def joined(self) -> tuple[IntArray, IntArray, Any]:
        """Return the series of each row, the matrix and the replicas; what was gathered is released."""
        series = np.concatenate([part[0] for part in self._parts])
        matrix = np.concatenate([part[1] for part in self._parts])
        replicas = pa.concat_arrays([part[2] for part in self._parts])
        self._parts = []
        return series, matrix, replicas

    def _series(self, batch: Any) -> IntArray:
        """Return a number for each row, equal for rows of the same partition: that of its names, then the partition."""
        clusters, topics = (batch[name].dictionary_encode() for name in ("cluster_id", "topic"))
        cluster, topic = (column.indices.to_numpy().astype(np.int64) for column in (clusters, topics))
        pairs, place = np.unique(cluster * len(topics.dictionary) + topic, return_inverse=True)
        named = zip(*(array.to_pylist() for array in _of_pairs(pairs, clusters, topics)), strict=True)
        numbers = np.array([self.names.setdefault(name, len(self.names)) for name in named], np.int64)
        return np.asarray((numbers[place] << PARTITION_BITS) + batch["partition"].to_numpy().astype(np.int64))


def _of_pairs(pairs: IntArray, clusters: Any, topics: Any) -> tuple[Any, Any]:
    """Return the clusters and topics of pairs of their numbers."""
    cluster, topic = np.divmod(pairs, len(topics.dictionary))
    return clusters.dictionary.take(pa.array(cluster)), topics.dictionary.take(pa.array(topic))


def _gathered(batches: Iterable[Any]) -> Iterator[_Rows]:
    """Yield about ROWS_AT_ONCE rows at a time."""
    rows = _Rows()
    for batch in batches:
        if batch.num_rows:
            rows.add(batch)
        if rows.count >= ROWS_AT_ONCE:
            yield rows
            rows = _Rows()
    if rows.count:
        yield rows


def _starts(series: IntArray, hour: IntArray, replicas: Any) -> IntArray:
    """Return the rows at which the series, the hour or the replicas change, and after every MAX_SAMPLES rows."""
    count = len(series)
    changes = np.ones(count, bool)
    changes[1:] = (np.diff(series) != 0) | (np.diff(hour) != 0) | _differ(replicas)
    starts = np.flatnonzero(changes)
    since = np.arange(count) - np.repeat(starts, np.diff([*starts, count]))
    return np.flatnonzero(since % MAX_SAMPLES == 0)


def _differ(lists: Any) -> Any:
    """Return of each list but the first whether it differs from the one before."""
    length = lists.value_lengths().fill_null(-1).to_numpy(zero_copy_only=False)
    longest = max(0, int(length.max(initial=0)))
    padded = np.full((len(lists), longest), NULL)
    padded[np.arange(longest) < length[:, None]] = lists.flatten().to_numpy(zero_copy_only=False)
    return (np.diff(length) != 0) | (padded[1:] != padded[:-1]).any(axis=1)


def _binary(matrix: IntArray, starts: IntArray) -> Any:
    row_bytes = matrix.itemsize * len(FIELDS)
    offsets = np.append(starts, len(matrix)).astype(np.int32) * np.int32(row_bytes)
    data = pa.py_buffer(np.ascontiguousarray(matrix))
    return pa.Array.from_buffers(pa.binary(), len(starts), [None, pa.py_buffer(offsets), data])
