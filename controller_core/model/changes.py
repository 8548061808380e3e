"""Changes to the cluster's state, as values: the result of decisions.

A change is a fact of the domain ("these partitions have these leaders now"). The ZooKeeper shell translates changes that outlive the
process into fenced multi-writes, a quorum's shell into metadata records; `transition.apply` applies them in memory once they
are committed, and `propagation` derives the requests to brokers. Partitions are in columns: one change may hold 200,000 of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar
from uuid import UUID

from controller_core.model.broker import Broker
from controller_core.model.columns import BoolArray, IntArray
from controller_core.model.ids import NO_EPOCH, TopicPartition
from controller_core.model.move import Move, Replicas
from kafka_metadata.records import ResourceType
from kafka_wire.errors import Failure

Value = TypeVar("Value")

Directories = tuple[UUID, ...]
"""Directory of each replica of a partition, in the order of the replicas."""


class Origin(Enum):
    """Origin of a topic, of a deletion or of a list of requests, which determines whether it has to be written."""

    REQUESTED = "requested"
    """Requested through the Admin API: to be written."""
    OBSERVED = "observed"
    """Found written."""
    REPAIRED = "repaired"
    """Found written with an assignment that contains the controller's id, or without a topic id: to be written again."""


class RequestsToBrokers(Enum):
    """Requests that brokers get for a change of partition states."""

    LEADER_AND_ISR = "leader and isr"
    """LeaderAndIsr to the replicas, then UpdateMetadata to all brokers."""
    METADATA_ONLY = "metadata only"
    """UpdateMetadata to all brokers: the leader requested the change and gets it with the response."""


@dataclass(frozen=True, slots=True)
class BrokersObserved:
    """Exactly these brokers are registered. Observed, never written."""

    brokers: tuple[Broker, ...]
    unreachable: tuple[Broker, ...] = ()
    """Registered without the inter-broker listener: the controller cannot send requests to them."""


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """A broker registered, for the first time or again (KRaft mode). Another epoch means another incarnation."""

    broker: Broker


@dataclass(frozen=True, slots=True)
class BrokerChanged:
    """State of a registered broker that changed (KRaft mode); None: unchanged."""

    broker: int
    broker_epoch: int
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None
    directories: tuple[UUID, ...] | None = None
    """Log directories that are still online."""
    cordoned_directories: tuple[UUID, ...] | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatObserved:
    """A broker has read the metadata up to this offset (KRaft mode). In memory only."""

    broker: int
    metadata_offset: int
    may_shut_down: bool = False
    """Whether a response has allowed the broker to shut down."""


@dataclass(frozen=True, slots=True)
class ShutdownOffsetObserved:
    """A broker may shut down when the other brokers have read the metadata up to this offset (KRaft mode). In memory only."""

    broker: int
    offset: int


@dataclass(frozen=True, slots=True)
class BrokerSuspected:
    """The connection with a broker's heartbeats ended: it is elected only where no other replica can lead. In memory only."""

    broker: int


@dataclass(frozen=True, slots=True)
class BrokerLeaving:
    """A part of a broker's partitions is taken from it, the rest follows: it gets none until then (KRaft mode). In memory only."""

    broker: int


@dataclass(frozen=True, slots=True)
class ControlledShutdownStarted:
    """A broker requested controlled shutdown: it is not elected as a leader from now on. In memory only."""

    broker: int


class BrokerDefault(Enum):
    """Source of the brokers' default of a topic configuration; the dynamic one takes precedence."""

    DYNAMIC = "dynamic"
    """For the whole cluster, in ZooKeeper (`/config/brokers/<default>`)."""
    STATIC = "static"
    """In a broker's configuration file."""


@dataclass(frozen=True, slots=True)
class UncleanElectionObserved:
    """Settings of `unclean.leader.election.enable`; None: not set. In memory only."""

    topics: Mapping[str, bool | None] = field(default_factory=dict)
    defaults: Mapping[BrokerDefault, bool | None] = field(default_factory=dict)


