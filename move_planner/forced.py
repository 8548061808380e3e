"""What must change whatever the loads are: replicas on drained brokers, replication factors, second replicas in a rack.

They go where every resource stays in its range, else where capacities allow it; what no broker can take stays, and is listed as unreached. Leaves out
levelling, which may take what was placed here farther for free.
"""

from collections.abc import Iterator

import numpy as np

from controller_core.model.columns import BoolArray
from move_planner.books import Books
from move_planner.factor import drop_replicas
from move_planner.grouping import admitted
from move_planner.homes import find_homes
from move_planner.ranges import Ranges
from move_planner.request import LoadArray
from move_planner.table import Rows, doubled

ASKED_AT_ONCE = 200_000
"""Pairs of replica and broker that are looked at together where proposals found nothing: a few MB."""

MAX_ROUNDS = 50
"""Rounds in which left replicas are placed on the best broker each; every round places one for each broker at least."""


def place_forced(books: Books, ranges: Ranges, order: list[int], *, factor: int | None, racks: bool) -> None:
    """Change replication factors, empty drained brokers and repair racks; `order` are the resources, the dearest to level last."""
    table = books.table
    if factor is not None:
        drop_replicas(books, ranges, factor)
    for slot in range(table.replicas.shape[1]):
        rows = np.flatnonzero(books.free & (table.replicas[:, slot] != books.nobody))
        rows = rows[~table.stays[table.replicas[rows, slot]]]
        _place(books, ranges, order, rows, np.full(len(rows), slot), keep_racks=False)
    for _ in range(table.replicas.shape[1] if factor is not None else 0):
        rows = np.flatnonzero(books.free & (table.factors() < books.factors))
        _place(books, ranges, order, rows, table.factors()[rows], keep_racks=False)
    for rows, slots in _doubles(books) if racks else ():
        _place(books, ranges, order, rows, slots, keep_racks=True)


def _doubles(books: Books) -> Iterator[tuple[Rows, Rows]]:
    """Yield second replicas in a rack where another rack has none, one of a partition at a time."""
    table = books.table
    for _ in range(table.replicas.shape[1] if table.racks else 0):
        rows = np.flatnonzero(books.free & (table.racks_of(table.replicas) < np.minimum(table.racks, table.factors())))
        second = doubled(table, table.replicas[rows]) & ~books.fixed[table.replicas[rows]]
        rows, second = rows[second.any(axis=1)], second[second.any(axis=1)]
        if not rows.size:
            return
        # The last one: the further right, the less likely it leads.
        yield rows, second.shape[1] - 1 - second[:, ::-1].argmax(axis=1)


def _place(books: Books, ranges: Ranges, order: list[int], rows: Rows, slots: Rows, *, keep_racks: bool) -> None:
    left = np.arange(len(rows))
    for number in reversed(order):
        for ceiling in (_lacked(ranges, number), ranges.upper):
            left = left[~find_homes(books, ranges, rows[left], slots[left], number, _room(books, ceiling))]
    if len(rows):
        last = order[-1]
        left = left[~find_homes(books, ranges, rows[left], slots[left], last, _room(books, ranges.capacity))]
    _place_by_asking(books, ranges, rows[left], slots[left], keep_racks=keep_racks)


def _room(books: Books, ceiling: LoadArray) -> LoadArray:
    found: LoadArray = np.maximum(0, ceiling - books.held)
    return found


def _lacked(ranges: Ranges, number: int) -> LoadArray:
    """Return ceilings by resource: what is lacked of one resource, the whole range of the others."""
    ceiling = ranges.upper.copy()
    ceiling[number] = ranges.lower[number]
    return ceiling


def _place_by_asking(books: Books, ranges: Ranges, rows: Rows, slots: Rows, *, keep_racks: bool) -> None:
    """Ask every broker for every replica that is left, and give each to the one that it leaves emptiest."""
    takers = np.flatnonzero(books.open_to)
    share = max(1, ASKED_AT_ONCE // max(1, len(takers)))
    for racks in (True, keep_racks):
        for _ in range(MAX_ROUNDS):
            placed = np.zeros(len(rows), dtype=np.bool_)
            for start in range(0, len(rows), share):
                part = slice(start, start + share)
                placed[part] = _ask(books, ranges, rows[part], slots[part], takers, keep_racks=racks)
            rows, slots = rows[~placed], slots[~placed]
            if not placed.any():
                break


def _ask(books: Books, ranges: Ranges, rows: Rows, slots: Rows, takers: Rows, *, keep_racks: bool) -> BoolArray:
    count = len(takers)
    placed = np.zeros(len(rows), dtype=np.bool_)
    if not count:
        return placed
    fits = books.fits(
        np.repeat(rows, count), np.repeat(slots, count), np.tile(takers, len(rows)), keep_racks=keep_racks
    )
    loads = books.loads(rows, slots)
    room = np.where(books.open_to, ranges.capacity - books.held, 0)
    fits = fits.reshape(len(rows), count)
    fullness = np.zeros(fits.shape)
    for number, load in enumerate(loads):
        then = books.held[number, takers] + load[:, None]
        fits &= load[:, None] <= room[number, takers]
        fullness = np.maximum(fullness, then / np.maximum(ranges.target[number, takers], 1))
    brokers = takers[np.where(fits, fullness, np.inf).argmin(axis=1)]
    chosen = np.flatnonzero(fits.any(axis=1))
    costs = books.costs(rows[chosen], slots[chosen])
    if books.purse is not None:
        chosen = chosen[np.cumsum(costs) <= books.purse]
    chosen = chosen[admitted(brokers[chosen], loads[:, chosen], room)]
    books.move(rows[chosen], slots[chosen], brokers[chosen])
    placed[chosen] = True
    return placed
