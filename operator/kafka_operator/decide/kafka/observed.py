"""Observed state of Kafka, as immutable values."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from kafka_operator.resources.reassignment import Partition

NO_LEADER = -1

UNKNOWN_MS = -1
"""Timestamp of a node in DescribeQuorum responses of version 0, which Kafka before 3.3 sends."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Kafka's refusal of one item of a call: its error code, the code's name, and the broker's message."""

    code: int
    name: str
    message: str


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A setting that is set on a topic itself; `type` as DescribeConfigs names it (KIP-569), e.g. "LONG", empty if unknown."""

    value: str | None
    type: str = ""


@dataclass(frozen=True, slots=True)
class KafkaPartition:
    """One partition: its leader (-1 for none) and its replicas in order; while it moves, those that it moves to.

    `isr` are those in sync, as far as that was asked.
    """

    index: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic that exists, its partitions ascending; `topic_id` is None where the cluster has none (before Kafka 2.8).

    `moving` are the partitions that are being reassigned, ascending, as far as that was asked.
    """

    name: str
    topic_id: str | None
    partitions: tuple[KafkaPartition, ...]
    config: Mapping[str, ConfigValue] = field(default_factory=lambda: MappingProxyType({}))
    moving: tuple[int, ...] = ()

    @property
    def replication_factor(self) -> int:
        """Return the copies that every partition has at least."""
        return min((len(partition.replicas) for partition in self.partitions), default=0)

    def partition(self, index: int) -> KafkaPartition | None:
        """Return a partition by its number; None where there is none.

        >>> KafkaTopic("a", None, (KafkaPartition(0, 1, (1,)), KafkaPartition(2, 1, (1,)))).partition(2)
        KafkaPartition(index=2, leader=1, replicas=(1,), isr=())
        """
        held = self.partitions
        if index < len(held) and held[index].index == index:  # as all are but of a topic that has just been made
            return held[index]
        place = bisect_left(held, index, key=lambda item: item.index)
        return held[place] if place < len(held) and held[place].index == index else None

    @property
    def leaderless(self) -> tuple[int, ...]:
        """Return the partitions without a leader, ascending."""
        return tuple(sorted(partition.index for partition in self.partitions if partition.leader == NO_LEADER))


def partition_in(topics: Mapping[str, KafkaTopic], name: Partition) -> KafkaPartition | None:
    """Return a partition of one of these topics; None where there is none. No table of all has to be made for it."""
    topic = topics.get(name.topic)
    return None if topic is None else topic.partition(name.index)


@dataclass(frozen=True, slots=True)
class Move:
    """A partition that is being reassigned (ListPartitionReassignments, KIP-455).

    `replicas` is the union that holds while it moves, target first; `adding` and `removing` are parts of it.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """Return the replicas that remain when it is done."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


Moves = Mapping[Partition, Move]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Reason why a cluster could not be read: reason and message for the Ready condition.

    The message has no transient details (broker, socket error), so that a retry does not change the status.
    """

    reason: str
    message: str
    definite: bool = True
    """False if it may be a failover of the controller: it is reported only after a timeout."""
    leaving: bool = False
    """Whether it is not expected back: its Cluster is gone, or is being deleted while no broker answers."""


@dataclass(frozen=True, slots=True)
class QuorumNode:
    """A voter or an observer: the end of its log, and when it last had the whole log of the leader (ms since 1970)."""

    node_id: int
    log_end_offset: int
    caught_up_ms: int = UNKNOWN_MS


@dataclass(frozen=True, slots=True)
class Quorum:
    """A DescribeQuorum response; `leader_id` is -1 during an election, when no voters are reported."""

    leader_id: int
    leader_epoch: int = -1
    high_watermark: int = -1
    voters: tuple[QuorumNode, ...] = ()
    observers: tuple[QuorumNode, ...] = ()

    @property
    def voter_ids(self) -> frozenset[int]:
        """Return the ids of all voters."""
        return frozenset(voter.node_id for voter in self.voters)


ObservedQuorum = Quorum | Unavailable | None
"""The quorum, why it is not visible, or None in ZooKeeper mode."""


@dataclass(frozen=True, slots=True)
class ObservedCluster:
    """A cluster that answered: its id, its controller (-1 for none), its live brokers, ascending, and its quorum."""

    cluster_id: str
    controller_id: int
    broker_ids: tuple[int, ...]
    quorum: ObservedQuorum = None