class TopicDeletion(Enum):
    """The cluster's `delete.topic.enable`, as its brokers report it."""

    UNKNOWN = "unknown"
    """No broker has been queried yet in this term."""
    NOT_REPORTED = "not reported"
    """Brokers are registered, and none of the queried ones reported the setting."""
    ENABLED = "enabled"
    DISABLED = "disabled"
    """At least one broker reported false."""


@dataclass(frozen=True, slots=True)
class TopicDeletionObserved:
    """Observed `delete.topic.enable` of the brokers. In memory only."""

    setting: TopicDeletion


@dataclass(frozen=True, slots=True)
class ConfigsChanged:
    """Configurations of one resource that changed (KRaft mode); None: removed."""

    type: ResourceType
    name: str
    """Empty for the default of all brokers."""
    values: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class FeatureLevelChanged:
    """A feature has another level for the whole cluster (KRaft mode); level 0 means off."""

    name: str
    level: int


@dataclass(frozen=True, slots=True, eq=False)
class FirstStates:
    """First leaders and ISRs of new partitions, which KRaft writes together with their assignment. Leader and partition epoch are 0."""

    leader: IntArray
    isr: IntArray
    """Shape (n, longest), padded with -1."""
    directories: Mapping[int, UUID]
    """Directory of a broker's new replicas, by broker id."""


@dataclass(frozen=True, slots=True, eq=False)
class TopicAdded:
    """A new topic with its assignment. In ZooKeeper mode its partitions have no state yet (NewPartition)."""

    name: str
    topic_id: UUID | None
    partitions: IntArray
    """Partition ids, ascending: shape (n,)."""
    replicas: IntArray
    """Shape (n, longest), padded with -1."""
    origin: Origin
    moves: Mapping[int, Move] = field(default_factory=dict)
    """Running moves by partition id, for a topic that was found with some."""
    configs: Mapping[str, str] = field(default_factory=dict)
    states: FirstStates | None = None
    """None: the partitions get their first leaders by a later change."""


@dataclass(frozen=True, slots=True, eq=False)
class PartitionsAdded:
    """Partitions of a topic were added."""

    topic: str
    partitions: IntArray
    replicas: IntArray
    origin: Origin
    states: FirstStates | None = None
    """None: the partitions get their first leaders by a later change."""


@dataclass(frozen=True, slots=True, eq=False)
class PartitionStates:
    """Partitions have a new leader, ISR or leader epoch. Columns over the same rows."""

    rows: IntArray
    leader: IntArray
    leader_epoch: IntArray
    isr: IntArray
    requests: RequestsToBrokers
    replicas: IntArray | None = None
    """New replica lists. In ZooKeeper mode the targets of moves whose target replicas are all in sync; in KRaft mode also the unions of
    moves that start. None: they stay."""
    unclean: BoolArray | None = None
    """Rows whose new leader was not in sync: acknowledged records may be lost (C7). None: no row."""
    recovering: BoolArray | None = None
    """Rows whose leader reports that it still recovers from an unclean election (KIP-704). None: unchanged."""
    elr: IntArray | None = None
    """Eligible leader replicas after the change (KIP-966, KRaft mode). None: unchanged."""
    last_known_elr: IntArray | None = None
    """The last leader of partitions without one (KIP-966, KRaft mode). None: unchanged."""
    moves: Mapping[int, Move | None] | None = None
    """Running moves after the change, by row (KRaft mode): started, changed, or (None) ended. Rows without an entry keep theirs."""
    directories: Mapping[int, Directories] | None = None
    """Directories of all replicas after the change, by row (KRaft mode). Rows without an entry keep theirs."""

    def recovering_after(self, before: BoolArray) -> BoolArray:
        """Return the rows whose leader recovers after the change: one that was not in sync does, until it reports the end."""
        reported = before if self.recovering is None else self.recovering
        return reported if self.unclean is None else reported | self.unclean

    def take(self, positions: IntArray) -> "PartitionStates":
        """Return the entries at some positions (indices into the columns, not row numbers)."""
        return PartitionStates(
            self.rows[positions],
            self.leader[positions],
            self.leader_epoch[positions],
            self.isr[positions],
            self.requests,
            None if self.replicas is None else self.replicas[positions],
            None if self.unclean is None else self.unclean[positions],
            None if self.recovering is None else self.recovering[positions],
            None if self.elr is None else self.elr[positions],
            None if self.last_known_elr is None else self.last_known_elr[positions],
            _in_rows(self.moves, self.rows[positions]),
            _in_rows(self.directories, self.rows[positions]),
        )


