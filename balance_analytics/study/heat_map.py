"""Brokers x hours, small enough for a result: with many of both, a column is the mean of several hours."""

from __future__ import annotations

import numpy as np

from balance_analytics.model.results import MAX_HEAT_CELLS, HeatMap
from balance_analytics.study.columns import BrokerColumns
from balance_analytics.study.numbers import text_of

STEPS = (1, 2, 3, 4, 6, 12, 24, 168)
"""Hours of a column: parts of a day or of a week."""


def heat_map(brokers: BrokerColumns) -> HeatMap:
    """Return bytes in; a column without samples is null."""
    count, hours = brokers.bytes_in.shape
    step = next((step for step in STEPS if count * -(-hours // step) <= MAX_HEAT_CELLS), STEPS[-1])
    begins = np.arange(0, hours, step)
    seen = brokers.led.sum(axis=0) > 0
    known = np.add.reduceat(seen.astype(np.int64), begins)
    sums = np.add.reduceat(brokers.bytes_in, begins, axis=1)
    means = np.rint(sums / np.maximum(known, 1)).astype(np.int64)
    return HeatMap(
        hours_per_column=step,
        hours=tuple(text_of(int(brokers.hours[at])) for at in begins),
        brokers=tuple(brokers.brokers.tolist()),
        bytes_in=tuple(
            tuple(value if there else None for value, there in zip(row, known > 0, strict=True))
            for row in means.tolist()
        ),
    )
