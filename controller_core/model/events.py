"""Events: everything that the controller can learn or be asked, as values.

Reads of ZooKeeper are levels ("these brokers are registered now"), never edges, so a lost or doubled watch changes nothing.
Random numbers come in with the request, so that deciding the same event twice gives the same answer.

Leaves out how an event was learnt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from controller_core.model import scope
from controller_core.model.broker import Broker
from controller_core.model.changes import BrokerDefault, StatesObserved, TopicDeletion
from controller_core.model.ids import NO_EPOCH, TopicPartition
from controller_core.model.move import Replicas
from controller_core.model.quota import MutationAllowance
from controller_core.model.scope import Scope


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A topic as found written."""

    name: str
    topic_id: UUID | None
    replicas: Mapping[int, Replicas]
    adding: Mapping[int, Replicas] = field(default_factory=dict)
    removing: Mapping[int, Replicas] = field(default_factory=dict)
    version: int = 0
    configs: Mapping[str, str] = field(default_factory=dict)
    new_id: UUID | None = None
    """Drawn by the shell for a topic found without an id; None where it must not get one."""


@dataclass(frozen=True, slots=True)
class Activated:
    """This controller holds the cluster and has read all of it."""

    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class BrokersRead:
    """These brokers are registered now."""

    brokers: tuple[Broker, ...]
    unreachable: tuple[Broker, ...] = ()
    """Registered without the inter-broker listener: the controller cannot send them requests."""
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class TopicsRead:
    """Topics that were not known are there; names that were known are gone."""

    added: tuple[TopicRecord, ...]
    removed: tuple[str, ...]
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """Known topics' assignments as found written by somebody else."""

    topics: tuple[TopicRecord, ...]
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class AssignTopicIds:
    """Give topics without an id one (KafkaController.processTopicIds)."""

    ids: Mapping[str, UUID]
    """By topic; drawn by the shell."""

    @property
    def scope(self) -> Scope:
        """The topics named: their znodes are written."""
        return scope.topics(self.ids)


@dataclass(frozen=True, slots=True)
class DeletionsRead:
    """Names queued for deletion by someone else."""

    names: tuple[str, ...]
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class TopicDeletionRead:
    """Brokers' setting of `delete.topic.enable`."""

    setting: TopicDeletion
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class ResumeTopics:
    """Return topics to service: their deletion was withdrawn, and brokers may have stopped or deleted replicas."""

    topics: frozenset[str]

    @property
    def scope(self) -> Scope:
        """The topics named."""
        return scope.topics(self.topics)


@dataclass(frozen=True, slots=True, eq=False)
class IsrChangesRead:
    """Brokers below 2.7 told by notices (their paths) that they wrote ISRs; states: those that are news, None for none."""

    states: StatesObserved | None
    notifications: tuple[str, ...]
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class LogDirsFailed:
    """Brokers told by notices (their paths) that a log directory of theirs failed (KIP-112)."""

    brokers: tuple[int, ...]
    notifications: tuple[str, ...]
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class ReassignmentRequestsRead:
    """Moves are wanted that somebody wrote down in ZooKeeper itself, as tools did before KIP-455."""

    targets: Mapping[TopicPartition, Replicas]
    version: int
    """Of the list that they stand in; NO_EPOCH where there is none."""
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class ReviewReassignmentRequests:
    """Take out of the list of moves what is done, refused, or overtaken by another request."""

    found: ReassignmentRequestsRead | None = None
    """The list as it was read just now; None: as it is known."""
    scope: Scope = field(default_factory=lambda: scope.topics([REASSIGNMENT_REQUESTS]))


@dataclass(frozen=True, slots=True)
class ElectionRequestsRead:
    """Preferred leaders are wanted that somebody wrote down in ZooKeeper itself, as tools did before KIP-183."""

    partitions: tuple[TopicPartition, ...]
    version: int
    """Of the list that they stand in."""
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class RemoveElectionRequests:
    """Take away the list of elections, which were held as far as they could be."""

    found: ElectionRequestsRead
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class UncleanElectionRead:
    """What is set now of `unclean.leader.election.enable`; None where nothing is."""

    topics: Mapping[str, bool | None] = field(default_factory=dict)
    defaults: Mapping[BrokerDefault, bool | None] = field(default_factory=dict)
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class RepairPartitions:
    """Mend partitions, of these topics or (None) of all, that have no live leader or dead brokers in the ISR."""

    topics: frozenset[str] | None = None

    @property
    def scope(self) -> Scope:
        """The topics named."""
        return scope.ALL if self.topics is None else scope.topics(self.topics)


