"""Single changes, the best each: what is left when replicas are large beside the ranges of brokers.

The broker farthest outside a range, as a part of its target, gives or takes the leader or the replica that brings both partners
nearest to their ranges over all resources together; a leader that is passed on is free and is asked for first. Every change
lowers the sum, so this ends. Leaves out swaps and chains.
"""

import numpy as np
import numpy.typing as npt

from move_planner.books import Books
from move_planner.ranges import Ranges
from move_planner.request import LoadArray
from move_planner.table import Rows

MAX_CHANGES = 50
"""Single changes of a large plan: each takes up to 0.1 s, and what many more would bring is not worth their bytes."""

MAX_CANDIDATES = 2_000
"""Replicas that are looked at for one change, those nearest in load to what has to move."""

LEAST = 1e-9
"""Gains below this part of a target are rounding."""


def finish(books: Books, ranges: Ranges, changes: int, *, patient: bool) -> None:
    """Make single changes while one helps; patience lets one resource of a broker suffer for more good of others."""
    helpless = np.zeros(books.held.shape, dtype=np.bool_)
    scale = np.maximum(ranges.target, 1)
    for _ in range(changes):
        outside = ranges.outside(books.held, books.open_to) / scale
        outside[helpless] = 0
        number, worst = np.unravel_index(int(outside.argmax()), outside.shape)
        if outside[number, worst] <= 0:
            return
        over = bool(books.held[number, worst] > ranges.upper[number, worst])
        change = (int(number), int(worst), over)
        if _pass_one_on(books, ranges, change, patient=patient) or _move_one(books, ranges, change, patient=patient):
            helpless[:] = False
        else:
            helpless[number, worst] = True


def gains(
    books: Books, ranges: Ranges, givers: Rows, takers: Rows, loads: LoadArray, *, patient: bool
) -> npt.NDArray[np.float64]:
    """Return by how much each change brings giver and taker nearer to their ranges, in parts of targets.

    Loads have shape (resources, changes). Nothing is gained by a change that brings a broker above a capacity, nor, without
    patience, by one that makes any resource of either worse than its range allows.
    """
    gain = np.zeros(len(givers))
    allowed = np.ones(len(givers), dtype=np.bool_)
    for number, load in enumerate(loads):
        lower, upper, held = ranges.lower[number], ranges.upper[number], books.held[number]
        for brokers, added in ((givers, -load), (takers, load)):
            now, then = held[brokers], held[brokers] + added
            out_now = np.maximum(0, now - upper[brokers]) + np.maximum(0, lower[brokers] - now)
            over, under = np.maximum(0, then - upper[brokers]), np.maximum(0, lower[brokers] - then)
            gain += (out_now - over - under) / np.maximum(ranges.target[number, brokers], 1)
            # On its own side: what is too much and would be too little is worse as well.
            worse = (over > np.maximum(0, now - upper[brokers])) | (under > np.maximum(0, lower[brokers] - now))
            allowed &= ~(worse & (not patient)) & ((added <= 0) | (then <= ranges.capacity[number, brokers]))
    return np.where(allowed, gain, 0)


def _pass_one_on(books: Books, ranges: Ranges, change: tuple[int, int, bool], *, patient: bool) -> bool:
    number, worst, over = change
    replicas = books.table.replicas
    if over:
        led = np.flatnonzero(books.free & (replicas[:, 0] == worst) & (books.led[number] > 0))
        rows, slots = np.repeat(led, replicas.shape[1] - 1), np.tile(np.arange(1, replicas.shape[1]), len(led))
    else:
        rows, slots = np.nonzero((replicas == worst) & (books.free & (books.led[number] > 0))[:, None])
    givers, takers = replicas[rows, 0], replicas[rows, slots]
    possible = (slots > 0) & books.open_to[givers] & books.open_to[takers]
    rows, slots, givers, takers = rows[possible], slots[possible], givers[possible], takers[possible]
    loads = books.led[:, rows]
    best = _best(gains(books, ranges, givers, takers, loads, patient=patient), loads[number])
    if best is not None:
        books.lead(rows[[best]], slots[[best]])
    return best is not None


def _move_one(books: Books, ranges: Ranges, change: tuple[int, int, bool], *, patient: bool) -> bool:
    number, worst, over = change
    replicas = books.table.replicas
    among = (replicas == worst) if over else books.open_to[replicas] & (replicas != worst).all(axis=1)[:, None]
    rows, slots = np.nonzero(among & books.free[:, None])
    load = books.each[number, rows] + books.led[number, rows] * (slots == 0)
    wanted = max(
        int(books.held[number, worst] - ranges.upper[number, worst]),
        int(ranges.lower[number, worst] - books.held[number, worst]),
    )
    useful = np.flatnonzero(load > 0)
    nearest = useful[np.argsort(np.abs(load[useful] - wanted), kind="stable")[:MAX_CANDIDATES]]
    rows, slots = rows[nearest], slots[nearest]
    loads = books.loads(rows, slots)
    takers = np.flatnonzero(books.open_to) if over else np.array([worst])
    count = len(takers)
    rows, slots, loads = np.repeat(rows, count), np.repeat(slots, count), np.repeat(loads, count, axis=1)
    to = np.tile(takers, len(nearest))
    gain = gains(books, ranges, replicas[rows, slots], to, loads, patient=patient)
    costs = books.costs(rows, slots)
    affordable = np.inf if books.purse is None else books.purse
    helping = np.flatnonzero((gain > LEAST) & (costs <= affordable))
    helping = helping[books.fits(rows[helping], slots[helping], to[helping])]
    best = _best(gain[helping], costs[helping])
    if best is None:
        return False
    chosen = helping[[best]]
    books.move(rows[chosen], slots[chosen], to[chosen])
    return True


def _best(gain: npt.NDArray[np.float64], cost: LoadArray) -> int | None:
    """Return the index of the largest gain, of equals the cheapest; None when nothing helps."""
    if not gain.size or gain.max() <= LEAST:
        return None
    return int(np.lexsort((cost, -gain))[0])
