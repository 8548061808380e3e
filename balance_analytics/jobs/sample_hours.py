"""The computation of one task of the stage `facts`: packed samples (`packed_samples`) to hourly facts, with numpy.

Counters only count while they are sampled and are not set back. So the difference of two successive samples of a partition is valid when
both know the end offset, are no further apart than `MAX_ROUNDS` rounds, and no offset decreased; all others are marked and give no number:

- too far apart, or not known: a gap. What came in the meantime has no minute to belong to.
- the end or the start is below that of the sample before: a reset (a topic deleted and created again, a log cut by an unclean election).
- another leader than the last one known: counted; offsets are the same on every replica, so that messages are valid, but sizes are
  not, so that the growth of the leader's copy is not used.
- the number of groups changed: committed offsets cannot be compared.

Samples are in the order of time, behind the partition's state before them (`model/day_states.py`); a sample that is there twice counts
once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from balance_analytics.jobs.arrow_types import ARROW_TYPES
from balance_analytics.jobs.day_batches import Batches, whole_groups
from balance_analytics.jobs.packed_samples import FIELDS, HOUR_MS, NULL, PARTITION, hour_of, unpacked
from balance_analytics.model.column import Column, names
from balance_analytics.model.day_states import STATE_VALUES
from balance_analytics.model.facts import FACTS
from balance_analytics.study.arrays import BoolArray, FloatArray, IntArray
from balance_analytics.study.partition_hours import NO_LEADER

MAX_ROUNDS = 2.5
"""One sample may be missing: the two minutes' messages are still known within the hour."""

MINUTES_PER_HOUR = 60
MINUTE_MS = 60_000

STATE_PREFIX = "state_"
SAMPLE_HOURS = (
    *FACTS,
    *(
        Column(f"{STATE_PREFIX}{value.name}", value.kind, "of the hour's last sample", nullable=True)
        for value in STATE_VALUES
    ),
)
"""Rows of FACTS, with the partition's state after its last sample of the hour."""

_ORDER = FIELDS[:8]


def hour_batches(round_ms: int, batches: Iterable[Any]) -> Batches:
    """Turn rows of PACKED, sorted by PARTITION, into rows of SAMPLE_HOURS; `round_ms` is the interval of samples."""
    for batch, starts in whole_groups(batches, PARTITION):
        matrix, row = unpacked(batch)
        series = np.repeat(np.arange(len(starts)), np.diff([*starts, batch.num_rows]))[row]
        order = _in_order(series, matrix)
        samples = _Samples(series[order], row[order], matrix[order], round_ms)
        if len(samples.starts):
            yield _batch(batch, samples)


def _in_order(series: IntArray, matrix: IntArray) -> IntArray:
    """Return the order of samples: by series, then by the columns _ORDER; of equal times there are few, mostly none."""
    time = matrix[:, 0]
    order = np.lexsort((time, series))
    tied = (np.diff(series[order]) == 0) & (np.diff(time[order]) == 0)
    if tied.any():
        order = np.lexsort((*(matrix[:, at] for at in reversed(range(len(_ORDER)))), series))
    return np.asarray(order)


