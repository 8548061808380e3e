"""Loads of many partitions at once, as arrays of partitions x hours: statistics of each partition, sums of each broker by hour.

The plain twin of the statistics of one partition is `series`. Hours without a value are NaN and count nowhere. Sums of floating point
numbers depend on their order in the last digits; the caller rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from balance_analytics.study.arrays import AnyIntArray, BoolArray, FloatArray, IntArray
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
    leader: AnyIntArray
    rate: FloatArray
    """Bytes in."""
    rate_out: FloatArray
    rate_messages: FloatArray
    size: FloatArray


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
    """Sums by broker and hour over the partitions that were added."""

    brokers: IntArray
    """Sorted; only these are counted."""
    hours: int
    totals: FloatArray = field(init=False)
    """SUMS x brokers x hours."""

    def __post_init__(self) -> None:
        self.totals = np.zeros((len(SUMS), len(self.brokers), self.hours))

    @staticmethod
    def none() -> BrokerSums:
        """Return sums without brokers, to which any others can be added."""
        return BrokerSums(np.zeros(0, dtype=np.int64), 0)

    def add_led(self, hours: PartitionHours) -> None:
        """Add what each leader led, where its rate is known."""
        known = ~np.isnan(hours.rate)
        cell = self._cells(hours.leader, np.arange(self.hours))
        rates = (
            np.where(np.isnan(column), 0.0, column) for column in (hours.rate, hours.rate_out, hours.rate_messages)
        )
        for number, column in enumerate((known.astype(np.float64), *(np.where(known, rate, 0.0) for rate in rates))):
            self._add(number, cell, column)

    def add_held(self, broker: AnyIntArray, hour: IntArray, size: FloatArray) -> None:
        """Add replicas of the `size` at a `broker` in an `hour`, three arrays that numpy broadcasts to one shape; NaN is not counted."""
        cell = self._cells(broker, hour)
        known = ~np.isnan(size)
        self._add(SUMS.index("copies"), cell, known.astype(np.float64))
        self._add(SUMS.index("size_bytes"), cell, np.where(known, size, 0.0))

    def plus(self, other: BrokerSums) -> BrokerSums:
        """Return the sums of both; this one may be changed."""
        if not len(other.brokers):
            return self
        if not len(self.brokers):
            return other
        if not np.array_equal(self.brokers, other.brokers):
            both = BrokerSums(np.union1d(self.brokers, other.brokers), self.hours)
            both.totals[:, np.searchsorted(both.brokers, self.brokers)] = self.totals
            both.totals[:, np.searchsorted(both.brokers, other.brokers)] += other.totals
            return both
        self.totals += other.totals
        return self

    def _cells(self, broker: AnyIntArray, hour: IntArray) -> IntArray:
        """Return places in the sums of one column; those of other brokers are behind them."""
        return places(self.brokers, broker) * self.hours + hour

    def _add(self, number: int, cell: IntArray, column: FloatArray) -> None:
        count = len(self.brokers) * self.hours
        sums = np.bincount(cell.ravel(), np.broadcast_to(column, cell.shape).ravel(), count + self.hours)
        self.totals[number] += sums[:count].reshape(-1, self.hours)


MAX_SPAN = 1_000_000
"""Of ids for which a table of places pays: 8 MB."""


def places(ids: IntArray, values: AnyIntArray) -> IntArray:
    """Return the place of each value among the sorted `ids`; of one that is not there, their number.

    >>> places(np.array([3, 5]), np.array([5, -1, 3, 4])).tolist()
    [1, 2, 0, 2]
    """
    if not len(ids):
        return np.zeros(values.shape, dtype=np.int64)
    first, last = int(ids[0]), int(ids[-1])
    if last - first < MAX_SPAN:
        table = np.full(last - first + 3, len(ids))
        table[ids - first + 1] = np.arange(len(ids))
        return np.asarray(table[np.clip(values, first - 1, last + 1) - (first - 1)])
    found = np.minimum(np.searchsorted(ids, values), len(ids) - 1)
    return np.where(ids[found] == values, found, len(ids))


def distinct(values: AnyIntArray) -> IntArray:
    """Return the values that occur, in order; quicker than np.unique where values are small."""
    if not values.size:
        return np.zeros(0, dtype=np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low < MAX_SPAN:
        return np.flatnonzero(np.bincount(values.ravel() - low)) + low
    return np.unique(values)
