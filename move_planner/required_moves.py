"""Moves that are required regardless of load: drained brokers, replication factors, second replicas in a rack.

Replicas go where every resource stays in its range, else where capacities allow it. A replica that no broker can take stays, and is
listed as unreached. Levelling may later move a replica that was placed here without further cost.
"""

from collections.abc import Iterator

import numpy as np

from controller_core.model import BoolArray
from move_planner.bulk_placement import place_in_bulk
from move_planner.grouping import admitted
from move_planner.plan_state import PlanState
from move_planner.ranges import Ranges
from move_planner.replication_factor import drop_replicas
from move_planner.request import LoadArray
from move_planner.table import Rows, doubled

MAX_PAIRS = 200_000
"""Pairs of replica and broker evaluated together where bulk placement found no broker: a few MB."""

MAX_ROUNDS = 50
"""Rounds that place each remaining replica on its best broker; every round places at least one replica per broker."""


def make_required_moves(state: PlanState, ranges: Ranges, order: list[int], *, factor: int | None, racks: bool) -> None:
    """Change replication factors, empty drained brokers and repair racks; `order`: resources, the most expensive to level last."""
    table = state.table
    if factor is not None:
        drop_replicas(state, ranges, factor)
    for slot in range(table.replicas.shape[1]):
        rows = np.flatnonzero(state.free & (table.replicas[:, slot] != state.no_broker))
        rows = rows[~table.stays[table.replicas[rows, slot]]]
        _place(state, ranges, order, rows, np.full(len(rows), slot), keep_racks=False)
    for _ in range(table.replicas.shape[1] if factor is not None else 0):
        rows = np.flatnonzero(state.free & (table.factors() < state.factors))
        _place(state, ranges, order, rows, table.factors()[rows], keep_racks=False)
    for rows, slots in _doubles(state) if racks else ():
        _place(state, ranges, order, rows, slots, keep_racks=True)


def _doubles(state: PlanState) -> Iterator[tuple[Rows, Rows]]:
    """Yield second replicas in a rack where another rack has none, one per partition at a time."""
    table = state.table
    for _ in range(table.replicas.shape[1] if table.racks else 0):
        rows = np.flatnonzero(state.free & (table.racks_of(table.replicas) < np.minimum(table.racks, table.factors())))
        second = doubled(table, table.replicas[rows]) & ~state.fixed[table.replicas[rows]]
        rows, second = rows[second.any(axis=1)], second[second.any(axis=1)]
        if not rows.size:
            return
        # The last one: the farther right, the less likely it is the leader.
        yield rows, second.shape[1] - 1 - second[:, ::-1].argmax(axis=1)


def _place(state: PlanState, ranges: Ranges, order: list[int], rows: Rows, slots: Rows, *, keep_racks: bool) -> None:
    left = np.arange(len(rows))
    for number in reversed(order):
        for ceiling in (_ceilings(ranges, number), ranges.upper):
            left = left[~place_in_bulk(state, ranges, rows[left], slots[left], number, _headroom(state, ceiling))]
    if len(rows):
        last = order[-1]
        left = left[~place_in_bulk(state, ranges, rows[left], slots[left], last, _headroom(state, ranges.capacity))]
    _place_by_search(state, ranges, rows[left], slots[left], keep_racks=keep_racks)


def _headroom(state: PlanState, ceiling: LoadArray) -> LoadArray:
    found: LoadArray = np.maximum(0, ceiling - state.broker_load)
    return found


def _ceilings(ranges: Ranges, number: int) -> LoadArray:
    """Return ceilings by resource: the lower end of the range for one resource, the upper end for the others."""
    ceiling = ranges.upper.copy()
    ceiling[number] = ranges.lower[number]
    return ceiling


def _place_by_search(state: PlanState, ranges: Ranges, rows: Rows, slots: Rows, *, keep_racks: bool) -> None:
    """Evaluate every broker for every remaining replica, and place each replica on the broker that is then least full."""
    takers = np.flatnonzero(state.open_to)
    share = max(1, MAX_PAIRS // max(1, len(takers)))
    for racks in (True, keep_racks):
        for _ in range(MAX_ROUNDS):
            placed = np.zeros(len(rows), dtype=np.bool_)
            for start in range(0, len(rows), share):
                part = slice(start, start + share)
                placed[part] = _place_best(state, ranges, rows[part], slots[part], takers, keep_racks=racks)
            rows, slots = rows[~placed], slots[~placed]
            if not placed.any():
                break


def _place_best(
    state: PlanState, ranges: Ranges, rows: Rows, slots: Rows, takers: Rows, *, keep_racks: bool
) -> BoolArray:
    count = len(takers)
    placed = np.zeros(len(rows), dtype=np.bool_)
    if not count:
        return placed
    fits = state.fits(
        np.repeat(rows, count), np.repeat(slots, count), np.tile(takers, len(rows)), keep_racks=keep_racks
    )
    loads = state.loads(rows, slots)
    headroom = np.where(state.open_to, ranges.capacity - state.broker_load, 0)
    fits = fits.reshape(len(rows), count)
    fullness = np.zeros(fits.shape)
    for number, load in enumerate(loads):
        then = state.broker_load[number, takers] + load[:, None]
        fits &= load[:, None] <= headroom[number, takers]
        fullness = np.maximum(fullness, then / np.maximum(ranges.target[number, takers], 1))
    brokers = takers[np.where(fits, fullness, np.inf).argmin(axis=1)]
    chosen = np.flatnonzero(fits.any(axis=1))
    costs = state.costs(rows[chosen], slots[chosen])
    if state.remaining_bytes is not None:
        chosen = chosen[np.cumsum(costs) <= state.remaining_bytes]
    chosen = chosen[admitted(brokers[chosen], loads[:, chosen], headroom)]
    state.move(rows[chosen], slots[chosen], brokers[chosen])
    placed[chosen] = True
    return placed
