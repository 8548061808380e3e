"""Concurrency of moves: the next moves start as soon as others have completed.

Moves begin in the plan's order, and one that has to wait holds up those behind it, so that one number is the progress. A limit
counts every move that goes on in the cluster, including those of other clients. A move that copies nothing (another order, fewer replicas) keeps no
broker busy and is counted nowhere; a call hands over a bounded number of those too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kafka_operator.decide.kafka.observed import NO_LEADER, Move, Moves
from kafka_operator.decide.reassignments.partition_progress import PartitionProgress
from kafka_operator.resources.reassignment import Assignment, Partition
from kafka_operator.resources.reassignment_terms import Concurrency

MAX_HANDED_OVER = 5_000
"""Partitions that are handed over in one go: a call of some 300 kB, and about as many as a controller writes in seconds."""


def hand_over_up_to(
    partitions: PartitionProgress,
    order: Sequence[Assignment],
    handing_over: int,
    moves: Moves,
    concurrency: Concurrency,
) -> int:
    """Return the number of the plan's partitions, from its beginning, that may have been handed over after the next call."""
    busy, going_on = _going_on(partitions, moves)
    for item in partitions.due:
        brokers = partitions.brokers_of(item)
        busy.update(brokers)
        going_on += bool(brokers)
    end, begun = handing_over, 0
    while end < len(order) and begun < MAX_HANDED_OVER:
        item = order[end]
        # What waits is in the plan's order too, so that no table of it is needed.
        if begun < len(partitions.later) and item.partition == partitions.later[begun].partition:
            brokers = partitions.brokers_of(item)
            if brokers and (
                going_on >= concurrency.cluster or any(busy[broker] >= concurrency.per_broker for broker in brokers)
            ):
                break
            busy.update(brokers)
            going_on += bool(brokers)
            begun += 1
        end += 1
    return end


def _going_on(partitions: PartitionProgress, moves: Moves) -> tuple[Counter[int], int]:
    """Return how many moves each broker takes part in, and how many there are."""
    busy: Counter[int] = Counter()
    between_dirs = [item for item in partitions.moving if item.log_dirs]
    for item in between_dirs:
        busy.update(partitions.brokers_of(item))
    copying = [(partition, move) for partition, move in moves.items() if move.adding]
    for partition, move in copying:
        busy.update(brokers_of_move(partitions, partition, move))
    return busy, len(copying) + len(between_dirs)


def brokers_of_move(partitions: PartitionProgress, partition: Partition, move: Move) -> Iterable[int]:
    """Return the brokers that a move that goes on keeps busy; of other clients' partitions the leader is not known."""
    known = partitions.current.get(partition)
    leader = [] if known is None or known.leader in {NO_LEADER, *move.adding} else [known.leader]
    return [*move.adding, *leader]