class _Samples:
    """Samples that count, in order of series, hour and time; `starts` are the rows at which a series' hours start."""

    def __init__(self, series: IntArray, row: IntArray, matrix: IntArray, round_ms: int) -> None:
        columns = dict(zip(FIELDS, np.ascontiguousarray(matrix.T), strict=True))
        first = np.ones(len(series), bool)
        first[1:] = series[1:] != series[:-1]
        found = _differences(columns, first, round_ms)
        hour = hour_of(columns["round_ms"], round_ms)
        kept = np.flatnonzero(found.pop("fresh"))
        order = kept[np.lexsort((hour[kept], series[kept]))] if _falls(series[kept], hour[kept]) else kept
        self.row, self.hour, series = row[order], hour[order], series[order]
        self.columns = {name: values[order] for name, values in {**columns, **found}.items()}
        changes = np.ones(len(order), bool)
        changes[1:] = (np.diff(series) != 0) | (np.diff(self.hour) != 0)
        self.starts = np.flatnonzero(changes)
        self.cell = np.cumsum(changes) - 1
        self.ends = np.append(self.starts[1:], len(order))

    def sums(self, name: str, where: BoolArray | None = None) -> tuple[IntArray, BoolArray]:
        """Return the sums of a column's known values in each hour, and whether there are any."""
        values = self.columns[name]
        known = values != NULL if where is None else where
        sums = np.add.reduceat(np.where(known, values, 0), self.starts)
        return sums, np.logical_or.reduceat(known, self.starts)

    def last_known(self, name: str) -> IntArray:
        """Return the last known value of each hour, NULL where there is none."""
        values = self.columns[name]
        at = np.maximum.reduceat(np.where(values != NULL, np.arange(len(values)), -1), self.starts)
        return np.where(at >= 0, values[at], NULL)

    def last(self, name: str) -> IntArray:
        """Return the value of the last sample of each hour."""
        return np.asarray(self.columns[name][self.ends - 1])

    def most_frequent(self, name: str) -> IntArray:
        """Return the most frequent broker of each hour, of equals the lowest; NO_LEADER where there is none."""
        values = self.columns[name]
        known = (values != NULL) & (values != NO_LEADER)
        lowest = np.minimum.reduceat(np.where(known, values, np.iinfo(np.int64).max), self.starts)
        highest = np.maximum.reduceat(np.where(known, values, NULL), self.starts)
        found = np.where(highest == NULL, NO_LEADER, lowest)
        mixed = (lowest < highest)[self.cell] & known
        if not mixed.any():
            return np.asarray(found)
        pairs, counts = np.unique(np.stack([self.cell[mixed], values[mixed]], axis=1), axis=0, return_counts=True)
        order = np.lexsort(
            (-pairs[:, 1], counts, pairs[:, 0])
        )  # the last one of each hour is the most frequent, then the lowest
        found[pairs[order, 0]] = pairs[order, 1]
        return np.asarray(found)


def _falls(series: IntArray, hour: IntArray) -> bool:
    """Return whether an hour follows a later one of the same series: its samples were planned in another order than they were made."""
    return bool(((np.diff(series) == 0) & (np.diff(hour) < 0)).any())


def _differences(columns: dict[str, IntArray], first: BoolArray, round_ms: int) -> dict[str, Any]:
    """Return what changed since the sample before, NULL where nothing valid is known; `first` marks the first row of each series."""

    def before(name: str) -> IntArray:
        values = np.roll(columns[name], 1)
        values[first] = NULL
        return values

    def change(name: str) -> tuple[IntArray, BoolArray]:
        old = before(name)
        known = (columns[name] != NULL) & (old != NULL)
        return np.where(known, columns[name] - old, 0), known

    elapsed, follows = change("sampled_at_ms")
    ends, ends_known = change("end_offset")
    begins, begins_known = change("start_offset")
    committed, committed_known = change("committed_offset_sum")
    groups, groups_known = change("committed_groups")
    growth, growth_known = change("leader_size")
    same_leader, leader_known = change("leader")
    reset = (ends_known & (ends < 0)) | (begins_known & (begins < 0))
    valid = follows & (elapsed >= 1) & (elapsed <= int(MAX_ROUNDS * round_ms)) & ~reset
    same_groups = groups_known & (groups == 0)
    leader = columns["leader"]
    known_leader = np.where(
        columns["is_sample"] == 0, columns["known_leader"], np.where(leader == NO_LEADER, NULL, leader)
    )
    so_far = _last_known(known_leader, first)
    last_leader = np.roll(so_far, 1)
    last_leader[first] = NULL
    return {
        "fresh": (columns["is_sample"] == 1) & ~(follows & (elapsed == 0)),
        "reset": reset.astype(np.int64),
        "moved": ((leader != NULL) & (leader != NO_LEADER) & (last_leader != NULL) & (leader != last_leader)).astype(
            np.int64
        ),
        "elapsed_ms": np.where(valid & ends_known, elapsed, NULL),
        "messages": np.where(valid & ends_known, ends, NULL),
        "committed": np.where(valid & same_groups & committed_known & (committed >= 0), committed, NULL),
        "growth_bytes": np.where(valid & leader_known & (same_leader == 0) & growth_known, growth, NULL),
        "known_leader": so_far,
    }


def _last_known(values: IntArray, first: BoolArray) -> IntArray:
    """Return the last known value of the same series at each row, NULL before the first; `first` marks the first rows."""
    rows = np.arange(len(values))
    at = np.maximum.accumulate(np.where((values != NULL) | first, rows, 0))
    return values[at]