@dataclass(frozen=True, slots=True)
class RepairAssignments:
    """Look for partitions that name the controller as a replica, and move these away from it."""

    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class AdvanceMoves:
    """Look at running moves, of these topics or (None) of all, and take each as far as it can go."""

    topics: frozenset[str] | None = None

    @property
    def scope(self) -> Scope:
        """The topics named."""
        return scope.ALL if self.topics is None else scope.topics(self.topics)


@dataclass(frozen=True, slots=True)
class AdvanceDeletions:
    """Look at queued deletions and take each as far as it can go."""

    retry: bool = False
    """Try again what a broker refused. Not by every look: its answer brings the next look, so that would never rest."""
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class StopReplicaAnswered:
    """A broker answered a StopReplica that deletes. Partitions with an error still hold their log."""

    broker: int
    done: tuple[TopicPartition, ...]
    failed: Mapping[TopicPartition, str] = field(default_factory=dict)
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    """As the request carried them: the answer to an earlier request than the last one does not count."""
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class LeaderAndIsrAnswered:
    """A broker (of that epoch) answered a LeaderAndIsr: some replicas are or were in a failed log directory (KIP-112), or refused."""

    broker: int
    broker_epoch: int
    offline: tuple[TopicPartition, ...]
    online: tuple[TopicPartition, ...]
    refused: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Replicas that the broker cannot take on for another reason, with the name of the error (INCONSISTENT_TOPIC_ID)."""
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    """Ids of the topics of `refused` and `taken`, as the request carried them. Missing: the topic has no id."""
    taken: tuple[TopicPartition, ...] = ()
    """Partitions that this broker leads or follows, and whose replica another broker refuses."""
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class LeaderAndIsrRejected:
    """A broker refused a LeaderAndIsr as a whole: it may have taken none of it, some of it, or half of a partition."""

    broker: int
    leader_epochs: Mapping[TopicPartition, int]
    """As the request carried them: a partition that was told under a higher one since needs nothing."""

    @property
    def scope(self) -> Scope:
        """The partitions named."""
        return scope.partitions(self.leader_epochs)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """One topic of a CreateTopics request."""

    name: str
    topic_id: UUID
    """Drawn by the shell; used when the topic is made."""
    partitions: int = -1
    """-1: the cluster's default (num.partitions)."""
    replication_factor: int = -1
    """-1: the cluster's default (default.replication.factor)."""
    assignment: Mapping[int, Replicas] = field(default_factory=dict)
    """Replicas by partition id; then partitions and replication factor are -1."""
    configs: Mapping[str, str | None] = field(default_factory=dict)
    start_index: int = 0
    """Drawn by the shell; reduced modulo the number of brokers."""
    replica_shift: int = 0
    """Drawn by the shell."""


@dataclass(frozen=True, slots=True)
class CreateTopics:
    """Create topics, each on its own: one that is refused stops no other."""

    topics: tuple[NewTopic, ...]
    validate_only: bool = False
    default_partitions: int = 1
    default_replication_factor: int = 1
    allowance: MutationAllowance | None = None
    """What the caller's mutation quota allows; None: there is no quota."""

    @property
    def scope(self) -> Scope:
        """The topics named."""
        return scope.topics(topic.name for topic in self.topics)


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    """Queue topics for deletion."""

    names: tuple[str, ...]
    allowance: MutationAllowance | None = None
    """What the caller's mutation quota allows; None: there is no quota."""
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """One topic of a CreatePartitions request."""

    topic: str
    count: int
    """Partitions in all, after the change."""
    assignments: Sequence[Replicas] | None = None
    """Replicas of each added partition; None: placed by the controller."""
    start_index: int = 0
    replica_shift: int = 0


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    """Add partitions to topics, each on its own."""

    topics: tuple[NewPartitions, ...]
    validate_only: bool = False
    allowance: MutationAllowance | None = None
    """What the caller's mutation quota allows; None: there is no quota."""

    @property
    def scope(self) -> Scope:
        """The topics named."""
        return scope.topics(topic.topic for topic in self.topics)


