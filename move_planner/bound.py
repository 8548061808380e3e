"""The fewest bytes that any plan must copy: what the bound is, and why nothing can be below it.

Four floors, the highest of which counts. None of them charges for leadership: it is taken to be wherever it helps, for free.
1. Leaving. A broker above its range in a resource, though it led nothing, has to lose replicas that bear the surplus. The
   fewest bytes for that are its replicas with the most of the resource for their bytes, the last one in part (a fractional
   knapsack). Of several resources the dearest counts. A drained broker loses all that may move. A copied replica leaves one
   broker, so these add up over brokers; what a growing replication factor adds is copied besides, what a shrinking one drops is not.
2. Arriving. The same for brokers below their range, though they led all that they hold: each takes the best replicas of the
   whole cluster. A copied replica arrives at one broker, so these add up as well.
3. Arriving together. What all brokers lack of one resource comes out of one cluster: each replica there is can arrive once.
4. Racks. Second replicas in a rack, where another rack has none.

Real plans lie above: replicas are whole, they have to fit where they go, and what serves one resource may disturb another.
"""

import numpy as np
import numpy.typing as npt

from move_planner.books import Books
from move_planner.grouping import sums_by_group
from move_planner.ranges import Ranges
from move_planner.request import LoadArray
from move_planner.table import Rows

Floats = npt.NDArray[np.float64]


def lower_bound_bytes(books: Books, ranges: Ranges, *, level: bool, racks: bool) -> int:
    """Return the fewest bytes that reach the ranges from where the books are now.

    Without `level` brokers need not be within their ranges, without `racks` second replicas in a rack may stay.
    """
    table = books.table
    rows, slots = np.nonzero((table.replicas != books.nobody) & books.free[:, None])
    holders = table.replicas[rows, slots]
    drained = np.where(table.stays[:-1], 0, np.bincount(holders, books.bytes[rows], books.nobody + 1)[:-1])
    least, most = _whatever_is_led(books)
    surplus = np.where(books.open_to, np.maximum(0, least - ranges.upper), 0)
    lack = np.where(books.open_to, np.maximum(0, ranges.lower - most), 0)
    leaving = np.max([_leaving(books, number, rows, holders, surplus[number]) for number in range(len(lack))], axis=0)
    arriving = np.max([_arriving(books, number, lack[number]) for number in range(len(lack))], axis=0)
    together = max(_arriving_together(books, number, int(lack[number].sum())) for number in range(len(lack)))
    grown = float((books.bytes * (books.factors - table.factors())).sum())
    floors = [float(drained.sum()) + grown]
    if level:
        floors = [floors[0] + float(leaving.sum()), float(arriving.sum()), together]
    if racks:
        floors.append(float(_doubled(books)))
    # Bytes are whole, so the next whole number is a bound as well: that covers what floats round up. The small addend covers what
    # they round down, where the floors are whole.
    return int(max(0.0, *floors) + 1e-6)


def _whatever_is_led(books: Books) -> tuple[LoadArray, LoadArray]:
    """Return what brokers have at least and at most, whoever leads among the replicas that there are."""
    replicas, fixed = books.table.replicas, ~books.free
    least, most = np.zeros_like(books.held), np.zeros_like(books.held)
    for number, (each, led) in enumerate(zip(books.each, books.led, strict=True)):
        for slot in range(replicas.shape[1]):
            now = led if slot == 0 else np.zeros_like(led)
            np.add.at(least[number], replicas[:, slot], each + np.where(fixed, now, 0))
            np.add.at(most[number], replicas[:, slot], each + np.where(fixed, now, led))
    return least, most


def _leaving(books: Books, number: int, rows: Rows, holders: Rows, surplus: LoadArray) -> Floats:
    """Return the fewest bytes that take a surplus of one resource off each broker."""
    found = np.zeros(books.nobody + 1)
    if not surplus.any():
        return found
    chosen = np.flatnonzero((surplus[holders] > 0) & (books.each[number, rows] > 0))
    load, size, holder = books.each[number, rows[chosen]], books.bytes[rows[chosen]], holders[chosen]
    order = np.lexsort((size / load, holder))
    load, size, holder = load[order], size[order], holder[order]
    begun = sums_by_group(holder, load) - load
    part = np.clip((surplus[holder] - begun) / load, 0, 1)
    np.add.at(found, holder, part * size)
    return found


def _arriving(books: Books, number: int, lack: LoadArray) -> Floats:
    """Return the fewest bytes that bring each broker what it lacks, if every partition were there for it alone."""
    if not lack.any():
        return np.zeros(len(lack))
    loads, sizes = _best_first(books, number, copies=False)
    along, weight = np.append(0, np.cumsum(loads)), np.append(0, np.cumsum(sizes, dtype=np.float64))
    found: Floats = np.interp(lack, along, weight)
    return found


def _arriving_together(books: Books, number: int, lack: int) -> float:
    if not lack:
        return 0.0
    loads, sizes = _best_first(books, number, copies=True)
    along, weight = np.append(0, np.cumsum(loads)), np.append(0, np.cumsum(sizes, dtype=np.float64))
    return float(np.interp(lack, along, weight))


def _best_first(books: Books, number: int, *, copies: bool) -> tuple[LoadArray, LoadArray]:
    """Return load and bytes of partitions that may move, those with the most load for their bytes first.

    With `copies`, of all replicas together: one of them leads.
    """
    rows = np.flatnonzero(books.free & (books.each[number] + books.led[number] > 0))
    load, size = books.each[number, rows] + books.led[number, rows], books.bytes[rows]
    if copies:
        factors = books.table.factors()[rows]
        followers = np.flatnonzero((factors > 1) & (books.each[number, rows] > 0))
        load = np.concatenate([load, books.each[number, rows[followers]] * (factors[followers] - 1)])
        size = np.concatenate([size, size[followers] * (factors[followers] - 1)])
    order = np.argsort(size / load, kind="stable")
    return load[order], size[order]


def _doubled(books: Books) -> int:
    table = books.table
    if not table.racks:
        return 0
    missing = np.maximum(0, np.minimum(table.racks, books.factors) - table.racks_of(table.replicas))
    return int((books.bytes * missing)[books.free].sum())
