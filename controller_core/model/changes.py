"""Changes: what a decision does to the cluster, as values.

A change is a domain fact ("these partitions have these leaders now"). The ZooKeeper shell turns those that outlive the
process into fenced multi-writes, a quorum's shell into metadata records; `transition.apply` makes them true in memory
once they are committed. Partitions come in columns: one change may hold 200,000 of them.

Leaves out requests to brokers: `propagation` derives them from committed changes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from uuid import UUID

from controller_core.model.broker import Broker
from controller_core.model.columns import BoolArray, IntArray
from controller_core.model.ids import TopicPartition
from controller_core.model.move import Move, Replicas
from kafka_node.errors import Failure


class Origin(Enum):
    """Where a topic or a deletion comes from, and so whether it still has to be written."""

    REQUESTED = "requested"
    """Through our Admin API: to be written."""
    OBSERVED = "observed"
    """Found written."""
    REPAIRED = "repaired"
    """Found written with an assignment that names the controller, or without a topic id: to be written again."""


class RequestsToBrokers(Enum):
    """Requests that brokers get for a change of partition states."""

    LEADER_AND_ISR = "leader and isr"
    """LeaderAndIsr to the replicas, then UpdateMetadata to all brokers."""
    METADATA_ONLY = "metadata only"
    """UpdateMetadata to all brokers: the leader requested the change and gets it with the response."""


@dataclass(frozen=True, slots=True)
class BrokersObserved:
    """These brokers are registered, and no others. Observed, never written."""

    brokers: tuple[Broker, ...]
    unreachable: tuple[Broker, ...] = ()
    """Registered without the inter-broker listener: the controller cannot send them requests."""


@dataclass(frozen=True, slots=True)
class ControlledShutdownStarted:
    """A broker asked to leave: it is given no leadership from now on. In memory only."""

    broker: int


class BrokerDefault(Enum):
    """Where brokers' default of a topic configuration is set; the dynamic one counts first."""

    DYNAMIC = "dynamic"
    """For the whole cluster, in ZooKeeper (`/config/brokers/<default>`)."""
    STATIC = "static"
    """In a broker's own file."""


@dataclass(frozen=True, slots=True)
class UncleanElectionObserved:
    """Leaders from outside the ISR are allowed, not allowed, or (None) nothing is said of them. In memory only."""

    topics: Mapping[str, bool | None] = field(default_factory=dict)
    defaults: Mapping[BrokerDefault, bool | None] = field(default_factory=dict)


class TopicDeletion(Enum):
    """The cluster's `delete.topic.enable`, as its brokers report it."""

    UNKNOWN = "unknown"
    """No broker has been asked yet in this term."""
    NOT_REPORTED = "not reported"
    """Brokers are registered, and none of them reported the setting when it was asked."""
    ENABLED = "enabled"
    DISABLED = "disabled"
    """At least one broker reported false."""


@dataclass(frozen=True, slots=True)
class TopicDeletionObserved:
    """Brokers' setting of `delete.topic.enable`. In memory only."""

    setting: TopicDeletion


@dataclass(frozen=True, slots=True, eq=False)
class TopicAdded:
    """A topic with its assignment; its partitions have no state yet (NewPartition)."""

    name: str
    topic_id: UUID | None
    partitions: IntArray
    """Partition ids, ascending: shape (n,)."""
    replicas: IntArray
    """Shape (n, longest), padded with -1."""
    origin: Origin
    moves: Mapping[int, Move] = field(default_factory=dict)
    """Partition id to its running move, for a topic found with one."""
    configs: Mapping[str, str] = field(default_factory=dict)
    version: int = 0
    """Version of the topic's znode before this change (OBSERVED, REPAIRED) or after (REQUESTED)."""


@dataclass(frozen=True, slots=True, eq=False)
class PartitionsAdded:
    """A topic grew."""

    topic: str
    partitions: IntArray
    replicas: IntArray
    origin: Origin
    version: int = 0
    """Version of the topic's znode as found (OBSERVED)."""


@dataclass(frozen=True, slots=True, eq=False)
class PartitionStates:
    """Partitions have a new leader, ISR or leader epoch. Columns over the same rows."""

    rows: IntArray
    leader: IntArray
    leader_epoch: IntArray
    isr: IntArray
    requests: RequestsToBrokers
    replicas: IntArray | None = None
    """What brokers are told of the replicas from now on: a move's target, when all of it is in sync."""
    unclean: BoolArray | None = None
    """Rows whose new leader was not in sync: acknowledged records may be lost (C7). None: none is."""
    recovering: BoolArray | None = None
    """Rows whose leader says that it still recovers from an unclean election (KIP-704). None: as it was before."""

    def recovering_after(self, before: BoolArray) -> BoolArray:
        """Tell whose leader recovers from now on: one that was not in sync, until it says that it is done."""
        said = before if self.recovering is None else self.recovering
        return said if self.unclean is None else said | self.unclean

    def take(self, places: IntArray) -> "PartitionStates":
        """Keep some of the places (indices into the columns, not row numbers)."""
        return PartitionStates(
            self.rows[places],
            self.leader[places],
            self.leader_epoch[places],
            self.isr[places],
            self.requests,
            None if self.replicas is None else self.replicas[places],
            None if self.unclean is None else self.unclean[places],
            None if self.recovering is None else self.recovering[places],
        )


