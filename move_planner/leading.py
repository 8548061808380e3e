"""Pass leaders on between the replicas that there are: free, so always first.

One exchange for each resource that leaders bear: brokers above their range pass leaders on to those below theirs, then to
whoever has room; then those below take from whoever can spare it. Partitions that bear most of this resource and least of others
go first, so few leaders change. Thousands at a time: each proposes its emptiest replica, and what brokers can give and take is
summed up in order. Leaves out replicas.
"""

import numpy as np

from move_planner.books import Books
from move_planner.grouping import admitted, sums_by_group
from move_planner.ranges import Ranges, may_give, may_take
from move_planner.request import LoadArray
from move_planner.table import Rows

MAX_PASSES = 24
"""Passes of one kind: each takes most of what is left."""


def pass_leaders_on(books: Books, ranges: Ranges, slack: LoadArray) -> None:
    """Level every resource that leaders bear, as far as the present replicas allow.

    `slack`: (resources, brokers + 1), how far beyond its range a resource may be disturbed for another one's sake.
    """
    for number in np.flatnonzero(books.led.any(axis=1)).tolist():
        middle = np.rint(ranges.target[number]).astype(np.int64)
        lower, upper = ranges.lower[number], ranges.upper[number]
        # (what givers keep, what takers are filled up to, whether it is the givers or the takers who are to be helped)
        for floor, ceiling in ((upper, lower), (upper, middle), (upper, upper), (middle, lower), (lower, lower)):
            for _ in range(MAX_PASSES):
                if not _one_pass(books, ranges, number, (floor, ceiling), slack):
                    break


def _one_pass(books: Books, ranges: Ranges, number: int, ends: tuple[LoadArray, LoadArray], slack: LoadArray) -> bool:
    held, (floor, ceiling) = books.held[number], ends
    give = np.where(books.open_to, np.maximum(0, held - floor), 0)
    take = np.where(books.open_to, np.maximum(0, ceiling - held), 0)
    if not give.any() or not take.any():
        return False
    rows, slots = _candidates(books, number, give, take)
    givers, takers = books.table.replicas[rows, 0], books.table.replicas[rows, slots]
    loads = books.led[:, rows]
    giving, taking = may_give(books, ranges, slack), may_take(books, ranges, slack)
    # The leader that reaches the amount still belongs to it, but nobody falls below its own range or rises above it.
    giving[number] = np.maximum(0, held - ranges.lower[number])
    taking[number] = np.maximum(0, ranges.upper[number] - held)
    # One that does not fit by itself must not stand in front of those that do.
    chosen = np.flatnonzero((loads <= giving[:, givers]).all(axis=0) & (loads <= taking[:, takers]).all(axis=0))
    for groups, room, amount in ((givers, giving, give), (takers, taking, take)):
        chosen = chosen[admitted(groups[chosen], loads[:, chosen], room)]
        chosen = chosen[_reaching(groups[chosen], loads[number, chosen], amount)]
    books.lead(rows[chosen], slots[chosen])
    return bool(chosen.size)


def _candidates(books: Books, number: int, give: LoadArray, take: LoadArray) -> tuple[Rows, Rows]:
    """Return leaders (rows) and the replica that each would be passed on to (slots), those to pass on first in front."""
    replicas, led = books.table.replicas, books.led
    rows = np.flatnonzero(books.free & (give[replicas[:, 0]] > 0) & (led[number] > 0))
    room = np.where(books.open_to[replicas[rows]], take[replicas[rows]], 0)
    room[:, 0] = 0
    slots = room.argmax(axis=1)
    rows, slots = rows[slots > 0], slots[slots > 0]
    total = np.maximum(led.sum(axis=1), 1)
    share = led[:, rows] / total[:, None]
    order = np.lexsort((rows, share.sum(axis=0) / share[number]))
    return rows[order], slots[order]


def _reaching(groups: Rows, loads: LoadArray, amount: LoadArray) -> Rows:
    """Return the indexes of those that come, in order, before the amount of their group is reached."""
    order = np.argsort(groups, kind="stable")
    begun = sums_by_group(groups[order], loads[order]) - loads[order]
    return np.sort(order[begun < amount[groups[order]]])
