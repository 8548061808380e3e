"""Homes for many replicas at once, within the room that brokers have of every resource.

Replicas are laid side by side along the room of one resource, the emptiest brokers first, so that each is proposed one broker;
where the two do not go together the replica is turned to another place and asked again. Leaves out which replicas, and why.
"""

import numpy as np

from controller_core.model.columns import BoolArray
from move_planner.books import Books
from move_planner.grouping import admitted, level
from move_planner.ranges import Ranges
from move_planner.request import LoadArray
from move_planner.table import Rows

MAX_TURNS = 64
"""Proposals to one replica: where one broker in three goes with it, all but one in 10^11 have found theirs."""

MAX_QUIET_TURNS = 8
"""Turns without any success before the rest is given up."""

GOLDEN = 0.618033988749895
"""Turning by this part of the whole each time comes near every place soon."""


def find_homes(books: Books, ranges: Ranges, rows: Rows, slots: Rows, number: int, room: LoadArray) -> BoolArray:
    """Move what finds a home; tell which did. Each row at most once.

    `number` is the resource whose room is filled; `room` (resources, brokers + 1) is what brokers may take.
    """
    room = np.where(books.open_to, room, 0)
    placed = np.zeros(len(rows), dtype=np.bool_)
    left = np.arange(len(rows))
    quiet, reach = 0, 1
    for turn in range(MAX_TURNS):
        if not left.size or quiet == MAX_QUIET_TURNS:
            break
        turned = np.roll(left, int(turn * GOLDEN % 1 * len(left)))
        loads = books.loads(rows[turned], slots[turned])
        brokers = _proposed(books, ranges, loads[number], number, room, reach)
        if brokers is None:
            break
        chosen = np.flatnonzero(books.fits(rows[turned], slots[turned], brokers))
        chosen = chosen[admitted(brokers[chosen], loads[:, chosen], room)]
        chosen = chosen[_affordable(books, rows[turned[chosen]], slots[turned[chosen]])]
        taken = turned[chosen]
        books.move(rows[taken], slots[taken], brokers[chosen])
        for resource, load in enumerate(loads[:, chosen]):
            np.subtract.at(room[resource], brokers[chosen], load)
        placed[taken] = True
        left = np.delete(turned, chosen)
        quiet = 0 if taken.size else quiet + 1
        # Where the emptiest brokers do not go with what is left, the next ones are proposed as well.
        reach = 1 if 8 * taken.size >= turned.size else 2 * reach
    return placed


def _proposed(books: Books, ranges: Ranges, loads: LoadArray, number: int, room: LoadArray, reach: int) -> Rows | None:
    """Return a broker for each load; None when nobody has room."""
    loads = np.maximum(loads, 1)
    open_room = np.where((room > 0).all(axis=0), room[number], 0).astype(np.float64)
    held = books.held[number].astype(np.float64)
    along = np.cumsum(level(held, ranges.target[number], open_room, reach * float(loads.sum())))
    if along[-1] <= 0:
        return None
    ends = np.cumsum(loads)
    places = (ends - loads / 2) * (along[-1] / ends[-1])
    found: Rows = np.minimum(np.searchsorted(along, places, side="right"), books.nobody - 1)
    return found


def _affordable(books: Books, rows: Rows, slots: Rows) -> Rows:
    """Return the indexes of moves that the purse pays for, those that cost too much left out one by one."""
    if books.purse is None:
        return np.arange(len(rows))
    costs = books.costs(rows, slots)
    chosen = np.flatnonzero(costs <= books.purse)
    return chosen[np.cumsum(costs[chosen]) <= books.purse]
