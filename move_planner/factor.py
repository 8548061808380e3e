"""A smaller replication factor: which replicas go.

Replicas to drop: first those on brokers that leave, then second ones in a rack, then those on the fullest brokers; the
preferred leader last among equals. Rows are taken in shares, so that no broker that is fullest at first loses all of them.
Leaves out where added replicas go: `forced`.
"""

import numpy as np
import numpy.typing as npt

from move_planner.books import Books, held_of
from move_planner.ranges import Ranges
from move_planner.table import Rows, Table, doubled

SHARES = 64
"""Shares of the rows: after each, it is looked again which brokers are full."""

LEAVES, DOUBLES, FOLLOWS = 1e9, 1e6, 1e-6
"""What makes a replica the one to drop, beside how full its broker is (held / target, far below a million)."""


def drop_replicas(books: Books, ranges: Ranges, factor: int) -> None:
    """Drop replicas until no partition that may change has more than `factor`."""
    table = books.table
    for _ in range(table.replicas.shape[1]):
        rows = np.flatnonzero(books.free & (table.factors() > factor))
        if not rows.size:
            break
        for share in np.array_split(rows, min(SHARES, len(rows))):
            slots = _to_drop(books, ranges, share)
            books.move(share, slots, np.full(len(share), table.nobody))
        close_up(table)
        # Another replica may lead now.
        books.held = held_of(table.replicas, books.each, books.led, books.nobody)
    books.recount()


def _to_drop(books: Books, ranges: Ranges, rows: Rows) -> Rows:
    table = books.table
    replicas = table.replicas[rows]
    score: npt.NDArray[np.float64] = (books.held / np.maximum(ranges.target, 1)).max(axis=0)[replicas]
    score = np.where(table.stays[replicas], score, LEAVES) + doubled(table, replicas) * DOUBLES
    score[:, 1:] += FOLLOWS
    score[replicas == table.nobody] = -1
    chosen: Rows = score.argmax(axis=1)
    return chosen


def close_up(table: Table) -> None:
    """Move empty slots to the right."""
    order = np.argsort(table.replicas == table.nobody, axis=1, kind="stable")
    table.replicas = np.take_along_axis(table.replicas, order, axis=1)
