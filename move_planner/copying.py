"""Level one resource by moving replicas, for few bytes: those with the most of it for their bytes first.

Brokers above their range give what is above; brokers below it take what they lack, first from those above their target, then from
any broker above the range's lower end. Other resources limit both sides.
Leaves out replicas too large for this: `finishing`.
"""

import numpy as np
import numpy.typing as npt

from controller_core.model.columns import BoolArray
from move_planner.books import Books
from move_planner.grouping import admitted, sums_by_group
from move_planner.homes import find_homes
from move_planner.ranges import Ranges, may_give, may_take
from move_planner.request import LoadArray
from move_planner.table import Rows

MAX_PASSES = 16
"""Passes of one kind: each takes most of what is left."""

MAX_QUIET_PASSES = 2
"""Passes without any success before the rest is given up."""

BEYOND = (0.0, 0.02, 0.1, 0.5)
"""How far into their ranges brokers that lack something are filled, as parts of the width: farther only where replicas are large."""

ALIKE = 0.02
"""Replicas whose bytes for a unit of the resource differ by less than this are picked by what they disturb."""

ON_ITS_WAY = 0.5
"""What a replica that is copied anyway is taken to disturb, as a part of what another one like it does."""

MIXING = 2_654_435_761
"""Knuth's multiplier: rows times any power of it are in an order without a pattern."""

SPARE = 4
"""Picks beyond what is lacked, as a factor on what is looked at: most of those that are cheapest find a home."""


def level_resource(books: Books, ranges: Ranges, number: int, slack: LoadArray, margin: LoadArray) -> None:
    """Bring one resource into its ranges as far as moves can; `slack` as in `leading`.

    Brokers outside are brought `margin` (by broker) beyond the end of the range, so that what other resources need next has room.
    """
    lower, upper = ranges.lower[number] + margin, ranges.upper[number] - margin
    middle = np.maximum(np.rint(ranges.target[number]).astype(np.int64), lower)
    for ceiling in (lower, upper):
        _exchange(books, ranges, number, slack, (upper, ceiling), shedding=True)
    ceilings = [lower + np.rint((upper - lower) * part).astype(np.int64) for part in BEYOND]
    for floor, ceiling in ((middle, lower), *((lower, ceiling) for ceiling in ceilings)):
        _exchange(books, ranges, number, slack, (floor, ceiling), shedding=False)


def _exchange(
    books: Books, ranges: Ranges, number: int, slack: LoadArray, ends: tuple[LoadArray, LoadArray], *, shedding: bool
) -> None:
    """Have brokers above a floor give to brokers below a ceiling: all that givers have above it, or all that takers lack."""
    floor, ceiling = ends
    tried, quiet = ~books.free, 0
    for _ in range(MAX_PASSES):
        books.passes += 1
        held = books.held[number]
        over, under = held > ranges.upper[number], held < ranges.lower[number]
        give = np.where(books.open_to & (over if shedding else ~under), np.maximum(0, held - floor), 0)
        takers = books.open_to & (held < ceiling) & (shedding | under)
        if not give.any() or not takers.any():
            return
        room = np.where(takers, may_take(books, ranges, slack), 0)
        room[number] = np.where(takers, ceiling - held, 0)
        wanted = None if shedding else int((ceiling - held)[takers].sum())
        rows, slots = _pick(books, ranges, number, (give, wanted), slack, tried, room.max(axis=1))
        if not rows.size:
            return
        placed = find_homes(books, ranges, rows, slots, number, room)
        tried[rows[~placed]] = True
        quiet = 0 if placed.any() else quiet + 1
        if quiet == MAX_QUIET_PASSES:
            return


