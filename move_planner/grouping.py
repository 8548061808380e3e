"""Running sums by group, and limits by group. A group is a broker."""

import numpy as np
import numpy.typing as npt

from controller_core.model import BoolArray
from move_planner.request import LoadArray
from move_planner.table import Rows


def sums_by_group(groups: Rows, loads: LoadArray) -> LoadArray:
    """Return running sums that restart with each group; equal groups are adjacent.

    >>> sums_by_group(np.array([4, 4, 7]), np.array([1, 2, 5])).tolist()
    [1, 3, 5]
    """
    sums = np.cumsum(loads)
    first = np.ones(len(groups), dtype=np.bool_)
    first[1:] = groups[1:] != groups[:-1]
    before = (sums - loads)[first]
    preceding: LoadArray = sums - before[np.cumsum(first) - 1]
    return preceding


def within(groups: Rows, loads: LoadArray, headroom: LoadArray) -> BoolArray:
    """Return which of the loads, summed up by group in their order, stay within the group's headroom.

    >>> within(np.array([1, 0, 1]), np.array([3, 3, 3]), np.array([2, 5])).tolist()
    [True, False, False]
    """
    order = np.argsort(groups, kind="stable")
    sums = sums_by_group(groups[order], loads[order])
    fits = np.empty(len(groups), dtype=np.bool_)
    fits[order] = sums <= headroom[groups[order]]
    return fits


def admitted(groups: Rows, loads: LoadArray, headroom: LoadArray) -> npt.NDArray[np.intp]:
    """Return the indexes of the loads that stay within their group's headroom in every resource, summed up in order.

    >>> admitted(np.array([0, 0, 1]), np.array([[3, 3, 3], [1, 9, 1]]), np.array([[9, 9], [9, 0]])).tolist()
    [0]
    """
    chosen = np.flatnonzero((loads <= headroom[:, groups]).all(axis=0))
    for number in range(len(loads)):
        chosen = chosen[within(groups[chosen], loads[number, chosen], headroom[number])]
    return chosen


def level(
    held: npt.NDArray[np.float64], weight: npt.NDArray[np.float64], headroom: npt.NDArray[np.float64], amount: float
) -> npt.NDArray[np.float64]:
    """Distribute an amount over brokers, the least full (held / weight) first; return how much each gets, at most its headroom.

    >>> level(np.array([4.0, 0.0]), np.array([1.0, 1.0]), np.array([9.0, 9.0]), 6.0).round(6).tolist()
    [1.0, 5.0]
    """
    if amount >= headroom.sum():
        return headroom
    # Only brokers with headroom: the others do not affect the level, and would only widen the interval to halve.
    open_to = headroom > 0
    low, high = 0.0, float(((held + headroom)[open_to] / np.maximum(weight[open_to], 1e-9)).max(initial=0.0))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        poured = np.clip(middle * weight - held, 0, headroom).sum()
        low, high = (middle, high) if poured < amount else (low, middle)
    return np.clip(high * weight - held, 0, headroom)


HALVINGS = 64
"""Halvings of the interval that contains the level: more than a float has bits."""
