"""Placement of a topic on a set of brokers with the fewest moved replicas.

Each partition keeps its number of replicas. A replica on one of the brokers stays where it is, and in its place in the order, so
that a preferred leader that may stay, stays. In the place of every other one comes the broker that holds the fewest replicas of this
topic so far, counting those that stay, by id where that is equal; for the first place, the one that leads the fewest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kafka_operator.decide.kafka.observed import KafkaPartition, KafkaTopic
from kafka_operator.resources.reassignment import Assignment, Partition


def spread(topic: KafkaTopic, brokers: Sequence[int]) -> tuple[Assignment, ...] | None:
    """Return the replicas of every partition, by index; None when a partition has more replicas than there are brokers.

    >>> from kafka_operator.decide.kafka.observed import KafkaPartition, KafkaTopic
    >>> orders = KafkaTopic("orders", None, (KafkaPartition(0, 1, (1, 2, 3)), KafkaPartition(1, 2, (2, 3, 1))))
    >>> [assignment.replicas for assignment in spread(orders, [2, 3, 4])]
    [(4, 2, 3), (2, 3, 4)]
    """
    if any(len(partition.replicas) > len(set(brokers)) for partition in topic.partitions):
        return None
    allowed = sorted(set(brokers))
    held = Counter(broker for partition in topic.partitions for broker in partition.replicas if broker in allowed)
    led = Counter(partition.replicas[0] for partition in topic.partitions if partition.replicas[0] in allowed)
    ordered = sorted(topic.partitions, key=lambda partition: partition.index)
    return tuple(
        Assignment(Partition(topic.name, partition.index), _replicas(partition, allowed, held, led))
        for partition in ordered
    )


def _replicas(
    partition: KafkaPartition, allowed: Sequence[int], held: Counter[int], led: Counter[int]
) -> tuple[int, ...]:
    """Fill the places of the replicas that leave; counts what it hands out in `held` and `led`."""
    replicas = list(partition.replicas)
    for place, broker in enumerate(partition.replicas):
        if broker in allowed:
            continue
        free = [candidate for candidate in allowed if candidate not in replicas]
        chosen = min(free, key=lambda candidate: (led[candidate] if place == 0 else 0, held[candidate], candidate))
        replicas[place] = chosen
        held[chosen] += 1
        if place == 0:
            led[chosen] += 1
    return tuple(replicas)
