"""What every broker should have of each resource, and the range around it.

A target is a broker's share of every partition (`shares`: even, unless racks of different sizes forbid it) times `each`,
and an even part of `led`; what a capacity keeps from one broker the others share. Excluded partitions count with the rest, excluded
brokers and what is on them do not. Ranges are rounded outwards to whole units (`Resource.unit`). Leaves out how it is reached.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controller_core.model.columns import BoolArray
from move_planner.books import Books
from move_planner.request import MAX_TOTAL_LOAD, LoadArray, MeasuredRequest
from move_planner.shares import shares_by_rack


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """By resource and broker number: `nobody` and brokers that leave have 0; `capacity` is `MAX_TOTAL_LOAD` where there is none."""

    target: npt.NDArray[np.float64]
    lower: LoadArray
    upper: LoadArray
    capacity: LoadArray

    def outside(self, held: LoadArray, open_to: BoolArray) -> LoadArray:
        """Return how far each broker that takes part is outside its range, by resource."""
        found: LoadArray = np.where(open_to, np.maximum(0, held - self.upper) + np.maximum(0, self.lower - held), 0)
        return found


def ranges_of(books: Books, request: MeasuredRequest) -> Ranges:
    """Work out targets and ranges."""
    capacity = np.full(books.held.shape, MAX_TOTAL_LOAD, dtype=np.int64)
    for number, resource in enumerate(request.resources):
        for broker, most in resource.capacity.items():
            capacity[number, :-1][books.table.ids == broker] = most
    target = np.zeros(books.held.shape)
    open_to = np.flatnonzero(books.open_to)
    share = _shares(books)
    growth = books.factors - books.table.factors()
    for number in range(len(target) if len(open_to) else 0):
        total = float(books.held[number, ~books.fixed].sum() + (books.each[number] * growth).sum())
        weight = share[number, open_to]
        weight = weight if weight.sum() > 0 else np.ones(len(open_to))
        target[number, open_to] = _shared(total, weight, capacity[number, open_to].astype(np.float64))
    tolerance = np.array([[one.tolerance] for one in request.resources])
    unit = np.array([[one.unit] for one in request.resources])
    lower = np.minimum(np.ceil(target * (1 - tolerance)), np.floor(target / unit + 1e-9) * unit).astype(np.int64)
    upper = np.maximum(np.floor(target * (1 + tolerance)), np.ceil(target / unit - 1e-9) * unit).astype(np.int64)
    return Ranges(target, np.minimum(lower, capacity), np.minimum(upper, capacity), capacity)


def _shares(books: Books) -> npt.NDArray[np.float64]:
    """Return loads by resource and broker as they would be if every partition were spread by its shares."""
    table, found = books.table, np.zeros(books.held.shape)
    takers = np.flatnonzero(books.open_to)
    # Without racks every broker is a rack of its own.
    _, rack = np.unique(table.rack[takers] if table.racks else takers, return_inverse=True)
    sizes = np.bincount(rack).tolist()
    factors = np.minimum(books.factors, max(1, len(takers)))
    for factor in np.unique(factors[factors > 0]).tolist() if len(takers) else []:
        share = np.array([float(one) for one in shares_by_rack(sizes, factor)])
        found[:, takers] += books.each[:, factors == factor].sum(axis=1)[:, None] * share[rack]
    found[:, takers] += books.led.sum(axis=1)[:, None] / max(1, len(takers))
    return found


def _shared(total: float, weight: npt.NDArray[np.float64], most: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Share a total out by weight; nobody gets more than its most, and the others share what that leaves.

    >>> _shared(12.0, np.ones(3), np.array([2.0, 9.0, 9.0])).tolist()
    [2.0, 5.0, 5.0]
    """
    full = np.zeros(len(weight), dtype=np.bool_)
    found = most.copy()
    for _ in range(len(weight)):
        if full.all():
            break
        found[~full] = (total - most[full].sum()) * weight[~full] / weight[~full].sum()
        beyond = ~full & (found > most)
        if not beyond.any():
            break
        full |= beyond
        found[full] = most[full]
    return np.maximum(found, 0.0)


def may_give(books: Books, ranges: Ranges, slack: LoadArray) -> LoadArray:
    """Return what brokers may lose of each resource: down to the range's lower end, and so much farther from wherever they are."""
    found: LoadArray = np.maximum(0, books.held - ranges.lower) + slack
    return found


def may_take(books: Books, ranges: Ranges, slack: LoadArray) -> LoadArray:
    """Return what brokers may gain of each resource: up to the range's upper end, and so much farther, within their capacities."""
    room = np.maximum(0, ranges.upper - books.held) + slack
    found: LoadArray = np.maximum(0, np.minimum(room, ranges.capacity - books.held))
    return found
