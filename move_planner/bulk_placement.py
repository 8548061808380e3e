"""Placement of many replicas at once, within the headroom of brokers in every resource.

Replicas are laid out along the headroom of one resource, the least full brokers first, so that each replica gets one proposed broker.
Where the broker cannot take the replica, the order is rotated and the replica gets another proposal.
"""

import numpy as np

from controller_core.model import BoolArray
from move_planner.grouping import admitted, level
from move_planner.plan_state import PlanState
from move_planner.ranges import Ranges
from move_planner.request import LoadArray
from move_planner.table import Rows

MAX_ATTEMPTS = 64
"""Proposals for one replica: if one broker in three can take it, all but one in 10^11 replicas are placed."""

MAX_FAILED_ATTEMPTS = 8
"""Attempts without any placement before the rest is left as it is."""

GOLDEN_RATIO = 0.618033988749895
"""Rotating by this part of the list each time soon comes near every position."""


def place_in_bulk(
    state: PlanState, ranges: Ranges, rows: Rows, slots: Rows, number: int, headroom: LoadArray
) -> BoolArray:
    """Move replicas to proposed brokers, each row at most once; return which were placed.

    `number` is the resource whose headroom is filled; `headroom` (resources, brokers + 1) is what brokers may take.
    """
    headroom = np.where(state.open_to, headroom, 0)
    placed = np.zeros(len(rows), dtype=np.bool_)
    left = np.arange(len(rows))
    failed, reach = 0, 1
    for attempt in range(MAX_ATTEMPTS):
        if not left.size or failed == MAX_FAILED_ATTEMPTS:
            break
        rotated = np.roll(left, int(attempt * GOLDEN_RATIO % 1 * len(left)))
        loads = state.loads(rows[rotated], slots[rotated])
        brokers = _propose_brokers(state, ranges, loads[number], number, headroom, reach)
        if brokers is None:
            break
        chosen = np.flatnonzero(state.fits(rows[rotated], slots[rotated], brokers))
        chosen = chosen[admitted(brokers[chosen], loads[:, chosen], headroom)]
        chosen = chosen[_affordable(state, rows[rotated[chosen]], slots[rotated[chosen]])]
        taken = rotated[chosen]
        state.move(rows[taken], slots[taken], brokers[chosen])
        for resource, load in enumerate(loads[:, chosen]):
            np.subtract.at(headroom[resource], brokers[chosen], load)
        placed[taken] = True
        left = np.delete(rotated, chosen)
        failed = 0 if taken.size else failed + 1
        # If the least full brokers cannot take the rest, the next ones are proposed as well.
        reach = 1 if 8 * taken.size >= rotated.size else 2 * reach
    return placed


def _propose_brokers(
    state: PlanState, ranges: Ranges, loads: LoadArray, number: int, headroom: LoadArray, reach: int
) -> Rows | None:
    """Return a broker for each load; None when no broker has headroom."""
    loads = np.maximum(loads, 1)
    open_headroom = np.where((headroom > 0).all(axis=0), headroom[number], 0).astype(np.float64)
    held = state.broker_load[number].astype(np.float64)
    along = np.cumsum(level(held, ranges.target[number], open_headroom, reach * float(loads.sum())))
    if along[-1] <= 0:
        return None
    ends = np.cumsum(loads)
    places = (ends - loads / 2) * (along[-1] / ends[-1])
    found: Rows = np.minimum(np.searchsorted(along, places, side="right"), state.no_broker - 1)
    return found


def _affordable(state: PlanState, rows: Rows, slots: Rows) -> Rows:
    """Return the indexes of the moves that fit into the remaining budget."""
    if state.remaining_bytes is None:
        return np.arange(len(rows))
    costs = state.costs(rows, slots)
    chosen = np.flatnonzero(costs <= state.remaining_bytes)
    return chosen[np.cumsum(costs[chosen]) <= state.remaining_bytes]
