"""Health of replicas: effects of the loss of a broker on its partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller_core.model.partition_health import is_under_min_isr
from kafka_operator.decide.kafka.observed import ObservedQuorum
from kafka_operator.resources.reassignment import Partition
from reconciler.decide.listed import listed

MAX_NAMED = 5
"""Partitions that a message names; it gives the number of all of them as well."""

UNKNOWN_MIN_ISR = 32767
"""Represents an unknown min.insync.replicas: more than any partition has (the most replicas in Kafka's records)."""


@dataclass(frozen=True, slots=True)
class PartitionReplicas:
    """One partition: the brokers that hold it (while it moves, those of before and after), and those in sync."""

    partition: Partition
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReplicaHealth:
    """The replicas of all partitions of a cluster, its live brokers, and its quorum.

    `min_isr` is min.insync.replicas by topic, the cluster's default where a topic sets none; None until it is requested.
    """

    controller_id: int
    broker_ids: tuple[int, ...]
    partitions: tuple[PartitionReplicas, ...]
    min_isr: Mapping[str, int] | None = None
    quorum: ObservedQuorum = None


def out_of_sync(partitions: Iterable[PartitionReplicas], *, without: Collection[int] = ()) -> list[PartitionReplicas]:
    """Return the partitions with a replica out of sync, other than replicas on the brokers `without`."""
    return [
        item for item in partitions if any(broker not in item.isr and broker not in without for broker in item.replicas)
    ]


def under_min_isr_without(health: ReplicaHealth, broker_id: int) -> list[PartitionReplicas]:
    """Return the partitions that would be under their min.insync.replicas without this broker, or already are.

    A partition whose ISR does not contain the broker is not affected. A partition with a single replica always is.
    """
    assert health.min_isr is not None, broker_id
    limits = health.min_isr
    return [
        item
        for item in health.partitions
        if broker_id in item.isr
        and is_under_min_isr(len(item.isr) - 1, limits.get(item.partition.topic, UNKNOWN_MIN_ISR))
    ]


def with_replica_on(partitions: Iterable[PartitionReplicas], broker_ids: Collection[int]) -> list[PartitionReplicas]:
    """Return the partitions that have a replica on any of these brokers."""
    leaving = frozenset(broker_ids)
    return [item for item in partitions if not leaving.isdisjoint(item.replicas)]


def largest_replication_factor(health: ReplicaHealth) -> int:
    """Return the largest replication factor of any topic; a partition that is being reassigned has more replicas than that."""
    factors: dict[str, int] = {}
    for item in health.partitions:
        topic, replicas = item.partition.topic, len(item.replicas)
        factors[topic] = min(factors.get(topic, replicas), replicas)
    return max(factors.values(), default=0)


def partition_names(partitions: Sequence[PartitionReplicas]) -> str:
    """Return the partitions' names, the first few of them, in order.

    >>> partition_names([PartitionReplicas(Partition("b", 0), (1,), (1,)), PartitionReplicas(Partition("a", 2), (1,), (1,))])
    'a-2, b-0'
    """
    return listed(sorted(item.partition for item in partitions), MAX_NAMED)
