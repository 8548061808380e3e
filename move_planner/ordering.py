"""From two assignments to steps: what each partition copies and why, in the order that helps most, cut at the budget.

Drained brokers come first, one after another, so that the first is empty as soon as can be; then racks, then the replication
factor, then load, the fullest broker giving first and always down to the level of the next. A step never depends on another one,
so any prefix is valid. Leaves out leaders, which are evened after the cut.
"""

import numpy as np

from controller_core.model.columns import BoolArray
from move_planner.factor import doubled
from move_planner.placing import sums_by_group
from move_planner.request import MAX_TOTAL_LOAD, LoadArray
from move_planner.result import Reason
from move_planner.table import Rows, Table
from move_planner.targets import Targets


def new_to(before: Rows, after: Rows, nobody: int) -> BoolArray:
    """Tell for each replica of `after` whether its partition had none on that broker before; shapes are the same."""
    here = (after[:, :, None] == before[:, None, :]).any(axis=2)
    new: BoolArray = ~here & (after != nobody)
    return new


def reasons_of(table: Table, before: Rows, rows: Rows) -> Rows:
    """Return the first reason that applies to each row whose replicas changed from `before` to the table's."""
    old, new = before[rows], table.replicas[rows]
    gone = new_to(new, old, table.nobody)
    drained = (gone & ~table.stays[old]).any(axis=1)
    racked = (
        (doubled(table, old).any(axis=1)) & (table.racks_of(new) > table.racks_of(old))
        if table.racks
        else drained & False
    )
    resized = (old != table.nobody).sum(axis=1) != (new != table.nobody).sum(axis=1)
    chosen: Rows = np.select(
        [drained, racked, resized], [Reason.DRAIN.value, Reason.RACK.value, Reason.FACTOR.value], Reason.OVERLOAD.value
    )
    return chosen


def ordered(table: Table, before: Rows, held: LoadArray, targets: Targets) -> tuple[Rows, LoadArray, Rows]:
    """Return the rows that change, in order, with the bytes that each copies and its reason; `held` is as it was before."""
    changed = (np.sort(before, axis=1) != np.sort(table.replicas, axis=1)).any(axis=1)
    rows = np.flatnonzero(changed)
    old, new = before[rows], table.replicas[rows]
    copied = table.load[rows] * new_to(old, new, table.nobody).sum(axis=1)
    reasons = reasons_of(table, before, rows)
    # The broker that a step is about: the fullest that gives, and of those that leave the first by id.
    gone = new_to(new, old, table.nobody)
    fullness = held / np.maximum(targets.target, 1)
    fullness[~table.stays] = MAX_TOTAL_LOAD - np.flatnonzero(~table.stays) * 2.0**20
    giver = np.take_along_axis(old, np.where(gone, fullness[old], -1).argmax(axis=1)[:, None], axis=1)[:, 0]
    by_giver = np.lexsort((rows, giver))
    given = np.empty(len(rows), dtype=np.int64)
    given[by_giver] = sums_by_group(giver[by_giver], copied[by_giver]) - copied[by_giver]
    level_then = (held[giver] - given) / np.maximum(targets.target[giver], 1)
    urgency = np.where(table.stays[giver], -level_then, giver)
    order = np.lexsort((rows, urgency, reasons))
    return rows[order], copied[order], reasons[order]


def within_budget(copied: LoadArray, budget_bytes: int | None) -> int:
    """Return how many steps, from the first, copy no more than the budget.

    >>> within_budget(np.array([5, 5, 0, 1]), 10)
    3
    """
    if budget_bytes is None:
        return len(copied)
    return int(np.searchsorted(np.cumsum(copied), budget_bytes, side="right"))
