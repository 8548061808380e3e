"""Changes that exist only in ZooKeeper mode, as values: what is observed there, legacy requests, and the steps of moves and deletions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from controller_core.model import columns, settings
from controller_core.model.broker import Broker
from controller_core.model.ids import TopicPartition
from controller_core.model.move import Move, Replicas
from controller_core.model.origin import Origin
from kafka_wire import Failure


@dataclass(frozen=True, slots=True)
class BrokersObserved:
    """Exactly these brokers are registered. Observed, never written."""

    brokers: tuple[Broker, ...]
    unreachable: tuple[Broker, ...] = ()
    """Registered without the inter-broker listener: the controller cannot send requests to them."""


@dataclass(frozen=True, slots=True)
class ControlledShutdownStarted:
    """A broker requested controlled shutdown: it is not elected as a leader from now on. In memory only."""

    broker: int


@dataclass(frozen=True, slots=True)
class UncleanElectionObserved:
    """Settings of `unclean.leader.election.enable`; None: not set. In memory only."""

    topics: Mapping[str, bool | None] = field(default_factory=dict)
    defaults: Mapping[settings.BrokerDefault, bool | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicDeletionObserved:
    """Observed `delete.topic.enable` of the brokers. In memory only."""

    setting: settings.TopicDeletion


@dataclass(frozen=True, slots=True, eq=False)
class StatesObserved:
    """Partition states as found written, by this controller or another process."""

    rows: columns.IntArray
    leader: columns.IntArray
    leader_epoch: columns.IntArray
    isr: columns.IntArray
    partition_epoch: columns.IntArray
    controller_epoch: columns.IntArray
    recovering: columns.BoolArray


@dataclass(frozen=True, slots=True)
class OfflineReplicasObserved:
    """Replicas of a live broker went offline (failed log directory, or refused by the broker) or came back. In memory only."""

    broker: int
    offline: tuple[TopicPartition, ...]
    online: tuple[TopicPartition, ...]
    refused: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Replicas that the broker refused, with the name of the error."""


@dataclass(frozen=True, slots=True)
class NotificationsProcessed:
    """Brokers' notification znodes were processed, or cannot be read: they are removed."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicObserved:
    """Assignment of a known topic as found written: another process may have added partitions, or started or ended moves."""

    name: str
    replicas: Mapping[int, Replicas]
    adding: Mapping[int, Replicas]
    removing: Mapping[int, Replicas]
    topic_id: UUID | None = None
    """None: the znode has no id; the known one stays."""


@dataclass(frozen=True, slots=True)
class TopicIdAssigned:
    """A topic without an id gets one (KIP-516)."""

    topic: str
    topic_id: UUID


@dataclass(frozen=True, slots=True)
class AssignmentRestored:
    """An assignment written by another process is overwritten with the known one."""

    topic: str


@dataclass(frozen=True, slots=True)
class MovesStarted:
    """Reassignments of one topic's partitions start."""

    topic: str
    moves: Mapping[int, Move]
    """Moves by partition id."""


@dataclass(frozen=True, slots=True)
class MovesFinished:
    """Partitions of one topic have their target replicas; removed replicas are deleted."""

    topic: str
    replicas: Mapping[int, Replicas]
    """Replicas by partition id."""


@dataclass(frozen=True, slots=True)
class PendingReassignmentRequestsChanged:
    """Reassignments requested through `/admin/reassign_partitions` that are still running; others are done, refused or superseded."""

    targets: Mapping[TopicPartition, Replicas]
    origin: Origin
    refused: Mapping[TopicPartition, Failure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ElectionRequestsProcessed:
    """Preferred leader elections requested through `/admin/preferred_replica_election` were processed; the znode is deleted."""

    failed: Mapping[TopicPartition, Failure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplicaRemovalAnswered:
    """A broker has deleted, or cannot delete, its replica of a partition that moved away. In memory only."""

    topic: str
    partition: int
    broker: int


@dataclass(frozen=True, slots=True)
class StrayReplicasObserved:
    """A broker has logs of partitions that are not assigned to it. In memory only."""

    broker: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class DeletionQueued:
    """Topics are queued for deletion."""

    topics: tuple[str, ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class DeletionDequeued:
    """Names are removed from the deletion queue: no such topic exists, or `delete.topic.enable` is false."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeletionStarted:
    """Requests to delete a topic's replicas are sent to brokers. In memory only."""

    topic: str
    waiting: Mapping[int, Sequence[int]]
    """Partition ids by broker id."""


@dataclass(frozen=True, slots=True)
class DeletionBlocked:
    """A deletion cannot continue; it starts again when the reason no longer applies. In memory only."""

    topic: str
    reason: str
    refused: bool = False
    """Whether a broker refused. When that ends is unknown, so the deletion is retried only on events that request a retry."""


@dataclass(frozen=True, slots=True)
class ReplicasDeleted:
    """A broker reported that the logs of these replicas are deleted. In memory only."""

    topic: str
    broker: int
    partitions: tuple[int, ...]


ZooKeeperChange = (
    BrokersObserved
    | ControlledShutdownStarted
    | UncleanElectionObserved
    | TopicDeletionObserved
    | StatesObserved
    | OfflineReplicasObserved
    | NotificationsProcessed
    | TopicObserved
    | TopicIdAssigned
    | AssignmentRestored
    | MovesStarted
    | MovesFinished
    | PendingReassignmentRequestsChanged
    | ElectionRequestsProcessed
    | ReplicaRemovalAnswered
    | StrayReplicasObserved
    | DeletionQueued
    | DeletionDequeued
    | DeletionStarted
    | DeletionBlocked
    | ReplicasDeleted
)