def _pick(
    books: Books,
    ranges: Ranges,
    number: int,
    amounts: tuple[LoadArray, int | None],
    slack: LoadArray,
    tried: BoolArray,
    largest: LoadArray,
) -> tuple[Rows, Rows]:
    """Pick replicas (rows, slots), each row once: what brokers give, until that or all that is wanted is reached."""
    give, wanted = amounts
    replicas = books.table.replicas
    rows, slots = np.nonzero((give > 0)[replicas] & ~tried[:, None])
    rows, slots = _near_the_front(books, number, rows, slots, amounts, largest[number])
    loads = books.loads(rows, slots)
    fitting = (loads <= largest[:, None]).all(axis=0)
    rows, slots, loads = rows[fitting], slots[fitting], loads[:, fitting]
    order = _cheapest_first(books, number, rows, slots, loads)
    rows, slots, loads = rows[order], slots[order], loads[:, order]
    givers = replicas[rows, slots]
    giving = may_give(books, ranges, slack)
    giving[number] = np.maximum(0, books.held[number] - ranges.lower[number])
    chosen = admitted(givers, loads, giving)
    by_giver = chosen[np.argsort(givers[chosen], kind="stable")]
    begun = sums_by_group(givers[by_giver], loads[number, by_giver]) - loads[number, by_giver]
    chosen = np.sort(by_giver[begun < give[givers[by_giver]]])
    _, first = np.unique(rows[chosen], return_index=True)
    chosen = chosen[np.sort(first)]
    if wanted is not None:
        chosen = chosen[: np.searchsorted(np.cumsum(loads[number, chosen]), wanted) + 1]
    return rows[chosen], slots[chosen]


def _near_the_front(
    books: Books, number: int, rows: Rows, slots: Rows, amounts: tuple[LoadArray, int | None], largest: int
) -> tuple[Rows, Rows]:
    """Leave out replicas of which so many cheaper ones are there that their turn will not come in this pass."""
    give, wanted = amounts
    load = books.each[number, rows] + books.led[number, rows] * (slots == 0)
    useful = np.flatnonzero((load > 0) & (load <= largest))
    rows, slots, load = rows[useful], slots[useful], load[useful]
    cost = _cost(books, number, rows, slots)
    if wanted is not None:
        order = np.lexsort((_turn(books, rows), cost))
        order = order[: int(np.searchsorted(np.cumsum(load[order]), SPARE * wanted)) + 1]
        return rows[order], slots[order]
    givers = books.table.replicas[rows, slots]
    order = np.lexsort((_turn(books, rows), cost, givers))
    begun = sums_by_group(givers[order], load[order]) - load[order]
    order = order[begun < SPARE * give[givers[order]]]
    return rows[order], slots[order]


def _cheapest_first(books: Books, number: int, rows: Rows, slots: Rows, loads: LoadArray) -> Rows:
    """Order replicas: fewest bytes for the resource, then least disturbance, followers before leaders, by row.

    What is on its way anyway costs nothing to copy, but taking it farther may undo what it was sent for: so that only halves
    what it disturbs.
    """
    load = loads[number].astype(np.float64)
    step = np.floor(np.log(_cost(books, number, rows, slots)) / ALIKE).astype(np.int32)
    total = np.maximum(books.held.sum(axis=1), 1)[:, None]
    disturbing = (loads / total).sum(axis=0) / load * np.where(books.costs(rows, slots) > 0, 1.0, ON_ITS_WAY)
    found: Rows = np.lexsort((_turn(books, rows), books.leads(rows, slots), disturbing, step))
    return found


def _turn(books: Books, rows: Rows) -> Rows:
    """Return the order in which replicas are picked that cost and disturb alike.

    With one resource all do. Rows next to each other are on the same brokers then, and those that were picked before are on the
    same takers: so there is no pattern in the order, and it is another one in each pass.
    """
    if len(books.each) > 1:
        return rows
    found: Rows = (rows + 1) * pow(MIXING, books.passes, 2**32) % 2**32
    return found


def _cost(books: Books, number: int, rows: Rows, slots: Rows) -> npt.NDArray[np.float64]:
    """Return bytes for a unit of the resource."""
    load = books.each[number, rows] + books.led[number, rows] * (slots == 0)
    found: npt.NDArray[np.float64] = np.maximum(books.bytes[rows], 1) / load
    return found
