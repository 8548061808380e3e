"""Leadership moves between existing replicas: they copy nothing, so they come first.

One exchange for each resource that depends on leadership: brokers above their range pass leadership to brokers below theirs, then to
any broker with headroom; then brokers below their range take leadership from any broker that can spare it. Partitions with the most
of this resource and the least of others go first, so few leaders change. Thousands move at a time: each partition proposes its least
full replica, and the amounts that brokers can give and take are summed up in order.
"""

import numpy as np

from move_planner.grouping import admitted, sums_by_group
from move_planner.plan_state import PlanState
from move_planner.ranges import Ranges, may_give, may_take
from move_planner.request import LoadArray
from move_planner.table import Rows

MAX_PASSES = 24
"""Passes of one kind; each handles most of the rest."""


def move_leadership(state: PlanState, ranges: Ranges, slack: LoadArray) -> None:
    """Level every resource that depends on leadership, as far as the current replicas allow.

    `slack`: (resources, brokers + 1), how far beyond its range a resource may be disturbed for another one's sake.
    """
    for number in np.flatnonzero(state.leader_load.any(axis=1)).tolist():
        middle = np.rint(ranges.target[number]).astype(np.int64)
        lower, upper = ranges.lower[number], ranges.upper[number]
        # (amount that givers keep, amount up to which takers are filled)
        for floor, ceiling in ((upper, lower), (upper, middle), (upper, upper), (middle, lower), (lower, lower)):
            for _ in range(MAX_PASSES):
                if not _one_pass(state, ranges, number, (floor, ceiling), slack):
                    break


def _one_pass(
    state: PlanState, ranges: Ranges, number: int, ends: tuple[LoadArray, LoadArray], slack: LoadArray
) -> bool:
    held, (floor, ceiling) = state.broker_load[number], ends
    give = np.where(state.open_to, np.maximum(0, held - floor), 0)
    take = np.where(state.open_to, np.maximum(0, ceiling - held), 0)
    if not give.any() or not take.any():
        return False
    rows, slots = _candidates(state, number, give, take)
    givers, takers = state.table.replicas[rows, 0], state.table.replicas[rows, slots]
    loads = state.leader_load[:, rows]
    giving, taking = may_give(state, ranges, slack), may_take(state, ranges, slack)
    # The leader that reaches the amount is included, but no broker falls below its range or rises above it.
    giving[number] = np.maximum(0, held - ranges.lower[number])
    taking[number] = np.maximum(0, ranges.upper[number] - held)
    # A leader that does not fit by itself must not block those after it that do.
    chosen = np.flatnonzero((loads <= giving[:, givers]).all(axis=0) & (loads <= taking[:, takers]).all(axis=0))
    for groups, headroom, amount in ((givers, giving, give), (takers, taking, take)):
        chosen = chosen[admitted(groups[chosen], loads[:, chosen], headroom)]
        chosen = chosen[_reaching(groups[chosen], loads[number, chosen], amount)]
    state.lead(rows[chosen], slots[chosen])
    return bool(chosen.size)


def _candidates(state: PlanState, number: int, give: LoadArray, take: LoadArray) -> tuple[Rows, Rows]:
    """Return leaders (rows) and the replica that each would pass leadership to (slots), in the order of preference."""
    replicas, led = state.table.replicas, state.leader_load
    rows = np.flatnonzero(state.free & (give[replicas[:, 0]] > 0) & (led[number] > 0))
    headroom = np.where(state.open_to[replicas[rows]], take[replicas[rows]], 0)
    headroom[:, 0] = 0
    slots = headroom.argmax(axis=1)
    rows, slots = rows[slots > 0], slots[slots > 0]
    total = np.maximum(led.sum(axis=1), 1)
    share = led[:, rows] / total[:, None]
    order = np.lexsort((rows, share.sum(axis=0) / share[number]))
    return rows[order], slots[order]


def _reaching(groups: Rows, loads: LoadArray, amount: LoadArray) -> Rows:
    """Return the indexes of the loads that come, in order, before the amount of their group is reached."""
    order = np.argsort(groups, kind="stable")
    preceding = sums_by_group(groups[order], loads[order]) - loads[order]
    return np.sort(order[preceding < amount[groups[order]]])