def _in_rows(by_row: Mapping[int, Value] | None, rows: IntArray) -> Mapping[int, Value] | None:
    return by_row and {row: by_row[row] for row in rows.tolist() if row in by_row}


@dataclass(frozen=True, slots=True, eq=False)
class PartitionsReplayed:
    """Whole states of partitions, from records of the log (KRaft mode). Partitions that are unknown are added."""

    topics: Sequence[tuple[str, int]]
    """Names, and how many of the partitions each has, which follow one another."""
    partitions: IntArray
    """Partition ids, each once in a topic: shape (n,), as all columns; lists have shape (n, longest) and are padded with -1."""
    replicas: IntArray
    isr: IntArray
    leader: IntArray
    leader_epoch: IntArray
    partition_epoch: IntArray
    recovering: BoolArray
    elr: IntArray
    last_known_elr: IntArray
    directory_ids: Sequence[UUID]
    directories: IntArray
    """The directory of each replica: a place in `directory_ids`."""
    moves: Mapping[int, Move]
    """Running moves by place in the columns; the others have none."""


@dataclass(frozen=True, slots=True, eq=False)
class StatesReplayed:
    """New states of known partitions, from records of the log (KRaft mode). Columns over the same rows; each raises the partition epoch by 1."""

    rows: IntArray
    leader: IntArray
    leader_epoch: IntArray
    isr: IntArray
    recovering: BoolArray
    elr: IntArray
    last_known_elr: IntArray


@dataclass(frozen=True, slots=True)
class ElrCleared:
    """The eligible leader replicas of a topic, or (None) of all topics, are discarded (KRaft mode): min.insync.replicas changed."""

    topic: str | None


@dataclass(frozen=True, slots=True, eq=False)
class StatesObserved:
    """Partition states as found written, by this controller or another process."""

    rows: IntArray
    leader: IntArray
    leader_epoch: IntArray
    isr: IntArray
    partition_epoch: IntArray
    controller_epoch: IntArray
    recovering: BoolArray


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
class BrokerUnregistered:
    """A broker never returns. In ZooKeeper mode nothing waits for the stray logs on it any longer, in memory only."""

    broker: int
    broker_epoch: int = NO_EPOCH
    """Epoch of the registration that ends (KRaft mode)."""


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


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    """A topic was deleted."""

    topic: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class ProducerIdsAllocated:
    """The producer ids from first to last were allocated to a broker."""

    broker: int
    first: int
    last: int
    broker_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True)
class ProducerIdsObserved:
    """End of the last block of producer ids as found written."""

    block_end: int


Change = (
    BrokersObserved
    | BrokerRegistered
    | BrokerChanged
    | HeartbeatObserved
    | ShutdownOffsetObserved
    | BrokerSuspected
    | BrokerLeaving
    | ConfigsChanged
    | FeatureLevelChanged
    | ElrCleared
    | ControlledShutdownStarted
    | UncleanElectionObserved
    | TopicDeletionObserved
    | TopicAdded
    | PartitionsAdded
    | PartitionStates
    | PartitionsReplayed
    | StatesReplayed
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
