"""What every broker should hold, the range around it, and the fewest bytes that any plan must copy to get there.

A broker's target is its share of every partition (`shares`), summed over the partitions' loads: the mean, unless
racks of different sizes make that impossible. The range is 5 percent to either side, or to the next whole replica of the usual
size where replicas are larger than that. Leaves out how it is reached.

The bound: what a broker holds above its range must go, and all that drained brokers hold; what a broker lacks below its range
must come. One copied replica serves one of each, so the larger of the two sums is the least; a growing replication factor adds
to what must be copied in any case, a shrinking one takes from it. Replicas that double in a rack must be copied as well.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from move_planner.request import LoadArray
from move_planner.shares import shares_by_rack
from move_planner.table import Rows, Table

TOLERANCE = 0.05
"""A broker is even with the others within 5 percent of its target: less is paid for in copies and gone with the next hour's load."""


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """By broker number, with an empty entry for nobody: brokers that leave have 0 in all of them."""

    target: npt.NDArray[np.float64]
    lower: LoadArray
    upper: LoadArray
    replica: int
    """The load of a replica of the usual size: the median of those with any load."""


def targets_of(table: Table, factors: Rows) -> Targets:
    """Work out targets and ranges for partitions that have these numbers of replicas in the end."""
    target = np.zeros(table.nobody + 1, dtype=np.float64)
    staying = np.flatnonzero(table.stays)
    rack = table.rack[staying] if table.racks else np.zeros(len(staying), dtype=np.intp)
    sizes = np.bincount(rack, minlength=max(1, table.racks)).tolist() if len(staying) else []
    for factor in np.unique(factors).tolist() if sizes else []:
        # Without racks every broker is a rack of its own: shares are even.
        shares = shares_by_rack(sizes if table.racks else [1] * len(staying), factor)
        share = np.array([float(one) for one in shares])
        target[staying] += float(table.load[factors == factor].sum()) * (share[rack] if table.racks else share)
    loaded = table.load[table.load > 0]
    replica = int(np.median(loaded)) if len(loaded) else 1
    return Targets(target, *_range(target, max(1, replica)), max(1, replica))


def _range(target: npt.NDArray[np.float64], replica: int) -> tuple[LoadArray, LoadArray]:
    """Return lower and upper ends: 5 percent, or whole replicas.

    >>> [end.tolist() for end in _range(np.array([1000.0, 250.0]), 100)]
    [[950, 200], [1050, 300]]
    """
    lower = np.minimum(np.ceil(target * (1 - TOLERANCE)), np.floor(target / replica + 1e-9) * replica)
    upper = np.maximum(np.floor(target * (1 + TOLERANCE)), np.ceil(target / replica - 1e-9) * replica)
    return lower.astype(np.int64), upper.astype(np.int64)


def lower_bound_bytes(table: Table, targets: Targets, factors: Rows) -> int:
    """Return the fewest bytes that reach the ranges from where the table is now; `factors` are those of the end."""
    grown = int((table.load * (factors - table.factors())).sum())
    leaving = int(np.maximum(0, table.held - targets.upper).sum())
    lacking = int(np.maximum(0, targets.lower - table.held).sum())
    return max(leaving + grown, lacking, 0)


def forced_bytes(table: Table, factors: Rows) -> int:
    """Return the fewest bytes where nothing is levelled: what drained brokers hold, and what factors add."""
    grown = int((table.load * (factors - table.factors())).sum())
    leaving = int(table.held[~table.stays].sum())
    return max(leaving + grown, 0)


def doubled_bytes(table: Table, factors: Rows) -> int:
    """Return the fewest bytes that leave no second replica in a rack while another rack has none."""
    if not table.racks:
        return 0
    needed = np.minimum(table.racks, factors)
    return int((table.load * np.maximum(0, needed - table.racks_of(table.replicas))).sum())


def level(
    held: npt.NDArray[np.float64], weight: npt.NDArray[np.float64], room: npt.NDArray[np.float64], amount: float
) -> npt.NDArray[np.float64]:
    """Pour an amount into brokers, the emptiest (held / weight) first: how much each gets, at most its room.

    >>> level(np.array([4.0, 0.0]), np.array([1.0, 1.0]), np.array([9.0, 9.0]), 6.0).round(6).tolist()
    [1.0, 5.0]
    """
    if amount >= room.sum():
        return room
    # Only those with room: what others hold says nothing about the level, and would only make the range to halve huge.
    open_to = room > 0
    low, high = 0.0, float(((held + room)[open_to] / np.maximum(weight[open_to], 1e-9)).max(initial=0.0))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        poured = np.clip(middle * weight - held, 0, room).sum()
        low, high = (middle, high) if poured < amount else (low, middle)
    return np.clip(high * weight - held, 0, room)


HALVINGS = 64
"""Halvings of the range in which the level is sought: more than a float has digits."""