def _batch(packed: Any, samples: _Samples) -> Any:
    """Return rows of SAMPLE_HOURS."""
    columns = {**_names(packed, samples), **_figures(samples)}
    columns |= {f"{STATE_PREFIX}{value.name}": _nullable(samples.last(value.name)) for value in STATE_VALUES}
    arrays = [columns[column.name] for column in SAMPLE_HOURS]
    return pa.RecordBatch.from_arrays(
        [array.cast(ARROW_TYPES[column.kind]) for array, column in zip(arrays, SAMPLE_HOURS, strict=True)],
        names=names(SAMPLE_HOURS),
    )


def _names(packed: Any, samples: _Samples) -> dict[str, Any]:
    row = pa.array(samples.row[samples.ends - 1])
    return {
        **{name: packed[name].take(row) for name in (*PARTITION, "replicas")},
        "hour": pa.array(samples.hour[samples.starts] * HOUR_MS * 1000),
        "leader": pa.array(samples.most_frequent("leader")),
    }


def _figures(samples: _Samples) -> dict[str, Any]:
    known_ms, is_known = samples.sums("elapsed_ms")
    minutes = (known_ms + MINUTE_MS // 2) // MINUTE_MS
    resets, _ = samples.sums("reset")
    moves, _ = samples.sums("moved")
    messages, has_messages = samples.sums("messages")
    growth, has_growth = samples.sums("growth_bytes")
    record_bytes = _record_bytes(samples)
    read = _read(samples, known_ms, is_known)
    bytes_out = _bytes(read, record_bytes)
    messages_in = np.where(has_messages, messages, np.nan)
    count = len(minutes)
    return {
        "minutes": pa.array(minutes),
        "gap_minutes": pa.array(np.maximum(0, MINUTES_PER_HOUR - minutes)),
        "resets": pa.array(resets),
        "leader_changes": pa.array(moves),
        "messages_in": _floats(messages_in),
        "bytes_in": _floats(_bytes(messages_in, record_bytes)),
        "bytes_out": _floats(bytes_out),
        "bytes_out_source": pa.array(["estimate", "none"]).take(pa.array(np.isnan(bytes_out).astype(np.int64))),
        "record_bytes": _floats(record_bytes),
        "size_bytes": _nullable(samples.last_known("leader_size")),
        "size_growth_bytes": _floats(np.where(has_growth, growth, np.nan)),
        "source_in": pa.array(["offsets"]).take(pa.array(np.zeros(count, np.int64))),
    }


def _record_bytes(samples: _Samples) -> FloatArray:
    """Return the mean size of a record in the leader's log, NaN where no sample knows it."""
    end, start, size = (samples.columns[name] for name in ("end_offset", "start_offset", "leader_size"))
    sized = (size != NULL) & (end != NULL) & (start != NULL) & (end > start)
    samples.columns["held"] = np.where(sized, end - start, NULL)
    sizes, _ = samples.sums("leader_size", sized)
    held, any_held = samples.sums("held")
    return np.asarray(np.divide(sizes, held, out=np.full(len(held), np.nan), where=any_held))


def _read(samples: _Samples, known_ms: IntArray, is_known: BoolArray) -> FloatArray:
    """Return the messages that groups read, NaN where they were known for less than half of the time: they say nothing of the rest."""
    committed, _ = samples.sums("committed")
    both = (samples.columns["committed"] != NULL) & (samples.columns["elapsed_ms"] != NULL)
    committed_ms, any_committed = samples.sums("elapsed_ms", both)
    known = is_known & any_committed & (committed_ms * 2 >= known_ms)
    amount = committed.astype(np.float64) * known_ms.astype(np.float64)
    return np.asarray(np.divide(amount, committed_ms, out=np.full(len(amount), np.nan), where=known))


def _bytes(messages: FloatArray, record_bytes: FloatArray) -> FloatArray:
    """Return messages in bytes: none are none whatever their size."""
    return np.where(messages == 0, 0.0, messages * record_bytes)


def _floats(values: FloatArray) -> Any:
    return pa.array(values, mask=np.isnan(values))


def _nullable(values: IntArray) -> Any:
    return pa.array(values, mask=values == NULL)
