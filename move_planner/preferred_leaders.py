"""Balancing of preferred leaders: only the order of replicas within partitions changes.

Brokers that are preferred by too many partitions pass some on to those preferred by too few, over other brokers where they share no
partition: along a chain a -> b -> c, some of a's partitions prefer b and as many of b's partitions prefer c. The shortest chain is
used each time, so as few lists as possible change; partitions that move anyway change first. As long as a chain exists the worst
broker is relieved, so the rest cannot be reached with these replicas.

The current leader does not change here: an election follows when the controller rebalances leaders.
"""

import itertools
from collections import deque

import numpy as np
import numpy.typing as npt

from controller_core.model import BoolArray
from move_planner.request import TOLERANCE, LoadArray
from move_planner.table import Rows, Table

MAX_CHAINS_PER_BROKER = 50
"""Chains in one plan, per broker: each fills a broker, empties one or exhausts a pair, so few are needed."""


def leads_of(replicas: Rows, no_broker: int) -> LoadArray:
    """Count the partitions with each broker as preferred leader."""
    counted = np.bincount(replicas[:, 0], minlength=no_broker + 1)
    counted[no_broker] = 0
    return counted.astype(np.int64)


def balance_preferred_leaders(table: Table, moved: BoolArray, tolerance: float = TOLERANCE) -> None:
    """Reorder replicas until leaders are within a tolerance, or one, of the mean; rows of `moved` are reordered first."""
    staying = int(table.stays.sum())
    partitions = int((table.replicas[:, 0] != table.no_broker).sum())
    if not staying or not partitions:
        return
    mean = partitions / staying
    lower = np.where(table.stays, min(int(np.ceil(mean * (1 - tolerance))), int(mean)), 0)
    upper = np.where(table.stays, max(int(mean * (1 + tolerance)), -int(-mean // 1)), 0)
    for spare, lack in ((upper, lower), (upper, upper), (lower, lower)):
        _shift_leaders(table, spare, lack, moved)


def _shift_leaders(table: Table, spare: LoadArray, lack: LoadArray, moved: BoolArray) -> None:
    """Pass leaders on from brokers with more than `spare` to brokers with less than `lack`."""
    no_broker = table.no_broker
    pairs = _pairs(table.replicas, no_broker)
    leads = leads_of(table.replicas, no_broker)
    for _ in range(MAX_CHAINS_PER_BROKER * no_broker):
        chain = _shortest_chain(pairs, table.stays, leads - spare, lack - leads)
        if chain is None:
            return
        amount = min(int(leads[chain[0]] - spare[chain[0]]), int(lack[chain[-1]] - leads[chain[-1]]))
        amount = min(amount, *(int(pairs[a, b]) for a, b in itertools.pairwise(chain)))
        for giver, taker in itertools.pairwise(chain):
            rows = _rows_to_pass(table, giver, taker, moved, amount)
            pairs -= _pairs(table.replicas[rows], no_broker)
            _put_first(table.replicas, rows, taker)
            pairs += _pairs(table.replicas[rows], no_broker)
        leads[chain[0]] -= amount
        leads[chain[-1]] += amount


def _pairs(replicas: Rows, no_broker: int) -> npt.NDArray[np.int64]:
    """Count partitions by (preferred leader, follower)."""
    size = no_broker + 1
    flat = replicas[:, :1] * size + replicas[:, 1:]
    counted = np.bincount(flat.ravel(), minlength=size * size).reshape(size, size)
    counted[:, no_broker] = 0
    return counted.astype(np.int64)


def _shortest_chain(
    pairs: npt.NDArray[np.int64], stays: BoolArray, excess: LoadArray, need: LoadArray
) -> list[int] | None:
    """Find the shortest chain from any broker with an excess to any with a need, the largest of either first."""
    sources = [broker for broker in np.argsort(-excess, kind="stable").tolist() if excess[broker] > 0]
    came_from = dict.fromkeys(sources, -1)
    waiting = deque(sources)
    while waiting:
        broker = waiting.popleft()
        reached = np.flatnonzero((pairs[broker] > 0) & stays)
        for other in reached[np.argsort(-need[reached], kind="stable")].tolist():
            if other in came_from:
                continue
            came_from[other] = broker
            waiting.append(other)
            if need[other] > 0:
                chain = [other]
                while came_from[chain[-1]] != -1:
                    chain.append(came_from[chain[-1]])
                return chain[::-1]
    return None


def _rows_to_pass(table: Table, giver: int, taker: int, moved: BoolArray, amount: int) -> Rows:
    """Return `amount` rows that prefer `giver` and have `taker`: first those that move, then those that the taker leads."""
    led = np.flatnonzero(table.replicas[:, 0] == giver)
    shared = led[(table.replicas[led, 1:] == taker).any(axis=1)]
    order = np.lexsort((table.leader[shared] != taker, ~moved[shared]))
    first: Rows = shared[order[:amount]]
    return first


def _put_first(replicas: Rows, rows: Rows, broker: int) -> None:
    """Swap the broker with the first replica in each row."""
    slots = (replicas[rows] == broker).argmax(axis=1)
    replicas[rows, slots] = replicas[rows, 0]
    replicas[rows, 0] = broker
