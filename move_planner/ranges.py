"""Target and range of every broker for each resource.

A target is a broker's share of every partition (`shares`: even, unless racks of different sizes forbid it) times `replica_load`, and an even
part of `leader_load`. What a broker cannot take because of its capacity is distributed over the others. Excluded partitions count with the
rest; excluded brokers and their replicas do not. Ranges are rounded outwards to whole units (`Resource.unit`).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controller_core.model import BoolArray
from move_planner.plan_state import PlanState
from move_planner.request import MAX_TOTAL_LOAD, LoadArray, MeasuredRequest
from move_planner.shares import shares_by_rack


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """By resource and broker number: `no_broker` and brokers that leave have 0; `capacity` is `MAX_TOTAL_LOAD` where there is none."""

    target: npt.NDArray[np.float64]
    lower: LoadArray
    upper: LoadArray
    capacity: LoadArray

    def outside(self, held: LoadArray, open_to: BoolArray) -> LoadArray:
        """Return how far each broker that takes part is outside its range, by resource."""
        found: LoadArray = np.where(open_to, np.maximum(0, held - self.upper) + np.maximum(0, self.lower - held), 0)
        return found


def ranges_of(state: PlanState, request: MeasuredRequest) -> Ranges:
    """Compute targets and ranges."""
    capacity = np.full(state.broker_load.shape, MAX_TOTAL_LOAD, dtype=np.int64)
    for number, resource in enumerate(request.resources):
        for broker, most in resource.capacity.items():
            capacity[number, :-1][state.table.ids == broker] = most
    target = np.zeros(state.broker_load.shape)
    open_to = np.flatnonzero(state.open_to)
    share = _shares(state)
    growth = state.factors - state.table.factors()
    for number in range(len(target) if len(open_to) else 0):
        total = float(state.broker_load[number, ~state.fixed].sum() + (state.replica_load[number] * growth).sum())
        weight = share[number, open_to]
        weight = weight if weight.sum() > 0 else np.ones(len(open_to))
        target[number, open_to] = _shared(total, weight, capacity[number, open_to].astype(np.float64))
    tolerance = np.array([[resource.tolerance] for resource in request.resources])
    unit = np.array([[resource.unit] for resource in request.resources])
    lower = np.minimum(np.ceil(target * (1 - tolerance)), np.floor(target / unit + 1e-9) * unit).astype(np.int64)
    upper = np.maximum(np.floor(target * (1 + tolerance)), np.ceil(target / unit - 1e-9) * unit).astype(np.int64)
    return Ranges(target, np.minimum(lower, capacity), np.minimum(upper, capacity), capacity)


def _shares(state: PlanState) -> npt.NDArray[np.float64]:
    """Return the loads by resource and broker if every partition were spread by its shares."""
    table, found = state.table, np.zeros(state.broker_load.shape)
    takers = np.flatnonzero(state.open_to)
    # Without racks every broker is its own rack.
    _, rack = np.unique(table.rack[takers] if table.racks else takers, return_inverse=True)
    sizes = np.bincount(rack).tolist()
    factors = np.minimum(state.factors, max(1, len(takers)))
    for factor in np.unique(factors[factors > 0]).tolist() if len(takers) else []:
        share = np.array([float(rack_share) for rack_share in shares_by_rack(sizes, factor)])
        found[:, takers] += state.replica_load[:, factors == factor].sum(axis=1)[:, None] * share[rack]
    found[:, takers] += state.leader_load.sum(axis=1)[:, None] / max(1, len(takers))
    return found


def _shared(total: float, weight: npt.NDArray[np.float64], most: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Distribute a total by weight; no broker gets more than `most`, and the others share the rest.

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


def may_give(state: PlanState, ranges: Ranges, slack: LoadArray) -> LoadArray:
    """Return what brokers may lose of each resource: down to the lower end of the range, plus the slack."""
    found: LoadArray = np.maximum(0, state.broker_load - ranges.lower) + slack
    return found


def may_take(state: PlanState, ranges: Ranges, slack: LoadArray) -> LoadArray:
    """Return what brokers may gain of each resource: up to the upper end of the range, plus the slack, within their capacities."""
    headroom = np.maximum(0, ranges.upper - state.broker_load) + slack
    found: LoadArray = np.maximum(0, np.minimum(headroom, ranges.capacity - state.broker_load))
    return found
