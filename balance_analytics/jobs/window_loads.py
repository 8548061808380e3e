"""The computation of one task of the stage `loads`: all days of some partitions to their loads and their part of the brokers' sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from balance_analytics.jobs.arrow_types import ARROW_TYPES
from balance_analytics.jobs.day_matrices import DAY_S, HOUR_S, NO_REPLICA, NO_ROW, DayMatrices, Window
from balance_analytics.model.column import Column, Kind, names
from balance_analytics.model.facts import HOURS
from balance_analytics.model.loads import BROKER_HOURS, DIGITS, PARTITION_LOADS
from balance_analytics.study.arrays import AnyIntArray, BoolArray, IntArray
from balance_analytics.study.partition_hours import (
    NO_LEADER,
    SUMS,
    BrokerSums,
    PartitionHours,
    distinct,
    last_true,
    statistics,
)

US_PER_S = 1_000_000

MAX_CELLS = 400_000
"""Partitions x hours at once: arrays of 3 MB, which fit into a processor's cache better than larger ones."""

AMOUNTS = ("bytes_in", "bytes_out", "messages_in")
COUNTS = ("leader_changes", "resets", "rated_in", "rated_out")
"""Fields of DayMatrices."""


class Gone(NamedTuple):
    """Partitions of a topic that are gone: how many, and the last hour with a row of any, in Unix time."""

    topic: str
    partitions: int
    last_s: int


class TaskLoads(NamedTuple):
    """Result of a task: tables of PARTITION_LOADS, what is gone, the clusters found, and the sums of what is not gone."""

    loads: list[Any]
    gone: list[Gone]
    clusters: set[str]
    sums: BrokerSums