@dataclass(frozen=True, slots=True)
class AlterReassignments:
    """Start, change or (None) cancel moves, each on its own (KIP-455)."""

    targets: Mapping[TopicPartition, Replicas | None]
    cancelled: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    """Where an earlier attempt at this event returned moves to: its write was refused in part, or is done and was not heard of."""

    @property
    def scope(self) -> Scope:
        """The topics named: a move writes the topic's znode."""
        return scope.topics(partition.topic for partition in self.targets)


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """Elect leaders for partitions (None: for all): preferred ones, or from outside the ISR where none is left in it."""

    partitions: tuple[TopicPartition, ...] | None
    unclean: bool = False
    elected: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Leader epochs under which an earlier attempt at this event elected: it was refused in part, and may be done in part."""

    @property
    def scope(self) -> Scope:
        """The partitions named."""
        return scope.ALL if self.partitions is None else scope.partitions(self.partitions)


@dataclass(frozen=True, slots=True)
class BalanceLeaders:
    """Give brokers the partitions back that prefer them, where they lack more of these than is allowed."""

    imbalance_percentage: int = 10
    """`leader.imbalance.per.broker.percentage`: partitions that prefer a broker and that it does not lead, of all of them."""
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class IsrChange:
    """A leader's wish for one partition's ISR."""

    partition: TopicPartition
    leader_epoch: int
    isr: Replicas
    partition_epoch: int
    is_recovering: bool = False
    """The leader recovers from an unclean election (KIP-704)."""


@dataclass(frozen=True, slots=True)
class AlterPartition:
    """A broker asks for other ISRs of partitions that it leads (KIP-497)."""

    broker: int
    broker_epoch: int
    changes: tuple[IsrChange, ...]

    @property
    def scope(self) -> Scope:
        """The partitions named."""
        return scope.partitions(change.partition for change in self.changes)


@dataclass(frozen=True, slots=True)
class ControlledShutdown:
    """A broker asks to have its leaderships taken before it exits (KIP-143, KIP-380)."""

    broker: int
    broker_epoch: int = NO_EPOCH
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class ReplaceStaleLogs:
    """Delete what a broker holds of earlier topics in place of replicas that it refuses, where that is safe."""

    broker: int
    broker_epoch: int
    partitions: tuple[TopicPartition, ...]
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class StrayLogsFound:
    """A broker (of that epoch) lists logs that no assignment explains; listed twice, some time apart."""

    broker: int
    broker_epoch: int
    partitions: tuple[TopicPartition, ...]
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class UnregisterBroker:
    """An operator declares that a broker never returns (KIP-631's UnregisterBroker)."""

    broker: int
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class AllocateProducerIds:
    """A broker asks for a block of producer ids (KIP-730)."""

    broker: int
    broker_epoch: int
    scope: Scope = field(default_factory=lambda: scope.topics([PRODUCER_IDS]))


PRODUCER_IDS = "/latest_producer_id_block"
"""The scope of producer ids: no topic can have this name."""
REASSIGNMENT_REQUESTS = "/admin/reassign_partitions"
"""The scope of the list of moves that are asked for in ZooKeeper itself."""

Event = (
    Activated
    | BrokersRead
    | TopicsRead
    | TopicsChanged
    | AssignTopicIds
    | DeletionsRead
    | TopicDeletionRead
    | ResumeTopics
    | IsrChangesRead
    | LogDirsFailed
    | UncleanElectionRead
    | ReassignmentRequestsRead
    | ReviewReassignmentRequests
    | ElectionRequestsRead
    | RemoveElectionRequests
    | RepairPartitions
    | RepairAssignments
    | AdvanceMoves
    | AdvanceDeletions
    | StopReplicaAnswered
    | LeaderAndIsrAnswered
    | LeaderAndIsrRejected
    | ReplaceStaleLogs
    | StrayLogsFound
    | UnregisterBroker
    | CreateTopics
    | DeleteTopics
    | CreatePartitions
    | AlterReassignments
    | ElectLeaders
    | BalanceLeaders
    | AlterPartition
    | ControlledShutdown
    | AllocateProducerIds
)
