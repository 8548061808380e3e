"""Hot partitions, by a rule that a person can check.

A partition is hot for one of two reasons.
- "too large for one broker": it has at least `OF_BROKER_ALONE` of the load of the mean broker, so that its broker is
  overloaded wherever it is.
- "uneven keys": it has at least `OVER_TOPIC` times the median load of its topic's partitions, and at least `OF_BROKER` of the
  load of the mean broker, so that it matters.

Loads are means over the window, so that a burst of an hour does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from balance_analytics.study.arrays import BoolArray, FloatArray, IntArray

OF_BROKER_ALONE = 0.25
"""A quarter: four such partitions fill a broker, and swaps cannot even them out."""

OVER_TOPIC = 4.0
"""Hashed keys of equal weight differ by tens of percent between partitions, never by four times."""

OF_BROKER = 0.02
"""Half of the planner's tolerance: a smaller partition changes the figure of no broker."""

SMALLEST_TOPIC = 4
"""Partitions that a topic needs for a median that is a usual load."""

UNEVEN_KEYS, TOO_LARGE = "uneven keys", "too large for one broker"

RULE = (
    f"mean bytes in over the window: at least {OF_BROKER_ALONE:.0%} of the mean broker ({TOO_LARGE}); or at least "
    f"{OVER_TOPIC:g} times the median partition of its topic ({SMALLEST_TOPIC} partitions or more) and {OF_BROKER:.0%} of the "
    f"mean broker ({UNEVEN_KEYS})"
)


@dataclass(frozen=True, slots=True, eq=False)
class Heat:
    """Columns over the partitions given: float64 `over_topic` and `of_broker`, bool `uneven_keys` and `too_large`."""

    over_topic: FloatArray
    of_broker: FloatArray
    uneven_keys: BoolArray
    too_large: BoolArray

    @property
    def hot(self) -> BoolArray:
        """Partitions that are hot for either reason."""
        return self.uneven_keys | self.too_large


def heat(loads: FloatArray, topics: IntArray, brokers: int) -> Heat:
    """Judge partitions by their mean `loads`; `topics` numbers each one's topic from 0, `brokers` is how many share the load.

    >>> found = heat(np.array([1.0, 1.0, 1.0, 9.0]), np.array([0, 0, 0, 0]), brokers=2)
    >>> found.hot.tolist(), found.too_large.tolist(), float(found.over_topic[3])
    ([False, False, False, True], [False, False, False, True], 9.0)
    """
    medians, sizes = _medians(loads, topics)
    median, size = medians[topics], sizes[topics]
    mean_broker = float(loads.sum()) / max(brokers, 1)
    of_broker = loads / mean_broker if mean_broker > 0 else np.zeros_like(loads)
    over_topic = np.divide(loads, median, out=np.where(loads > 0, np.inf, 1.0), where=median > 0)
    uneven = (over_topic >= OVER_TOPIC) & (of_broker >= OF_BROKER) & (size >= SMALLEST_TOPIC)
    return Heat(over_topic, of_broker, uneven, of_broker >= OF_BROKER_ALONE)


def _medians(loads: FloatArray, topics: IntArray) -> tuple[FloatArray, IntArray]:
    """Return each topic's median load (the lower one of two) and its number of partitions."""
    order = np.lexsort((loads, topics))
    sizes = np.bincount(topics)
    begins = np.cumsum(sizes) - sizes
    there = np.maximum(sizes - 1, 0) // 2 + begins
    return loads[order[np.minimum(there, len(loads) - 1)]], sizes
