"""A changed replication factor: which replicas go, and room in the table for those that come.

Replicas to drop: first those on brokers that leave, then second ones in a rack, then those on the fullest brokers; the
preferred leader last among equals. Rows are taken in shares, so that no broker that is fullest at first loses all of them.
Leaves out where added replicas go: `placing`.
"""

import numpy as np
import numpy.typing as npt

from move_planner.table import Rows, Table
from move_planner.targets import Targets

SHARES = 64
"""Shares of the rows: after each, it is looked again which brokers are full."""

LEAVES, DOUBLES, FOLLOWS = 1e9, 1e6, 1e-6
"""What makes a replica the one to drop, beside how full its broker is (held / target, far below a million)."""


def drop_replicas(table: Table, targets: Targets, factor: int) -> None:
    """Drop replicas until no partition has more than `factor`."""
    for _ in range(table.replicas.shape[1]):
        rows = np.flatnonzero(table.factors() > factor)
        if not rows.size:
            return
        for share in np.array_split(rows, min(SHARES, len(rows))):
            slots = _to_drop(table, targets, share)
            table.move(share, slots, np.full(len(share), table.nobody))
        close_up(table)


def _to_drop(table: Table, targets: Targets, rows: Rows) -> Rows:
    replicas = table.replicas[rows]
    score: npt.NDArray[np.float64] = (table.held / np.maximum(targets.target, 1))[replicas]
    score = np.where(table.stays[replicas], score, LEAVES) + doubled(table, replicas) * DOUBLES
    score[:, 1:] += FOLLOWS
    score[replicas == table.nobody] = -1
    chosen: Rows = score.argmax(axis=1)
    return chosen


def doubled(table: Table, replicas: Rows) -> npt.NDArray[np.bool_]:
    """Tell for each replica whether an earlier one of its partition is in the same rack, both on brokers that stay."""
    rack = np.where(table.stays[replicas], table.rack[replicas], -1)
    found = np.zeros(replicas.shape, dtype=np.bool_)
    for slot in range(1, replicas.shape[1]):
        found[:, slot] = (rack[:, slot, None] == rack[:, :slot]).any(axis=1) & (rack[:, slot] >= 0)
    return found


def close_up(table: Table) -> None:
    """Move empty slots to the right."""
    order = np.argsort(table.replicas == table.nobody, axis=1, kind="stable")
    table.replicas = np.take_along_axis(table.replicas, order, axis=1)
    # What nobody holds weighs nothing, whatever was moved to it.
    table.held[table.nobody] = 0


def make_room(table: Table, factor: int) -> None:
    """Widen the table to `factor` slots."""
    missing = factor - table.replicas.shape[1]
    if missing > 0:
        table.replicas = np.pad(table.replicas, ((0, 0), (0, missing)), constant_values=table.nobody)
