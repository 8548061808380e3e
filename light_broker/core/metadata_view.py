"""The cluster's metadata as a broker knows it: brokers, topics, partitions, configs and features.

A view never changes: the control plane makes a new one and replaces the old one as a whole, so that each request sees one state.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from kafka_node.configs.resource_types import ConfigResourceType
from kafka_wire.topic_partition import TopicPartition

NO_LEADER = -1
"""Leader of a partition without one (`LeaderAndIsr.NoLeader`)."""
NO_CONTROLLER = -1
"""Id of the controller while it is unknown."""
NO_EPOCH = -1
"""Epoch of a broker, a leader or a partition that is unknown."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of a broker for clients of one listener."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A broker of the cluster."""

    id: int
    epoch: int = NO_EPOCH
    """Number of its registration."""
    rack: str | None = None
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    """By listener name."""
    is_fenced: bool = False
    """Whether clients do not see it: it is registered, but does not serve yet or no longer (KRaft)."""
    is_shutting_down: bool = False
    """Whether its leaders are moved away before it stops (KRaft): it joins no ISR."""


@dataclass(frozen=True, slots=True)
class PartitionView:
    """State of a partition."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    """NO_LEADER: no broker leads it."""
    leader_epoch: int
    partition_epoch: int
    elr: tuple[int, ...] = ()
    """Replicas outside the ISR that have every committed record (KIP-966)."""
    last_known_elr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
    """Replicas on directories that failed; those of brokers that are not alive come in addition."""


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic, with its partitions in the order of their numbers."""

    name: str
    id: UUID
    partitions: tuple[PartitionView, ...]
    is_internal: bool = False
    """Whether only brokers write it: `__consumer_offsets` and `__transaction_state`."""


class ConfigResource(NamedTuple):
    """A resource with dynamic configs. A broker's name is its id; the empty name is the default of all brokers."""

    type: ConfigResourceType
    name: str


CLUSTER_DEFAULT = ConfigResource(ConfigResourceType.BROKER, "")
"""Dynamic configs of all brokers."""


@dataclass(frozen=True, slots=True)
class FinalizedFeatures:
    """Feature levels of the cluster, and the epoch at which they were finalized."""

    epoch: int = -1
    levels: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetadataView:
    """State of the cluster at one time."""

    cluster_id: str
    controller_id: int = NO_CONTROLLER
    brokers: Mapping[int, BrokerView] = field(default_factory=dict)
    """By id, fenced brokers included."""
    topics: Mapping[str, TopicView] = field(default_factory=dict)
    """By name."""
    topic_names_by_id: Mapping[UUID, str] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    """Dynamic configs that were set, by resource."""
    features: FinalizedFeatures = FinalizedFeatures()

    def partition(self, named: TopicPartition) -> PartitionView | None:
        """Return a partition's state; None: there is no such partition."""
        topic = self.topics.get(named.topic)
        if topic is None or not 0 <= named.partition < len(topic.partitions):
            return None
        return topic.partitions[named.partition]

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of a topic's id; None: there is no such topic."""
        return self.topic_names_by_id.get(topic_id)

    def topic_id(self, name: str) -> UUID | None:
        """Return a topic's id; None: there is no such topic."""
        topic = self.topics.get(name)
        return None if topic is None else topic.id

    def alive_brokers(self, listener: str) -> Iterator[BrokerView]:
        """Iterate over the brokers that clients of a listener reach, in the order of their ids."""
        for _, broker in sorted(self.brokers.items()):
            if not broker.is_fenced and listener in broker.endpoints:
                yield broker

    def is_alive(self, broker_id: int) -> bool:
        """Whether a broker is registered and not fenced."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.is_fenced

    def offline_replicas(self, partition: PartitionView) -> tuple[int, ...]:
        """Return the replicas that serve nothing: their broker is not alive, or their directory failed."""
        return tuple(
            replica
            for replica in partition.replicas
            if replica in partition.offline_replicas or not self.is_alive(replica)
        )

    def dynamic_configs(self, resource: ConfigResource) -> Mapping[str, str]:
        """Return the dynamic configs that were set for a resource."""
        return self.configs.get(resource, {})
