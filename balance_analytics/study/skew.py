"""Skew of a load: Gini coefficient, maximum over mean, coefficient of variation.

All three take one number for each broker (or partition), none of them negative, and give 0, 1 and 0 when all are the same; so they
do when there is nothing to share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from balance_analytics.study.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Unevenness:
    """The three figures of one load."""

    gini: float
    max_over_mean: float
    coefficient_of_variation: float


def unevenness(loads: FloatArray) -> Unevenness:
    """Return all three.

    >>> unevenness(np.array([1.0, 1.0, 4.0])).max_over_mean
    2.0
    """
    return Unevenness(gini(loads), max_over_mean(loads), coefficient_of_variation(loads))


def gini(loads: FloatArray) -> float:
    """Return half the mean difference between any two, over the mean: 0 when even, (n - 1) / n when one carries all.

    By ranks instead of pairs: with loads in order, the sum over pairs is a weighted sum.

    >>> gini(np.array([0.0, 0.0, 0.0, 1.0]))
    0.75
    """
    total = float(loads.sum())
    if total <= 0:
        return 0.0
    count = len(loads)
    ranks = np.arange(1, count + 1)
    return max(0.0, 2 * float(ranks @ np.sort(loads)) / (count * total) - (count + 1) / count)


def max_over_mean(loads: FloatArray) -> float:
    """Return how many times the mean the most loaded carries."""
    total = float(loads.sum())
    return float(loads.max()) * len(loads) / total if total > 0 else 1.0


def coefficient_of_variation(loads: FloatArray) -> float:
    """Return the standard deviation (of these, not of a sample) over the mean."""
    mean = float(loads.mean()) if len(loads) else 0.0
    return float(loads.std()) / mean if mean > 0 else 0.0
