"""Loads of many partitions at once, as arrays of partitions x hours: statistics of each partition, sums of each broker by hour.

The plain twin of the statistics of one partition is `series`. Hours without a value are NaN and count nowhere. Sums of floating point
numbers depend on their order in the last digits; the caller rounds. Leaves out how the arrays are read (`jobs/loads.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from balance_analytics.study.arrays import BoolArray, FloatArray, IntArray
from balance_analytics.study.series import HOURS_PER_DAY, PERCENTILE

NO_LEADER = -1

SUMS = ("leaders", "bytes_in", "bytes_out", "messages_in", "copies", "size_bytes")
"""Of a broker in an hour: `BrokerSums.totals` has them in this order."""


@dataclass(frozen=True, slots=True, eq=False)
class PartitionHours:
    """Arrays of partitions x hours. Rates are per second, `size` is bytes; NaN where unknown.

    `leader` is NO_LEADER where no broker led, and in hours that have no row.
    """

    there: BoolArray
    """Hours that have a row."""
    leader: IntArray
    rate: FloatArray
    """Bytes in."""
    rate_out: FloatArray
    rate_messages: FloatArray
    size: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """Replicas of some hours, one entry each: the row and hour of PartitionHours, and the broker."""

    row: IntArray
    hour: IntArray
    broker: IntArray


def statistics(hours: PartitionHours) -> Mapping[str, FloatArray]:
    """Return the columns of `model/loads.STATISTICS` as floats, NaN for null; `bytes_in_peak_hour` is the place of the hour."""
    known = ~np.isnan(hours.rate)
    count = known.sum(axis=1)
    size_at = last_true(~np.isnan(hours.size))
    rows = np.arange(len(count))
    return {
        "hours": count.astype(np.float64),
        "bytes_in_mean": means(hours.rate),
        "bytes_in_p95": percentiles(hours.rate, count),
        "bytes_in_peak": _or_nan(np.where(known, hours.rate, -np.inf).max(axis=1, initial=-np.inf), count),
        "bytes_in_peak_hour": _or_nan(busiest(hours.rate), count),
        "bytes_in_trend": slopes(hours.rate) * HOURS_PER_DAY,
        "bytes_out_mean": means(hours.rate_out),
        "messages_in_mean": means(hours.rate_messages),
        "size_bytes": np.where(size_at >= 0, hours.size[rows, size_at], np.nan),
        "size_trend": slopes(hours.size) * HOURS_PER_DAY,
    }


def means(values: FloatArray) -> FloatArray:
    """Return the mean of the known values of each row, NaN where there is none."""
    known = ~np.isnan(values)
    return _ratio(np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1))


def percentiles(values: FloatArray, count: IntArray) -> FloatArray:
    """Return the smallest of the `count` known values of each row that 95 of 100 are at or below, NaN where there is none."""
    rank = np.maximum(np.ceil(PERCENTILE * count).astype(np.int64), 1)
    return np.asarray(np.sort(values, axis=1)[np.arange(len(values)), rank - 1])  # NaN is sorted behind all values


def busiest(rates: FloatArray) -> FloatArray:
    """Return the first hour with the highest rate of each row, compared in whole bytes, halves rounded up."""
    whole = np.floor(rates)
    whole += rates - whole >= 0.5
    return np.asarray(np.where(np.isnan(whole), -1.0, whole).argmax(axis=1), dtype=np.float64)


def slopes(values: FloatArray) -> FloatArray:
    """Return the slope of the least-squares line of each row, by hour, NaN with fewer than two values."""
    known = ~np.isnan(values)
    count = known.sum(axis=1)
    at = np.arange(values.shape[1], dtype=np.float64)
    centre = _ratio((known * at).sum(axis=1), count)
    level = means(values)
    with np.errstate(invalid="ignore"):
        distance = np.where(known, at - centre[:, None], 0.0)
        above = np.where(known, values - level[:, None], 0.0)
    return _ratio((distance * above).sum(axis=1), (distance * distance).sum(axis=1))


def last_true(marks: BoolArray) -> IntArray:
    """Return the last place of each row that is true, -1 where none is."""
    found = marks.shape[1] - 1 - marks[:, ::-1].argmax(axis=1)
    return np.where(marks.any(axis=1), found, -1)


def _ratio(above: FloatArray, below: FloatArray | IntArray) -> FloatArray:
    return np.asarray(np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0))


def _or_nan(values: FloatArray, count: IntArray) -> FloatArray:
    return np.where(count > 0, values, np.nan)


@dataclass(slots=True, eq=False)
class BrokerSums:
    """Sums by broker and hour over the partitions that were added: `totals` has an array of SUMS x hours for each broker."""

    hours: int
    totals: dict[int, FloatArray] = field(default_factory=dict)

    def add(self, hours: PartitionHours, copies: Copies) -> None:
        """Add partitions: what each broker led counts where its rate is known, what it held where its size is known."""
        led = (hours.leader != NO_LEADER) & ~np.isnan(hours.rate)
        row, hour = np.nonzero(led)
        rates = (np.nan_to_num(values[row, hour]) for values in (hours.rate, hours.rate_out, hours.rate_messages))
        self._add(hours.leader[row, hour], hour, 0, (np.ones(len(row)), *rates))
        size = hours.size[copies.row, copies.hour]
        held = ~np.isnan(size)
        self._add(copies.broker[held], copies.hour[held], 4, (np.ones(int(held.sum())), size[held]))

    def _add(self, broker: IntArray, hour: IntArray, first: int, columns: tuple[FloatArray, ...]) -> None:
        """Add columns of SUMS, from the number `first` on, given by broker and hour."""
        brokers = distinct(broker)
        cell = np.searchsorted(brokers, broker) * self.hours + hour
        for number, column in enumerate(columns, first):
            sums = np.bincount(cell, column, len(brokers) * self.hours).reshape(-1, self.hours)
            for one, found in zip(brokers.tolist(), sums, strict=True):
                if one not in self.totals:
                    self.totals[one] = np.zeros((len(SUMS), self.hours))
                self.totals[one][number] += found


def distinct(values: IntArray) -> IntArray:
    """Return the values that occur, in order; quicker than np.unique where long runs of them are equal or values are small."""
    if not len(values):
        return values
    low, high = int(values.min()), int(values.max())
    if high - low < len(values):
        return np.flatnonzero(np.bincount(values - low)) + low
    return np.unique(values)
