"""A series of hourly rates in four figures: mean, 95th percentile, busiest hour, trend.

The pipeline works them out in Spark for millions of series; these are for the few of the study, and the judge of those.
Hours without a rate are NaN and count nowhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from balance_analytics.study.arrays import FloatArray

PERCENTILE = 0.95
HOURS_PER_DAY = 24


@dataclass(frozen=True, slots=True)
class Series:
    """`peak_at` is the place of the first busiest hour; `trend` is rate a day, None with fewer than two hours."""

    hours: int
    mean: float
    p95: float
    peak: float
    peak_at: int
    trend: float | None


def summary(rates: FloatArray) -> Series | None:
    """Return the figures of one series of hours in a row, or None when no hour has a rate.

    >>> summary(np.array([1.0, np.nan, 3.0]))
    Series(hours=2, mean=2.0, p95=3.0, peak=3.0, peak_at=2, trend=24.0)
    """
    known = np.flatnonzero(~np.isnan(rates))
    if not len(known):
        return None
    values = rates[known]
    peak_at = int(known[int(values.argmax())])
    return Series(
        len(known),
        float(values.mean()),
        p95(values),
        float(values.max()),
        peak_at,
        slope(known / HOURS_PER_DAY, values),
    )


def p95(values: FloatArray) -> float:
    """Return the smallest value that 95 of 100 values are at or below (nearest rank, no interpolation).

    >>> p95(np.arange(1.0, 101.0))
    95.0
    """
    return float(np.sort(values)[math.ceil(PERCENTILE * len(values)) - 1])


def slope(times: FloatArray, values: FloatArray) -> float | None:
    """Return the slope of the least-squares line, None when all times are one."""
    centred = times - times.mean()
    spread = float(centred @ centred)
    return float(centred @ (values - values.mean())) / spread if spread > 0 else None