@dataclass(frozen=True, slots=True, eq=False)
class StatesObserved:
    """Partition states as found written, by us or by anyone else."""

    rows: IntArray
    leader: IntArray
    leader_epoch: IntArray
    isr: IntArray
    partition_epoch: IntArray
    controller_epoch: IntArray
    recovering: BoolArray


@dataclass(frozen=True, slots=True)
class OfflineReplicasObserved:
    """Replicas of a live broker went offline (the log directory failed, or the broker refused), or are online again. In memory only."""

    broker: int
    offline: tuple[TopicPartition, ...]
    online: tuple[TopicPartition, ...]
    refused: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Replicas that the broker refused, with the name of the error."""


@dataclass(frozen=True, slots=True)
class NotificationsProcessed:
    """What brokers told by znodes of their own is done, or cannot be read: these znodes are removed."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicObserved:
    """A known topic's assignment as found written: partitions may have been added, moves started or ended by others."""

    name: str
    replicas: Mapping[int, Replicas]
    adding: Mapping[int, Replicas]
    removing: Mapping[int, Replicas]
    version: int
    topic_id: UUID | None = None
    """None: the znode has no id; then the known one stays."""


@dataclass(frozen=True, slots=True)
class TopicIdAssigned:
    """A topic without an id gets one (KIP-516)."""

    topic: str
    topic_id: UUID


@dataclass(frozen=True, slots=True)
class AssignmentRestored:
    """A topic's assignment as somebody else wrote it is written over by the one that is known."""

    topic: str
    version: int
    """Version of the topic's znode as found."""


@dataclass(frozen=True, slots=True)
class MovesStarted:
    """Partitions of one topic are to get other replicas."""

    topic: str
    moves: Mapping[int, Move]
    """Partition id to its move."""


@dataclass(frozen=True, slots=True)
class MovesFinished:
    """Partitions of one topic have their target replicas, and the others are gone."""

    topic: str
    replicas: Mapping[int, Replicas]
    """Partition id to its replicas."""


@dataclass(frozen=True, slots=True)
class PendingReassignmentRequestsChanged:
    """Of the moves that were asked for in ZooKeeper itself these run; the others are done, refused, or overtaken."""

    targets: Mapping[TopicPartition, Replicas]
    version: int
    """Version of the list before this change; NO_EPOCH where there is none."""
    origin: Origin
    refused: Mapping[TopicPartition, Failure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ElectionRequestsProcessed:
    """The preferred leaders that were asked for in ZooKeeper itself were elected, but for those that failed."""

    version: int
    """Version of the list, which is to go."""
    failed: Mapping[TopicPartition, Failure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplicaRemovalAnswered:
    """A broker dropped, or cannot drop, its replica of a partition that moved away. In memory only."""

    topic: str
    partition: int
    broker: int


@dataclass(frozen=True, slots=True)
class StrayReplicasObserved:
    """A broker holds logs of partitions that are not assigned to it. In memory only."""

    broker: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class BrokerUnregistered:
    """A broker that is away never returns: nothing waits for the logs that partitions left on it. In memory only."""

    broker: int


@dataclass(frozen=True, slots=True)
class DeletionQueued:
    """Topics are to be deleted."""

    topics: tuple[str, ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class DeletionDequeued:
    """Names are taken out of the deletion queue: no such topic exists, or `delete.topic.enable` is false."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeletionStarted:
    """Brokers are being told to delete a topic's replicas. In memory only."""

    topic: str
    waiting: Mapping[int, Sequence[int]]
    """Broker id to partition ids."""


@dataclass(frozen=True, slots=True)
class DeletionBlocked:
    """A deletion cannot go on now; it starts again when the reason is gone. In memory only."""

    topic: str
    reason: str
    refused: bool = False
    """A broker refused: nobody can tell when the reason is gone, so it is tried again when someone asks for that."""


@dataclass(frozen=True, slots=True)
class ReplicasDeleted:
    """A broker answered that these replicas' logs are gone. In memory only."""

    topic: str
    broker: int
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    """A topic is no more."""

    topic: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class ProducerIdsAllocated:
    """A broker got the producer ids from first to last."""

    broker: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ProducerIdsObserved:
    """The last block of producer ids as found written."""

    block_end: int
    version: int


Change = (
    BrokersObserved
    | ControlledShutdownStarted
    | UncleanElectionObserved
    | TopicDeletionObserved
    | TopicAdded
    | PartitionsAdded
    | PartitionStates
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
    | BrokerUnregistered
    | DeletionQueued
    | DeletionDequeued
    | DeletionStarted
    | DeletionBlocked
    | ReplicasDeleted
    | TopicRemoved
    | ProducerIdsAllocated
    | ProducerIdsObserved
)
