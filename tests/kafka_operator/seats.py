"""Partitions of a cluster as values, and what the product's `PartitionCounter` counts of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kafka_operator.decide.clusters.cluster_metrics import ClusterMetrics, PartitionCounter
from kafka_operator.decide.kafka.observed import Moves
from kafka_operator.resources.reassignment import Partition


@dataclass(frozen=True, slots=True)
class Seat:
    """One partition as a poll of all needs it: its leader (-1 for none), its replicas in order, the number of those in sync."""

    partition: Partition
    leader: int
    replicas: tuple[int, ...]
    in_sync: int


def count_partitions(seats: Iterable[Seat], moves: Moves) -> ClusterMetrics:
    """Return the numbers of some partitions."""
    counted = PartitionCounter()
    for seat in seats:
        counted.count(seat.partition.topic, seat.partition.index, seat.leader, seat.replicas, seat.in_sync)
    return counted.sum_up(moves)
