"""Homes for replicas that must move: those on brokers that leave, those that double in a rack, those that are added.

Many at a time: the replicas are laid side by side along the room that brokers have, the emptiest brokers first, so that each
replica is proposed one broker; where the two do not go together (the partition is there already, or its rack) the replica is
turned to another place along the room and asked again. What is left after some turns is placed one by one.

Leaves out which replicas: `planning` and `levelling` say.
"""

import numpy as np

from controller_core.model.columns import BoolArray
from move_planner.request import MAX_TOTAL_LOAD, LoadArray
from move_planner.table import Rows, Table
from move_planner.targets import Targets, level

MAX_TURNS = 64
"""Proposals to one replica: where one broker in three goes with it, all but one in 10^11 have found theirs."""

FEW_ROWS = 200
"""Up to here each row is placed by itself, on the emptiest broker: milliseconds, and better than proposals."""

MAX_QUIET_TURNS = 8
"""Turns without any success before the rest is given up."""

GOLDEN = 0.618033988749895
"""Turning by this part of the whole each time comes near every place soon."""


def find_homes(table: Table, targets: Targets, rows: Rows, slots: Rows, ceiling: LoadArray) -> BoolArray:
    """Move what finds a home on brokers that stay within `ceiling` (by broker); tell which did. Each row at most once."""
    placed = np.zeros(len(rows), dtype=np.bool_)
    left = np.arange(len(rows))
    quiet, reach = 0, 1
    for turn in range(MAX_TURNS):
        if not left.size or quiet == MAX_QUIET_TURNS:
            break
        turned = np.roll(left, int(turn * GOLDEN % 1 * len(left)))
        loads = np.maximum(table.load[rows[turned]], 1)
        room = np.where(table.stays, np.maximum(0, ceiling - table.held), 0)
        poured = level(
            table.held.astype(np.float64), targets.target, room.astype(np.float64), reach * float(loads.sum())
        )
        along = np.cumsum(poured)
        if along[-1] <= 0:
            break
        ends = np.cumsum(loads)
        # Load and room may differ: stretched to each other's length, nobody is proposed much more than there is room for.
        places = (ends - loads / 2) * (along[-1] / ends[-1])
        brokers = np.minimum(np.searchsorted(along, places, side="right"), table.nobody - 1)
        fits = table.fits(rows[turned], slots[turned], brokers)
        fits[fits] = within(brokers[fits], table.load[rows[turned[fits]]], room)
        taken = turned[fits]
        table.move(rows[taken], slots[taken], brokers[fits])
        placed[taken] = True
        left = turned[~fits]
        quiet = 0 if taken.size else quiet + 1
        # Where the emptiest brokers do not go with what is left, the next ones are proposed as well.
        reach = 1 if 8 * taken.size >= turned.size else 2 * reach
    return placed


def within(groups: Rows, loads: LoadArray, room: LoadArray) -> BoolArray:
    """Tell which of the loads, summed up by group in their order, stay within the group's room.

    >>> within(np.array([1, 0, 1]), np.array([3, 3, 3]), np.array([2, 5])).tolist()
    [True, False, False]
    """
    order = np.argsort(groups, kind="stable")
    sums = sums_by_group(groups[order], loads[order])
    fits = np.empty(len(groups), dtype=np.bool_)
    fits[order] = sums <= room[groups[order]]
    return fits


def sums_by_group(groups: Rows, loads: LoadArray) -> LoadArray:
    """Return running sums that begin anew with each group; equal groups stand together.

    >>> sums_by_group(np.array([4, 4, 7]), np.array([1, 2, 5])).tolist()
    [1, 3, 5]
    """
    sums = np.cumsum(loads)
    first = np.ones(len(groups), dtype=np.bool_)
    first[1:] = groups[1:] != groups[:-1]
    before = (sums - loads)[first]
    begun: LoadArray = sums - before[np.cumsum(first) - 1]
    return begun


def must_place(table: Table, targets: Targets, rows: Rows, slots: Rows, *, keep_racks: bool) -> Rows:
    """Place all that can be placed, within ranges where possible, and return those (as indexes) that nobody can take.

    With `keep_racks` a second replica in a rack is not a place; without it, it is the last resort.
    """
    placed = np.zeros(len(rows), dtype=np.bool_)
    endless = np.full(table.nobody + 1, MAX_TOTAL_LOAD, dtype=np.int64)
    for ceiling in (targets.lower, targets.upper, endless) if len(rows) > FEW_ROWS else ():
        left = np.flatnonzero(~placed)
        placed[left] = find_homes(table, targets, rows[left], slots[left], ceiling)
    everyone = np.arange(table.nobody)
    staying = int(table.stays.sum())
    # Partitions that every broker holds already need no asking.
    left = np.flatnonzero(~placed & (table.stays[table.replicas[rows]].sum(axis=1) < staying))
    for index in left.tolist():
        row, slot = np.full(table.nobody, rows[index]), np.full(table.nobody, slots[index])
        fits = table.fits(row, slot, everyone)
        if not fits.any() and not keep_racks:
            fits = table.fits(row, slot, everyone, keep_racks=False)
        if fits.any():
            over = np.where(fits, table.held[:-1] - targets.target[:-1], np.inf)
            table.move(rows[[index]], slots[[index]], np.array([over.argmin()]))
            placed[index] = True
    return np.flatnonzero(~placed)
