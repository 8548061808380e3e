"""Model of the written state: the plain twin of ZooKeeper behind the shell's store.

Every znode that the controller writes has a version, every write is conditional on the version that it was decided on (`versions` of the
active controller), and a controller that was deposed writes nothing. Paths, bytes, transactions and lost connections are omitted.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from uuid import UUID

import numpy as np

from controller_core.model import NO_EPOCH, Broker, Cluster, Origin, Replicas, TopicPartition
from controller_core.model.changes import (
    Change,
    PartitionsAdded,
    PartitionStates,
    ProducerIdsAllocated,
    ProducerIdsObserved,
    TopicAdded,
    TopicRemoved,
)
from controller_core.model.columns import pad, unpad
from controller_core.model.events import PRODUCER_IDS
from controller_core.model.settings import BrokerDefault, TopicDeletion
from controller_core.model.zookeeper_changes import (
    AssignmentRestored,
    BrokersObserved,
    DeletionDequeued,
    DeletionQueued,
    ElectionRequestsProcessed,
    MovesFinished,
    MovesStarted,
    PendingReassignmentRequestsChanged,
    StatesObserved,
    TopicIdAssigned,
)
from controller_core.model.zookeeper_events import ElectionRequestsRead, ReassignmentRequestsRead, StoredTopic
from controller_core.zookeeper_mode.observed_topics import build_topic_added, build_topic_observed
from controller_core.zookeeper_mode.transitions import apply
from controller_core.zookeeper_mode.znode_versions import NO_ZNODE, ZnodeVersions

UNCLEAN = "unclean.leader.election.enable"


class DeposedError(Exception):
    """The fence does not hold: another controller raised the controller epoch (C5)."""


@dataclass(frozen=True)
class WrittenState:
    """One partition's state znode."""

    leader: int
    leader_epoch: int
    isr: Replicas
    controller_epoch: int
    version: int
    is_recovering: bool = False


@dataclass(frozen=True)
class WrittenTopic:
    """One topic's znode, and its configuration."""

    topic_id: UUID | None
    replicas: dict[int, Replicas]
    adding: dict[int, Replicas] = field(default_factory=dict)
    removing: dict[int, Replicas] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)
    version: int = 0


@dataclass(frozen=True)
class WrittenProducerIds:
    """Znode of the last block of producer ids."""

    block_end: int = -1
    version: int = NO_ZNODE


@dataclass
class Outcome:
    """Result of one change: the part that was written, and the state that differs from the known one."""

    committed: Change | None
    stale_rows: tuple[int, ...] = ()
    stale_topic: str = ""
    is_unknown: bool = False
    """The connection was lost: whether the change was written is unknown."""

    @property
    def is_whole(self) -> bool:
        """Whether the whole change was written."""
        return not (self.stale_rows or self.stale_topic or self.is_unknown)

    def lost(self) -> "Outcome":
        """Return an outcome with only the state to be read again, as when the result of a write is lost."""
        match self.committed:
            case PartitionStates():
                return Outcome(None, (*self.stale_rows, *self.committed.rows.tolist()), is_unknown=True)
            case TopicAdded(origin=Origin.REQUESTED | Origin.REPAIRED):
                return Outcome(None, stale_topic=self.committed.name, is_unknown=True)
            case TopicIdAssigned():
                return Outcome(None, stale_topic=self.committed.topic, is_unknown=True)
            case PartitionsAdded(origin=Origin.REQUESTED) | MovesStarted() | MovesFinished() | AssignmentRestored():
                return Outcome(None, stale_topic=self.committed.topic, is_unknown=True)
            case DeletionQueued(origin=Origin.REQUESTED) | DeletionDequeued() | ProducerIdsAllocated():
                return Outcome(None, is_unknown=True)
            case TopicRemoved(origin=Origin.REQUESTED):
                return Outcome(None, is_unknown=True)
            case PendingReassignmentRequestsChanged(origin=Origin.REQUESTED) | ElectionRequestsProcessed():
                return Outcome(None)
            case _:
                return self  # Only in memory: there is no write.


