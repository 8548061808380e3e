"""Single moves, the best each: what is left when replicas are large beside the ranges of brokers.

The broker farthest outside its range gives (or takes) the one replica that brings it and its partner nearest to their ranges,
together; of equals the smallest. Every move lowers what all brokers are outside by, so this ends. A broker that no move helps is
left alone. Leaves out swaps and longer chains.
"""

import numpy as np

from move_planner.request import LoadArray
from move_planner.table import Rows, Table
from move_planner.targets import Targets

MAX_MOVES = 500
"""Single moves of one plan: many more than brokers that large replicas keep outside; each takes milliseconds."""

MAX_CANDIDATES = 2_000
"""Replicas of one broker that are looked at, those nearest in load to what it has to give."""


def polish(table: Table, targets: Targets) -> None:
    """Make single moves while one helps."""
    helpless: set[int] = set()
    for _ in range(MAX_MOVES):
        outside = np.where(table.stays, outside_by(table.held, targets.lower, targets.upper), 0)
        outside[list(helpless)] = 0
        worst = int(outside.argmax())
        if not outside[worst]:
            return
        move = (
            _best_from(table, targets, worst)
            if table.held[worst] > targets.upper[worst]
            else _best_to(table, targets, worst)
        )
        if move is None:
            helpless.add(worst)
        else:
            table.move(*(np.array([number]) for number in move))


def outside_by(held: LoadArray, lower: LoadArray, upper: LoadArray) -> LoadArray:
    """Return how far each broker is outside its range."""
    outside: LoadArray = np.maximum(0, held - upper) + np.maximum(0, lower - held)
    return outside


def _best_from(table: Table, targets: Targets, giver: int) -> tuple[int, int, int] | None:
    rows, slots = np.nonzero(table.replicas == giver)
    nearest = np.argsort(np.abs(table.load[rows] - (table.held[giver] - targets.upper[giver])), kind="stable")
    rows, slots = rows[nearest[:MAX_CANDIDATES]], slots[nearest[:MAX_CANDIDATES]]
    brokers = np.flatnonzero(table.stays)
    count = len(brokers)
    return _best(table, targets, np.repeat(rows, count), np.repeat(slots, count), np.tile(brokers, len(rows)))


def _best_to(table: Table, targets: Targets, taker: int) -> tuple[int, int, int] | None:
    rows, slots = np.nonzero(table.stays[table.replicas])
    return _best(table, targets, rows, slots, np.full(len(rows), taker))


def _best(table: Table, targets: Targets, rows: Rows, slots: Rows, takers: Rows) -> tuple[int, int, int] | None:
    """Return the best of these moves, as (row, slot, broker); None when none helps."""
    givers, loads = table.replicas[rows, slots], table.load[rows]

    def outside(brokers: Rows, added: LoadArray) -> LoadArray:
        return outside_by(table.held[brokers] + added, targets.lower[brokers], targets.upper[brokers])

    nothing = np.zeros_like(loads)
    gain = outside(givers, nothing) + outside(takers, nothing) - outside(givers, -loads) - outside(takers, loads)
    helping = np.flatnonzero((gain > 0) & (givers != takers))
    helping = helping[table.fits(rows[helping], slots[helping], takers[helping])]
    if not helping.size:
        return None
    best = helping[np.lexsort((loads[helping], -gain[helping]))[0]]
    return int(rows[best]), int(slots[best]), int(takers[best])
