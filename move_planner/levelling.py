"""Level the brokers: those above their range give what is above, those below it take what they lack.

Both by the same exchange: some brokers may give amounts, some may be filled up to a ceiling; replicas that sum to the amounts
are picked, followers before leaders (a follower's move is not noticed by clients), and homes are found for them. What found none
is picked differently in the next pass. Amounts that are taken for others' lack come from the fullest brokers, levelled.

Leaves out replicas too large for this: `polishing`.
"""

import numpy as np

from controller_core.model.columns import BoolArray
from move_planner.placing import find_homes, sums_by_group
from move_planner.request import LoadArray
from move_planner.table import Rows, Table
from move_planner.targets import Targets, level

MAX_PASSES = 24
"""Passes of one kind: each takes most of what is left, so this is reached only when large replicas are in the way."""

MIXING = 2_654_435_761
"""Knuth's multiplier: rows times it are in an order without a pattern, another one for each pass."""


def shed(table: Table, targets: Targets) -> None:
    """Let brokers above their range give away what is above it: to those below theirs first, and nobody beyond its range."""
    for ceiling in (targets.lower, targets.upper):
        blocked = np.zeros(table.nobody + 1, dtype=np.bool_)
        for turn in range(MAX_PASSES):
            give = np.where(table.stays & ~blocked, np.maximum(0, table.held - targets.upper), 0)
            largest = int(np.where(table.stays, ceiling - table.held, 0).max())
            if not give.any() or largest <= 0:
                break
            rows, slots = pick(table, give, table.held, turn, largest)
            givers = table.replicas[rows, slots]
            placed = find_homes(table, targets, rows, slots, ceiling)
            blocked |= (give > 0) & ~_any(givers[placed], table)


def fill(table: Table, targets: Targets) -> None:
    """Let brokers below their range take what they lack, from the fullest, nobody falling below its own range.

    At first nobody takes more than it lacks; then, for what large replicas left open, one replica more.
    """
    for beyond in (0, targets.replica):
        ceiling = np.minimum(targets.upper, targets.lower + beyond)
        blocked = np.zeros(table.nobody + 1, dtype=np.bool_)
        for turn in range(MAX_PASSES):
            lack = np.where(table.stays, np.maximum(0, targets.lower - table.held), 0)
            may_give = np.where(table.stays & ~blocked, np.maximum(0, table.held - targets.lower), 0)
            if not lack.any() or not may_give.any():
                break
            give = _from_the_fullest(table, targets, may_give, int(lack.sum()))
            room = np.where(lack > 0, ceiling - table.held, 0)
            rows, slots = pick(table, give, may_give, turn, int(room.max()))
            givers = table.replicas[rows, slots]
            placed = find_homes(table, targets, rows, slots, table.held + room)
            blocked |= (give > 0) & ~_any(givers[placed], table)


def _any(brokers: Rows, table: Table) -> BoolArray:
    flags = np.zeros(table.nobody + 1, dtype=np.bool_)
    flags[brokers] = True
    return flags


def _from_the_fullest(table: Table, targets: Targets, may_give: LoadArray, amount: int) -> LoadArray:
    """Take an amount off the fullest brokers, levelled: pouring upside down."""
    top = float((table.held / np.maximum(targets.target, 1e-9))[may_give > 0].max())
    depth = top * targets.target - table.held
    give = level(depth, targets.target, may_give.astype(np.float64), float(amount))
    rounded: LoadArray = np.minimum(np.ceil(give), may_give).astype(np.int64)
    return rounded


def pick(table: Table, give: LoadArray, limit: LoadArray, turn: int, largest: int) -> tuple[Rows, Rows]:
    """Pick replicas (rows, slots) of at most `largest` whose loads sum to `give` by broker, each row at most once.

    The replica that reaches the amount belongs to it, but the sum stays within `limit`.
    """
    rows, slots = np.nonzero((give > 0)[table.replicas])
    loads = table.load[rows]
    small = (loads > 0) & (loads <= largest)
    rows, slots, loads = rows[small], slots[small], loads[small]
    brokers = table.replicas[rows, slots]
    leads = table.leader[rows] == brokers
    order = np.lexsort(((rows + 1) * (MIXING + 2 * turn) % 2**32, leads, brokers))
    rows, slots, loads, brokers = rows[order], slots[order], loads[order], brokers[order]
    sums = sums_by_group(brokers, loads)
    chosen = np.flatnonzero((sums - loads < give[brokers]) & (sums <= limit[brokers]))
    # Each row once: the others are picked in a later pass.
    _, first = np.unique(rows[chosen], return_index=True)
    once = chosen[np.sort(first)]
    return rows[once], slots[once]