class Written:
    """All state that outlives a controller."""

    def __init__(self) -> None:
        self.controller_epoch = 0
        self.versions = ZnodeVersions()
        """Versions of the znodes of the active controller's state."""
        self.topics: dict[str, WrittenTopic] = {}
        self.states: dict[TopicPartition, WrittenState] = {}
        self.deletions: list[str] = []
        self.producer_ids = WrittenProducerIds()
        self.reassignment_requests: ReassignmentRequestsRead | None = None
        self.election_requests: ElectionRequestsRead | None = None
        self.unclean_default: bool | None = None
        """The brokers' dynamic default of `unclean.leader.election.enable`; None if not set."""
        self.topic_deletion = TopicDeletion.ENABLED
        """`delete.topic.enable` as brokers report it some time after a takeover."""

    def take_place(self, controller_id: int) -> Cluster:
        """Raise the controller epoch: the earlier controllers' writes are refused from now on."""
        self.controller_epoch += 1
        self.versions = ZnodeVersions()
        return Cluster(controller_id, self.controller_epoch)

    def load(self, cluster: Cluster, brokers: Iterable[Broker]) -> None:
        """Read everything, in the order of the shell's loading."""
        apply(cluster, BrokersObserved(tuple(brokers)))
        for name in self.topics:
            added = build_topic_added(cluster, self.record(name), repaired=False)
            apply(cluster, added)
            self.versions.note(added, self.topics[name].version)
        if (states := self.states_of(cluster, cluster.columns.used().tolist())) is not None:
            apply(cluster, states)
        cluster.unclean_topics = {
            name: topic.configs[UNCLEAN] == "true" for name, topic in self.topics.items() if UNCLEAN in topic.configs
        }
        if self.unclean_default is not None:
            cluster.unclean_defaults = {BrokerDefault.DYNAMIC: self.unclean_default}
        cluster.last_producer_id = self.producer_ids.block_end
        self.versions.note(ProducerIdsObserved(self.producer_ids.block_end), self.producer_ids.version)
        queued = tuple(name for name in self.deletions if name in cluster.topics)
        apply(cluster, DeletionQueued(queued, Origin.OBSERVED))

    def allows_unclean(self, name: str) -> bool:
        """Whether a topic's configuration, or else the default, allows a leader from outside the ISR."""
        own = self.topics[name].configs.get(UNCLEAN)
        return bool(self.unclean_default) if own is None else own == "true"

    def record(self, name: str) -> StoredTopic:
        """Read one topic."""
        topic = self.topics[name]
        return StoredTopic(
            name,
            topic.topic_id,
            dict(topic.replicas),
            dict(topic.adding),
            dict(topic.removing),
            topic.version,
            dict(topic.configs),
        )

    def found(self, cluster: Cluster, outcome: Outcome) -> list[tuple[Change, int]]:
        """Read the known state again for which a write was refused; returns it with the versions of its znodes."""
        changes: list[Change] = []
        versions: dict[str, int] = {}
        if outcome.stale_rows and (states := self.states_of(cluster, outcome.stale_rows)) is not None:
            changes.append(states)
        if (name := outcome.stale_topic) in cluster.topics:
            if name in self.topics:
                found = self.record(name)
                versions[name] = found.version
                changes.append(build_topic_observed(found))
            else:
                changes.append(TopicRemoved(name, Origin.OBSERVED))
        if outcome.is_unknown:
            versions[PRODUCER_IDS] = self.producer_ids.version
            changes.append(ProducerIdsObserved(self.producer_ids.block_end))
        return [(change, self.versions.expected(change, versions)) for change in changes]

    def states_of(self, cluster: Cluster, rows: Iterable[int]) -> StatesObserved | None:
        """Read the states of those rows that have one."""
        there = [(row, state) for row in rows if (state := self.states.get(cluster.name_of(row))) is not None]
        if not there:
            return None
        columns = [
            np.array(column, dtype=np.int32)
            for column in zip(
                *((row, s.leader, s.leader_epoch, s.version, s.controller_epoch) for row, s in there), strict=True
            )
        ]
        rows_there, leader, leader_epoch, version, controller_epoch = columns
        return StatesObserved(
            rows_there,
            leader,
            leader_epoch,
            pad([state.isr for _, state in there]),
            version,
            controller_epoch,
            np.array([state.is_recovering for _, state in there]),
        )

    def commit(self, cluster: Cluster, change: Change, expected: int) -> Outcome:
        """Write one change as far as its versions match. Raises DeposedError."""
        if cluster.controller_epoch != self.controller_epoch:
            raise DeposedError
        if self.versions.is_stale(change, expected):
            return Outcome(None)
        match change:
            case PartitionStates():
                return self._commit_states(cluster, change)
            case TopicAdded(origin=Origin.REQUESTED | Origin.REPAIRED):
                return self._commit_topic(change, expected)
            case PartitionsAdded(origin=Origin.REQUESTED):
                added = dict(zip(change.partitions.tolist(), map(unpad, change.replicas), strict=True))
                return self._assign(change.topic, expected, change, added, {}, {})
            case TopicIdAssigned():
                return self._assign_id(change, expected)
            case AssignmentRestored():
                return self._restore(cluster, change, expected)
            case MovesStarted():
                union = {partition: move.replicas for partition, move in change.moves.items()}
                adding = {partition: move.adding for partition, move in change.moves.items()}
                removing = {partition: move.removing for partition, move in change.moves.items()}
                return self._assign(change.topic, expected, change, union, adding, removing)
            case MovesFinished():
                nothing: dict[int, Replicas] = dict.fromkeys(change.replicas, ())
                return self._assign(change.topic, expected, change, dict(change.replicas), nothing, nothing)
            case DeletionQueued(origin=Origin.REQUESTED):
                self.deletions += [name for name in change.topics if name not in self.deletions]
            case DeletionDequeued():
                self.deletions = [name for name in self.deletions if name not in change.names]
            case TopicRemoved(origin=Origin.REQUESTED):
                if change.topic in self.topics:
                    self.remove(change.topic)
                self.deletions = [name for name in self.deletions if name != change.topic]
            case PendingReassignmentRequestsChanged(origin=Origin.REQUESTED):
                return self._leave_requests(change, expected)
            case ElectionRequestsProcessed():
                if self.election_requests is None or self.election_requests.version != expected:
                    return Outcome(None)
                self.election_requests = None
            case ProducerIdsAllocated():
                assert self.producer_ids.version == expected
                self.producer_ids = WrittenProducerIds(change.last, self.producer_ids.version + 1)
        return Outcome(change)

    def _leave_requests(self, change: PendingReassignmentRequestsChanged, expected: int) -> Outcome:
        """Write the list of requested moves; a refused write has no result, since the watch causes a read."""
        if self.reassignment_requests is None or self.reassignment_requests.version != expected:
            return Outcome(None)
        left = ReassignmentRequestsRead(dict(change.targets), expected + 1)
        self.reassignment_requests = left if left.targets else None
        return Outcome(change)

    def remove(self, name: str) -> None:
        """Remove all of a topic."""
        del self.topics[name]
        self.states = {partition: state for partition, state in self.states.items() if partition.topic != name}

    def _commit_states(self, cluster: Cluster, change: PartitionStates) -> Outcome:
        stale: list[int] = []
        written: list[int] = []
        for place, row in enumerate(change.rows.tolist()):
            name = cluster.name_of(row)
            current = self.states.get(name)
            version = NO_EPOCH if current is None else current.version
            if name.topic not in self.topics or version != cluster.columns.partition_epoch[row]:
                stale.append(row)
                continue
            written.append(place)
            self.states[name] = WrittenState(
                int(change.leader[place]),
                int(change.leader_epoch[place]),
                unpad(change.isr[place]),
                cluster.controller_epoch,
                version + 1,
                is_recovering=_recovers(change, place, current),
            )
        if not stale:
            return Outcome(change)
        return Outcome(change.take(np.array(written, dtype=np.int32)) if written else None, tuple(stale))

    def _commit_topic(self, change: TopicAdded, expected: int) -> Outcome:
        current = self.topics.get(change.name)
        as_thought = current is None if change.origin is Origin.REQUESTED else current is not None
        if not as_thought or (current is not None and current.version != expected):
            return Outcome(None, stale_topic=change.name)
        self.topics[change.name] = WrittenTopic(
            change.topic_id,
            dict(zip(change.partitions.tolist(), map(unpad, change.replicas), strict=True)),
            {partition: move.adding for partition, move in change.moves.items()},
            {partition: move.removing for partition, move in change.moves.items()},
            dict(change.configs) if current is None else current.configs,
            0 if current is None else current.version + 1,
        )
        return Outcome(change)

    def _assign_id(self, change: TopicIdAssigned, expected: int) -> Outcome:
        current = self.topics.get(change.topic)
        if current is None or current.version != expected:
            return Outcome(None, stale_topic=change.topic)
        self.topics[change.topic] = replace(current, topic_id=change.topic_id, version=current.version + 1)
        return Outcome(change)

    def _restore(self, cluster: Cluster, change: AssignmentRestored, expected: int) -> Outcome:
        """Write a topic's assignment as a controller knows it."""
        current, known = self.topics.get(change.topic), cluster.topics[change.topic]
        if current is None or current.version != expected:
            return Outcome(None, stale_topic=change.topic)
        replicas = {cluster.name_of(row).partition: cluster.columns.replicas_of(row) for row in known.rows.tolist()}
        moves = {
            cluster.name_of(row).partition: cluster.moves[row] for row in known.rows.tolist() if row in cluster.moves
        }
        adding = _without_empty({partition: move.adding for partition, move in moves.items()})
        removing = _without_empty({partition: move.removing for partition, move in moves.items()})
        restored = replace(current, replicas=replicas, adding=adding, removing=removing)
        self.topics[change.topic] = replace(restored, version=expected + 1)
        return Outcome(change)

    def _assign(
        self,
        name: str,
        expected: int,
        change: Change,
        replicas: dict[int, Replicas],
        adding: dict[int, Replicas],
        removing: dict[int, Replicas],
    ) -> Outcome:
        """Write a topic's assignment with some changed partitions."""
        current = self.topics.get(name)
        if current is None or current.version != expected:
            return Outcome(None, stale_topic=name)
        self.topics[name] = replace(
            current,
            replicas=current.replicas | replicas,
            adding=_without_empty(current.adding | adding),
            removing=_without_empty(current.removing | removing),
            version=current.version + 1,
        )
        return Outcome(change)


def _recovers(change: PartitionStates, place: int, current: WrittenState | None) -> bool:
    """KIP-704: an unclean leader recovers until it reports the end, also after another election."""
    if change.unclean is not None and change.unclean[place]:
        return True
    if change.recovering is not None:
        return bool(change.recovering[place])
    return current is not None and current.is_recovering


def _without_empty(lists: dict[int, Replicas]) -> dict[int, Replicas]:
    return {partition: replicas for partition, replicas in lists.items() if replicas}
