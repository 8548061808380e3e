"""One level of a broker's disk for each day, out of its hours.

A day's level is that of its last whole hour, and the first day has its first one besides. An hour is whole when nearly as many copies
are known in it as usually on that day; otherwise the sum dips by what was not asked. Where the number of copies changed, replicas
moved or topics came and went: that growth is no history of the disk and is not fitted.
"""

from __future__ import annotations

import numpy as np

from balance_analytics.study.arrays import FloatArray, IntArray
from balance_analytics.study.forecast import Readings
from balance_analytics.study.series import HOURS_PER_DAY

WHOLE = 0.995
"""Part of the day's usual number of copies that must be known: what is unknown is then below a day's growth."""

SAME = 0.01
"""Copies may change by one in a hundred between readings: a new topic or two, still empty."""


def readings(hours: IntArray, levels: FloatArray, copies: IntArray) -> Readings:
    """Choose; `hours` ascending, counted from midnight of any day, with the level and the copies known in each.

    >>> hours = np.arange(48)
    >>> chosen = readings(hours, hours * 10.0, np.full(48, 5))
    >>> chosen.days.round(2).tolist(), chosen.levels.tolist()
    ([0.04, 1.0, 2.0], [0.0, 230.0, 470.0])
    """
    day = hours // HOURS_PER_DAY
    chosen: list[int] = []
    for day_number in np.unique(day):
        rows = np.flatnonzero(day == day_number)
        whole = rows[copies[rows] >= WHOLE * np.median(copies[rows])]
        chosen += [int(whole[0]), int(whole[-1])] if not chosen else [int(whole[-1])]
    at = np.array(sorted(set(chosen)), dtype=np.int64)
    # A level is that at the hour's end.
    days = (hours[at] + 1) / HOURS_PER_DAY
    fit = np.abs(np.diff(copies[at])) <= SAME * copies[at][:-1]
    return Readings(days, levels[at].astype(np.float64), fit)
