"""Steps of a plan: copied bytes and reason of each changed partition, the order of steps, and the cut by a budget.

Changes of only leaders copy nothing and come first. Then drained brokers, racks, the replication factor, load; within each the
fullest broker gives first. No step depends on another one, so any prefix is valid.
"""

import numpy as np
import numpy.typing as npt

from move_planner.grouping import sums_by_group
from move_planner.plan_state import PlanState
from move_planner.ranges import Ranges
from move_planner.request import MAX_TOTAL_LOAD, LoadArray
from move_planner.result import Reason
from move_planner.table import Rows, Table, doubled, new_to


def reasons_of(table: Table, before: Rows, rows: Rows) -> Rows:
    """Return the first reason that applies to each row whose replicas changed from `before` to the table's."""
    old, new = before[rows], table.replicas[rows]
    removed = new_to(new, old, table.no_broker)
    drained = (removed & ~table.stays[old]).any(axis=1)
    racked = (
        (doubled(table, old).any(axis=1)) & (table.racks_of(new) > table.racks_of(old))
        if table.racks
        else drained & False
    )
    resized = (old != table.no_broker).sum(axis=1) != (new != table.no_broker).sum(axis=1)
    chosen: Rows = np.select(
        [drained, racked, resized], [Reason.DRAIN.value, Reason.RACK.value, Reason.FACTOR.value], Reason.OVERLOAD.value
    )
    return chosen


def ordered(state: PlanState, held: LoadArray, ranges: Ranges) -> tuple[Rows, LoadArray, npt.NDArray[np.int8]]:
    """Return the rows that change, in order, with the bytes that each copies and its reason; `held`: loads before the plan."""
    table = state.table
    rows = np.flatnonzero((state.before != table.replicas).any(axis=1))
    old, new = state.before[rows], table.replicas[rows]
    removed, added = new_to(new, old, state.no_broker), new_to(old, new, state.no_broker)
    moved = (removed | added).any(axis=1)
    reasons = np.where(moved, reasons_of(table, state.before, rows), Reason.LEADERS.value)
    fullness = (held / np.maximum(ranges.target, 1)).max(axis=0)
    fullness[state.no_broker] = 0
    urgency = np.where(removed, fullness[old], 0).max(axis=1, initial=0)
    order = np.lexsort((rows, -urgency, reasons, moved))
    copied = state.bytes[rows] * added.sum(axis=1)
    return rows[order], copied[order], reasons[order].astype(np.int8)


def order_by_giver(
    state: PlanState, held: LoadArray, ranges: Ranges, steps: tuple[Rows, LoadArray, npt.NDArray[np.int8]]
) -> Rows:
    """Return the order in which any budget gains most, for a plan over one load; `steps` are rows, bytes and reasons.

    Drained brokers come one after another, so that the first is empty as soon as possible; of the others the fullest gives first,
    and only down to the level of the next.
    """
    table, (rows, copied, reasons) = state.table, steps
    old = state.before[rows]
    # The broker of a step: the fullest giver; among drained brokers the one with the lowest id.
    removed = new_to(table.replicas[rows], old, state.no_broker)
    target = np.maximum(ranges.target[0], 1)
    fullness = held[0] / target
    fullness[~table.stays] = MAX_TOTAL_LOAD - np.flatnonzero(~table.stays) * 2.0**20
    giver = np.take_along_axis(old, np.where(removed, fullness[old], -1).argmax(axis=1)[:, None], axis=1)[:, 0]
    by_giver = np.lexsort((rows, giver))
    given = np.empty(len(rows), dtype=np.int64)
    given[by_giver] = sums_by_group(giver[by_giver], copied[by_giver]) - copied[by_giver]
    level_then = (held[0, giver] - given) / target[giver]
    urgency = np.where(table.stays[giver], -level_then, giver)
    order: Rows = np.lexsort((rows, urgency, reasons))
    return order


def within_budget(copied: LoadArray, budget_bytes: int | None) -> int:
    """Return how many steps, from the first, copy at most the budget.

    >>> within_budget(np.array([5, 5, 0, 1]), 10)
    3
    """
    if budget_bytes is None:
        return len(copied)
    return int(np.searchsorted(np.cumsum(copied), budget_bytes, side="right"))
