"""From two assignments to steps: what each partition copies and why, in the order that helps most, and what a budget cuts off.

Changes of only leaders cost nothing and come first. Then drained brokers, racks, the replication factor, load; within each the
fullest broker gives first. A step never depends on another one, so any prefix is valid.
"""

import numpy as np
import numpy.typing as npt

from move_planner.books import Books
from move_planner.grouping import sums_by_group
from move_planner.ranges import Ranges
from move_planner.request import MAX_TOTAL_LOAD, LoadArray
from move_planner.result import Reason
from move_planner.table import Rows, Table, doubled, new_to


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


def ordered(books: Books, held: LoadArray, ranges: Ranges) -> tuple[Rows, LoadArray, npt.NDArray[np.int8]]:
    """Return the rows that change, in order, with the bytes that each copies and its reason; `held` is as it was before."""
    table = books.table
    rows = np.flatnonzero((books.before != table.replicas).any(axis=1))
    old, new = books.before[rows], table.replicas[rows]
    gone, fresh = new_to(new, old, books.nobody), new_to(old, new, books.nobody)
    moved = (gone | fresh).any(axis=1)
    reasons = np.where(moved, reasons_of(table, books.before, rows), Reason.LEADERS.value)
    fullness = (held / np.maximum(ranges.target, 1)).max(axis=0)
    fullness[books.nobody] = 0
    urgency = np.where(gone, fullness[old], 0).max(axis=1, initial=0)
    order = np.lexsort((rows, -urgency, reasons, moved))
    copied = books.bytes[rows] * fresh.sum(axis=1)
    return rows[order], copied[order], reasons[order].astype(np.int8)


def one_giver_after_another(
    books: Books, held: LoadArray, ranges: Ranges, steps: tuple[Rows, LoadArray, npt.NDArray[np.int8]]
) -> Rows:
    """Return the order of a plan over one load in which any budget helps most; `steps` are rows, bytes and reasons.

    Drained brokers come one after another, so that the first is empty as soon as can be; of the others the fullest gives first,
    and only down to the level of the next.
    """
    table, (rows, copied, reasons) = books.table, steps
    old = books.before[rows]
    # The broker that a step is about: the fullest that gives, and of those that leave the first by id.
    gone = new_to(table.replicas[rows], old, books.nobody)
    target = np.maximum(ranges.target[0], 1)
    fullness = held[0] / target
    fullness[~table.stays] = MAX_TOTAL_LOAD - np.flatnonzero(~table.stays) * 2.0**20
    giver = np.take_along_axis(old, np.where(gone, fullness[old], -1).argmax(axis=1)[:, None], axis=1)[:, 0]
    by_giver = np.lexsort((rows, giver))
    given = np.empty(len(rows), dtype=np.int64)
    given[by_giver] = sums_by_group(giver[by_giver], copied[by_giver]) - copied[by_giver]
    level_then = (held[0, giver] - given) / target[giver]
    urgency = np.where(table.stays[giver], -level_then, giver)
    order: Rows = np.lexsort((rows, urgency, reasons))
    return order


def within_budget(copied: LoadArray, budget_bytes: int | None) -> int:
    """Return how many steps, from the first, copy no more than the budget.

    >>> within_budget(np.array([5, 5, 0, 1]), 10)
    3
    """
    if budget_bytes is None:
        return len(copied)
    return int(np.searchsorted(np.cumsum(copied), budget_bytes, side="right"))
