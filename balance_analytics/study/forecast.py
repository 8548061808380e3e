"""Forecast of the day when a disk is full, counted from the last reading, with a 90 percent interval.

Goal: the day on which the true level first reaches the capacity lies in the interval in 90 of 100 cases.
Input: one level a day (`readings`), so that changes within a day do not matter.

Method. The model is of the growth from one reading to the next, not of the level: each level contains all days before, so that a line
through levels would have errors that are not independent, and an interval that is too narrow. Growth of a day = base + drift x day + weekday + noise, fitted by least
squares; weekdays only when there are two whole weeks, drift only when there are ten days. Noise is one independent draw a day.
The level h days ahead is the last level plus the growth of h such days. Its error has two independent parts: the noise of those h
days, variance s^2 h, and the error of the fitted numbers, variance s^2 c (X'X)^-1 c', with c the sum of the h days' rows. Over s the
sum is Student's t with the fit's degrees of freedom, so level(h) +- t95 s sqrt(h + c (X'X)^-1 c') contains the level in 90 cases of 100.

Why the days are covered, too: a level that only grows reaches the capacity by day h exactly when level(h) >= capacity. The lower end is the
first day whose upper bound reaches the capacity: before it, the level did in at most 5 of 100 cases. The upper end is the first day whose
lower bound does: at that time the level has in at least 95. So the interval of days is the inversion of the interval of levels. There
is one reading a day, so that the interval begins with a whole day and ends with one.

It is valid as long as the load stays as it was: a new producer, a moved replica or a changed retention is not foreseen.
Readings around which replicas came or went are not fitted (`readings`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from balance_analytics.study.arrays import BoolArray, FloatArray
from balance_analytics.study.student import t95

HORIZON_DAYS = 365
"""Disks are not ordered earlier, and two weeks of readings do not allow a longer forecast."""

FEWEST_GROWTHS = 4
"""With three growths, t95 is 2.9 and the interval is too wide to be of use."""

DAYS_FOR_DRIFT = 10
"""With fewer, changes within a week count as drift."""

DAYS_FOR_WEEKDAYS = 14
"""Each weekday twice; with fewer, its noise would be fitted."""

WEEK = 7
METHOD = "least squares on daily growth (drift, weekdays), first passage, Student's t interval of 90 percent"


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """Levels at `days` (float64, ascending, days from any origin); `fit[i]` is whether growth i, to reading i + 1, is fitted."""

    days: FloatArray
    levels: FloatArray
    fit: BoolArray


@dataclass(frozen=True, slots=True)
class Forecast:
    """Days until full: expected, and both ends; None where beyond the horizon. `growth` is bytes a day, the mean fitted."""

    days: float | None
    low: float | None
    high: float | None
    growth: float


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    beta: FloatArray
    covariance: FloatArray
    """Of beta, over the variance of the noise."""
    sigma: float
    degrees: int
    weekdays: bool
    drift: bool


def forecast(readings: Readings, capacity: float) -> Forecast | None:
    """Return when `capacity` is reached; None if there are fewer than `FEWEST_GROWTHS` growths to fit.

    >>> days = np.arange(15.0)
    >>> known = forecast(Readings(days, 100 + 10 * days, np.ones(14, bool)), capacity=290.0)
    >>> known.low, known.days, known.high, known.growth
    (4.0, 5.0, 5.0, 10.0)
    """
    # Days count from the last one: a drift times days since 1970 would be lost by rounding.
    days = readings.days - np.floor(readings.days[-1:])
    fit = _fit(Readings(days, readings.levels, readings.fit))
    if fit is None:
        return None
    last = float(days[-1])
    rows = np.cumsum(_rows(last + 0.5 + np.arange(float(HORIZON_DAYS)), fit.weekdays, fit.drift), axis=0)
    ahead = np.arange(1, HORIZON_DAYS + 1)
    level = readings.levels[-1] + rows @ fit.beta
    spread = fit.sigma * np.sqrt(ahead + ((rows @ fit.covariance) * rows).sum(axis=1)) * t95(fit.degrees)
    start = float(readings.levels[-1])
    expected, low, high = (_first_passage(start, path, capacity) for path in (level, level + spread, level - spread))
    whole_low = None if low is None else float(math.ceil(low) - 1) if low else 0.0
    whole_high = None if high is None else float(math.ceil(high))
    return Forecast(expected, whole_low, whole_high, _growth(readings))


def _fit(readings: Readings) -> _Fit | None:
    taken = readings.fit
    count = int(taken.sum())
    if count < FEWEST_GROWTHS:
        return None
    lengths = np.diff(readings.days)[taken]
    middles = ((readings.days[1:] + readings.days[:-1]) / 2)[taken]
    weekdays = count >= DAYS_FOR_WEEKDAYS and len(set((np.floor(middles) % WEEK).tolist())) == WEEK
    drift = count >= DAYS_FOR_DRIFT
    # A growth over a longer time is that much larger and has that much more variance.
    weights = np.sqrt(lengths)
    design = _rows(middles, weekdays, drift) * weights[:, None]
    growth = np.diff(readings.levels)[taken] / weights
    degrees = count - design.shape[1]
    covariance = np.linalg.pinv(design.T @ design).astype(np.float64)
    beta: FloatArray = covariance @ design.T @ growth
    left = growth - design @ beta
    return _Fit(beta, covariance, float(np.sqrt(left @ left / degrees)), degrees, weekdays, drift)


def _rows(middles: FloatArray, weekdays: bool, drift: bool) -> FloatArray:
    """Return the rows of days by their middles: one, drift, and six weekdays as their difference from the seventh's part."""
    columns = [np.ones_like(middles)]
    if drift:
        columns.append(middles)
    if weekdays:
        day = np.floor(middles).astype(int) % WEEK
        columns += [(day == weekday).astype(float) - (day == WEEK - 1) for weekday in range(WEEK - 1)]
    return np.stack(columns, axis=1)


def _first_passage(start: float, path: FloatArray, capacity: float) -> float | None:
    """Return when a path that begins at `start`, with a point for each following day, first reaches `capacity`."""
    if start >= capacity:
        return 0.0
    reached = np.flatnonzero(path >= capacity)
    if not len(reached):
        return None
    day = int(reached[0])
    before = float(path[day - 1]) if day else start
    return round(day + (capacity - before) / (float(path[day]) - before), 6)


def _growth(readings: Readings) -> float:
    lengths = np.diff(readings.days)[readings.fit]
    return float(np.diff(readings.levels)[readings.fit].sum() / lengths.sum())
