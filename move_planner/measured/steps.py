"""From two assignments to steps, in the order in which they help most: leaders, drains, racks, load.

Changes of leaders alone come first, since they cost nothing; within the others, the broker that is fullest in any resource gives
first. Leaves out the planner's thoughts.
"""

import numpy as np
import numpy.typing as npt

from move_planner.measured.books import Books
from move_planner.measured.ranges import Ranges
from move_planner.ordering import new_to, reasons_of
from move_planner.request import LoadArray
from move_planner.result import Reason
from move_planner.table import Rows


def ordered(books: Books, held: LoadArray, ranges: Ranges) -> tuple[Rows, LoadArray, npt.NDArray[np.int8]]:
    """Return the rows that change, in order, with the bytes that each copies and its reason; `held` is as it was before."""
    table = books.table
    rows = np.flatnonzero((books.before != table.replicas).any(axis=1))
    old, new = books.before[rows], table.replicas[rows]
    gone = new_to(new, old, books.nobody)
    moved = gone.any(axis=1)
    reasons = np.where(moved, reasons_of(table, books.before, rows), Reason.LEADERS.value)
    fullness = (held / np.maximum(ranges.target, 1)).max(axis=0)
    fullness[books.nobody] = 0
    urgency = np.where(gone, fullness[old], 0).max(axis=1, initial=0)
    order = np.lexsort((rows, -urgency, reasons, moved))
    copied = books.bytes[rows] * new_to(old, new, books.nobody).sum(axis=1)
    return rows[order], copied[order], reasons[order].astype(np.int8)