def task_loads(window: Window, found: Sequence[DayMatrices]) -> TaskLoads:
    """Compute the partitions of some rows; all rows of a partition must be there."""
    days = _Days(window, found)
    brokers = distinct(
        np.concatenate([broker.ravel() for broker in days.brokers()]) if found else np.zeros(0, np.int64)
    )
    sums = BrokerSums(brokers[brokers != NO_REPLICA], window.days * HOURS)
    loads, gone = [], dict[str, Gone]()
    for first in range(0, days.count, step := max(1, MAX_CELLS // (window.days * HOURS))):
        part = slice(first, min(first + step, days.count))
        hours = days.hours(part)
        last_at = last_true(hours.there)
        last_s = window.first_day * DAY_S + last_at * HOUR_S
        kept = (last_at >= 0) & (last_s >= window.gone_before_s)
        for row in np.flatnonzero((last_at >= 0) & ~kept):
            topic = days.series[days.number[first + row]][1]
            before = gone.get(topic, Gone(topic, 0, 0))
            gone[topic] = Gone(topic, before.partitions + 1, max(before.last_s, int(last_s[row])))
        loads.append(_table(_columns(days, part, hours, last_at), np.flatnonzero(kept)))
        hours.leader[~kept] = NO_LEADER
        sums.add_led(hours)
        days.add_copies(sums, part, kept)
    return TaskLoads(loads, list(gone.values()), {cluster for cluster, _ in days.series}, sums)


def broker_hours(window: Window, sums: BrokerSums) -> Any:
    """Return BROKER_HOURS, rounded, for hours in which a broker led or held anything, in order."""
    row, hour = np.nonzero((sums.totals[SUMS.index("leaders")] > 0) | (sums.totals[SUMS.index("copies")] > 0))
    columns: dict[str, Any] = {"broker": sums.brokers[row], "hour": _micros(window, hour)}
    columns |= {name: np.round(sums.totals[at, row, hour], DIGITS) for at, name in enumerate(SUMS)}
    return _arrow(BROKER_HOURS, columns)


class _Days:
    """All rows of a task, as arrays of partitions x days: partitions are in the order of cluster, topic and number."""

    def __init__(self, window: Window, found: Sequence[DayMatrices]) -> None:
        self.window, self.found = window, found
        self.series = sorted({names for rows in found for names in rows.series})
        number_of = {names: number for number, names in enumerate(self.series)}
        keys = [
            np.array([number_of[names] for names in rows.series], dtype=np.int64)[rows.number] << 32 | rows.partition
            for rows in found
        ]
        distinct_keys, place = np.unique(np.concatenate([np.zeros(0, np.int64), *keys]), return_inverse=True)
        self.count = len(distinct_keys)
        self.number, self.partition = distinct_keys >> 32, distinct_keys & 0xFFFF_FFFF
        self.rows = np.split(place, np.cumsum([len(rows.day) for rows in found], dtype=int))[: len(found)]
        self.shape = (self.count, window.days, HOURS)
        self.minutes = self._spread("minutes", NO_ROW, np.int16)
        self.leader = self._spread("leader", NO_LEADER, np.int32)
        self.size = self._spread("size_bytes", np.nan, np.float64)
        self.replicas = self._replicas()
        self.held = self.replicas.copy()
        for rows, place, day in self._placed():
            self.held[place[rows.changed], day[rows.changed]] = NO_REPLICA
        self.amounts = {name: self._spread(name, np.nan, np.float64) for name in AMOUNTS}
        self.counts = {name: self._sum(name) for name in COUNTS}

    def _placed(self) -> Iterator[tuple[DayMatrices, IntArray, AnyIntArray]]:
        """Yield some rows with the partition and the day of each."""
        for rows, place in zip(self.found, self.rows, strict=True):
            yield rows, place, rows.day - self.window.first_day

    def _spread(self, name: str, nothing: float, kind: type[np.generic]) -> Any:
        wide = np.full(self.shape, nothing, dtype=kind)
        for rows, place, day in self._placed():
            wide[place, day] = getattr(rows, name)
        return wide

    def _sum(self, name: str) -> IntArray:
        """Return the sum of a column of numbers for each partition."""
        total = np.zeros(self.count)
        for rows, place, _ in self._placed():
            total += np.bincount(place, getattr(rows, name), self.count)
        return total.astype(np.int64)

    def _replicas(self) -> IntArray:
        width = max((rows.replicas.shape[1] for rows in self.found), default=1)
        wide = np.full((*self.shape[:2], width), NO_REPLICA, dtype=np.int32)
        for rows, place, day in self._placed():
            wide[place, day, : rows.replicas.shape[1]] = rows.replicas
        return wide

    def brokers(self) -> Iterator[IntArray]:
        """Yield arrays that have all brokers; NO_LEADER and NO_REPLICA are among them."""
        for rows in self.found:
            yield distinct(rows.leader)
            yield distinct(rows.replicas)
            yield distinct(rows.changed_replicas)

    def hours(self, part: slice) -> PartitionHours:
        """Return the hours of some partitions, from the start of the window's first day on."""
        minutes = self.flat(self.minutes, part)
        counted = minutes >= max(1, self.window.min_minutes)
        seconds = np.where(counted, minutes * 60.0, np.nan)
        rate, out, messages = (self.flat(self.amounts[name], part) / seconds for name in AMOUNTS)
        leader, size = self.flat(self.leader, part), self.flat(self.size, part)
        return PartitionHours(minutes != NO_ROW, leader, rate, out, messages, size)

    def flat(self, wide: Any, part: slice) -> Any:
        """Return days as hours: partitions x hours."""
        return wide[part].reshape(-1, self.window.days * HOURS)

    def add_copies(self, sums: BrokerSums, part: slice, kept: BoolArray) -> None:
        """Add the replicas of some partitions, of those that are `kept`."""
        size = np.where(kept[:, None, None], self.size[part], np.nan)
        hour = np.arange(self.window.days * HOURS).reshape(-1, HOURS)
        for at in range(self.held.shape[2]):
            sums.add_held(self.held[part, :, at, None], hour, size)
        for rows, place, day in self._placed():
            changed = rows.changed[(place[rows.changed] >= part.start) & (place[rows.changed] < part.stop)]
            if len(changed):
                of_row = size[place[changed] - part.start, day[changed]]
                replicas = rows.changed_replicas[np.searchsorted(rows.changed, changed)]
                sums.add_held(replicas, hour[day[changed]][:, :, None], of_row[:, :, None])


def _columns(days: _Days, part: slice, hours: PartitionHours, last_at: IntArray) -> dict[str, Any]:
    """Return the columns of PARTITION_LOADS."""
    window = days.window
    rows = np.arange(len(last_at))
    found = dict(statistics(hours))
    found["bytes_in_peak_hour"] = _micros(window, found["bytes_in_peak_hour"])
    clusters, topics = ([days.series[number][at] for number in days.number[part].tolist()] for at in (0, 1))
    return {
        **found,
        "cluster_id": clusters,
        "topic": topics,
        "partition": days.partition[part],
        "leader": hours.leader[rows, last_at],
        "replicas": _lists(days.replicas[part][rows, np.maximum(last_at, 0) // HOURS]),
        "leader_changes": days.counts["leader_changes"][part],
        "resets": days.counts["resets"][part],
        "hours_out": (~np.isnan(hours.rate_out)).sum(axis=1),
        "hours_in_rated": days.counts["rated_in"][part],
        "hours_out_rated": days.counts["rated_out"][part],
    }


def _table(columns: dict[str, Any], kept: IntArray) -> Any:
    """Return the rows of PARTITION_LOADS that are kept, rounded."""
    return _arrow(PARTITION_LOADS, columns).take(pa.array(kept))


def _arrow(table: Sequence[Column], columns: dict[str, Any]) -> Any:
    """Return columns as an Arrow table; NaN is null, and other floats are rounded to DIGITS."""
    arrays = []
    for column in table:
        values = columns[column.name]
        if isinstance(values, np.ndarray) and values.dtype == np.float64:
            rounded = np.round(values, DIGITS) if column.kind is Kind.FLOAT64 else np.where(np.isnan(values), 0, values)
            values = pa.array(rounded, mask=np.isnan(values))
        array = values if isinstance(values, pa.Array) else pa.array(values)
        # Times are numbers of microseconds until here.
        array = array.cast(pa.int64()) if column.kind is Kind.TIMESTAMP else array
        arrays.append(array.cast(ARROW_TYPES[column.kind]))
    return pa.Table.from_arrays(arrays, names=names(table))


def _lists(padded: IntArray) -> Any:
    """Return rows of brokers, padded with NO_REPLICA, as lists."""
    there = padded != NO_REPLICA
    offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(padded[there], pa.int32()))


def _micros(window: Window, at: Any) -> Any:
    """Return hours since the start of the window's first day as Unix time in microseconds."""
    return (window.first_day * DAY_S + at * HOUR_S) * US_PER_S
