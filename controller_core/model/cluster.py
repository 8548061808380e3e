"""In-memory state of the cluster: brokers, topics, partitions, running moves and deletions.

Only `apply` of the mode (`zookeeper_mode.transitions`, `quorum_mode.transitions`) changes it; decisions read it. One event loop owns it, so
it has no locks.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np

from controller_core.model.broker import Broker, BrokerProgress
from controller_core.model.columns import BoolArray, IntArray, PartitionColumns, any_of, unpad
from controller_core.model.ids import NO_BROKER, TopicPartition
from controller_core.model.mode_rules import ZOOKEEPER_RULES, ModeRules, RestartPolicy
from controller_core.model.move import Move, Replicas
from controller_core.model.settings import DEFAULT_MIN_ISR, BrokerDefault, TopicDeletion
from kafka_metadata.directory_ids import MIGRATING_DIRECTORY

MAX_DELETED_TOPICS = 10_000
"""Names of deleted topics that are remembered, the latest ones. Logs of topics with older names are only reported."""


@dataclass(slots=True)
class Topic:
    """A topic and the rows of its partitions in the columns."""

    name: str
    topic_id: UUID | None
    """None for topics created before topic ids (inter.broker.protocol.version below 2.8)."""
    index: int
    rows: IntArray
    """Rows in the order of partition ids; these are 0, 1, 2, … unless the znode was edited manually."""


@dataclass(slots=True)
class Deletion:
    """A topic queued for deletion (kafka.controller.TopicDeletionManager)."""

    waiting: dict[int, set[int]] = field(default_factory=dict)
    """Partitions by broker id: those whose deletion the broker has not confirmed."""
    started: bool = False
    blocked: str = ""
    """Why the deletion cannot continue (a dead replica, a running move, a refusal); empty if it can."""
    refused: bool = False
    """Whether a broker refused: the deletion is then retried only by events that request a retry, not by every check."""


NO_ROW = -1
"""Row of a partition that a topic does not have."""

STEP_ROWS = 5_000
"""Partitions that one decision of KRaft mode changes when a broker leaves or returns: about 15 ms in a cluster of a million partitions."""


class Cluster:
    """State of one Kafka cluster. `brokers` are the registered ones; partition states are in `columns`."""

    def __init__(self, controller_id: int, controller_epoch: int, rules: ModeRules = ZOOKEEPER_RULES) -> None:
        self.controller_id = controller_id
        self.controller_epoch = controller_epoch
        self.rules = rules
        self.brokers: dict[int, Broker] = {}
        self.unreachable: dict[int, Broker] = {}
        """Brokers registered without the inter-broker listener. They count as offline: no request can be sent to them."""
        self.shutting_down: set[int] = set()
        """Brokers in controlled shutdown, and brokers whose partitions are taken from them in several steps."""
        self.fenced: set[int] = set()
        """Registered brokers that are out of service. None in ZooKeeper mode."""
        self.suspected: set[int] = set()
        """Brokers whose connection with their heartbeats ended: they are elected only where no other replica can lead."""
        self.progress: dict[int, BrokerProgress] = {}
        """By broker, in the active controller of KRaft mode."""
        self.cluster_id = ""
        self.restarts = RestartPolicy()
        self.step_rows = STEP_ROWS
        self.features: dict[str, int] = {}
        """Levels of features in KRaft mode; those at level 0 are missing."""
        self.min_isr_topics: dict[str, int] = {}
        """`min.insync.replicas` per topic in KRaft mode; topics without an entry use the default."""
        self.min_isr_default: int | None = None
        """`min.insync.replicas` of the default of all brokers in KRaft mode; None: not set."""
        self.directory_ids: list[UUID] = []
        """Ids of log directories, by their numbers in the columns."""
        self._directory_numbers: dict[int, int] = {}
        """By the id as a number, which is found in a fifth of the time: a snapshot of a million partitions has three million."""
        self.topics: dict[str, Topic] = {}
        self.columns = PartitionColumns()
        self.moves: dict[int, Move] = {}
        self.stray_replicas: dict[int, set[int]] = {}
        """By row: brokers outside the assignment that may still have a log of the partition, and act as its leader. They were
        offline when the partition moved, or their logs were listed."""
        self.offline_replicas: dict[int, set[int]] = {}
        """By row: live brokers whose replica is in a failed log directory, or refused while another broker accepted its replica."""
        self.refused_replicas: dict[int, dict[int, str]] = {}
        """By row: live brokers that refuse the replica, with the error of their response."""
        self.corrected_rows: set[int] = set()
        """Rows whose written ISR or leader contains a non-replica: corrected in memory, and still to be written."""
        self.deleted_topics: dict[str, None] = {}
        """Topics that this controller deleted in this term, oldest first: a log with such a name and another id is garbage."""
        self.reassignment_requests: dict[TopicPartition, Replicas] = {}
        """Running moves that were requested through `/admin/reassign_partitions`, with their targets."""
        self.deletions: dict[str, Deletion] = {}
        self.topic_deletion = TopicDeletion.UNKNOWN
        """`delete.topic.enable` of the brokers. No deletion starts before it is known to be true."""
        self.unclean_topics: dict[str, bool] = {}
        """`unclean.leader.election.enable` per topic; topics without an entry use the brokers' default."""
        self.unclean_defaults: dict[BrokerDefault, bool] = {}
        self.last_producer_id = -1
        """End of the last allocated block of producer ids (KIP-730); -1 if none is allocated."""
        self.metadata_version = 0
        """Incremented by every applied change that Metadata responses may show."""
        self._by_index: list[Topic | None] = []
        self._free_indices: list[int] = []
        self._names_by_id: dict[UUID, str] = {}

    def registered(self) -> AbstractSet[int]:
        """Ids of the registered brokers: assignments may contain them."""
        return self.brokers.keys()

    def unfenced(self) -> AbstractSet[int]:
        """Ids of the brokers in service: their replicas are online and they accept requests. In ZooKeeper mode all registered ones."""
        return self.brokers.keys() - self.fenced if self.fenced else self.brokers.keys()

    def may_lead(self) -> AbstractSet[int]:
        """Ids of the brokers that may get leaders and replicas: unfenced, and not in controlled shutdown."""
        return self.unfenced() - self.shutting_down

    def offline_at(self, row: int) -> AbstractSet[int]:
        """Live brokers whose replica of this row is offline: its log directory failed, or the broker refuses the replica."""
        return self.offline_replicas.get(row, frozenset())

    def set_offline(self, row: int, broker: int, *, is_offline: bool) -> None:
        """Count the replica of a live broker as offline, or no longer."""
        if is_offline:
            self.offline_replicas.setdefault(row, set()).add(broker)
        elif row in self.offline_replicas:
            self.offline_replicas[row].discard(broker)
            if not self.offline_replicas[row]:
                del self.offline_replicas[row]

    def refused_at(self, row: int) -> AbstractSet[int]:
        """Live brokers that refuse the replica of this row."""
        return self.refused_replicas.get(row, {}).keys()

    def row_of(self, name: str, partition: int) -> int | None:
        """Return a partition's row; None if there is no such partition."""
        topic = self.topics.get(name)
        if topic is None or partition < 0:
            return None
        if partition < len(topic.rows) and self.columns.partition[topic.rows[partition]] == partition:
            return int(topic.rows[partition])
        return next((row for row in topic.rows.tolist() if self.columns.partition[row] == partition), None)

    def rows_of(self, topic: Topic, partitions: IntArray) -> IntArray:
        """Return the rows of partitions of a topic whose rows are in their order; NO_ROW for those that it does not have."""
        if not len(topic.rows):
            return np.full_like(partitions, NO_ROW)
        numbers = self.columns.partition[topic.rows]
        places = np.minimum(np.searchsorted(numbers, partitions), len(numbers) - 1)
        return np.where(numbers[places] == partitions, topic.rows[places], NO_ROW).astype(np.int32, copy=False)

    def topic_at(self, row: int) -> Topic:
        """Return the topic of a row that is in use."""
        topic = self._by_index[int(self.columns.topic[row])]
        assert topic is not None, f"row {row} belongs to no topic"
        return topic

    def topics_at(self, indices: IntArray) -> list[Topic]:
        """Return the topics of some indices in the columns, all of which are in use."""
        topics = [self._by_index[index] for index in indices.tolist()]
        assert all(topics), "a row belongs to no topic"
        return [topic for topic in topics if topic is not None]

    def name_of(self, row: int) -> TopicPartition:
        """Return the name of the partition in a row."""
        return TopicPartition(self.topic_at(row).name, int(self.columns.partition[row]))

    def names_of(self, rows: IntArray) -> list[TopicPartition]:
        """Return the names of the partitions in many rows."""
        topics = self.topics_at(self.columns.topic[rows])
        numbers = self.columns.partition[rows].tolist()
        return [TopicPartition(topic.name, number) for topic, number in zip(topics, numbers, strict=True)]

    def topics_by_index(self) -> list[Topic]:
        """Return all topics in the order of their indices in the columns."""
        return [topic for topic in self._by_index if topic is not None]

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return a topic's name by its id."""
        return self._names_by_id.get(topic_id)

    def by_topic(self, rows: Iterable[int]) -> Iterator[tuple[Topic, list[int]]]:
        """Group rows by topic, in order of first appearance."""
        listed = list(rows)
        groups: dict[int, list[int]] = {}
        for row, index in zip(listed, self.columns.topic[listed].tolist(), strict=True):
            groups.setdefault(index, []).append(row)
        for rows_of_topic in groups.values():
            yield self.topic_at(rows_of_topic[0]), rows_of_topic

    def is_moving(self, topic: Topic) -> bool:
        """Whether a move of any of the topic's partitions is running."""
        return bool(self.moves) and any(row in self.moves for row in topic.rows.tolist())

    def is_moving_to(self, name: TopicPartition, target: Replicas) -> bool:
        """Whether a move of a partition to exactly this target is running."""
        row = self.row_of(*name)
        move = None if row is None else self.moves.get(row)
        return move is not None and move.target == target

    def is_pending_deletion(self, name: str) -> bool:
        """Whether a topic is permanently out of service because of its deletion: no leader is elected for it (C10).

        A deletion waits for running moves. Until these end the topic is in service, since they need a leader and a growing ISR.
        It is also in service while brokers do not report `delete.topic.enable`, which may last.
        """
        deletion, topic = self.deletions.get(name), self.topics.get(name)
        if deletion is None or topic is None:
            return False
        if deletion.started:
            return True
        return self.topic_deletion is not TopicDeletion.NOT_REPORTED and not self.is_moving(topic)

    def unclean_allowed(self, rows: IntArray) -> BoolArray:
        """Return for each row whether a replica outside the ISR may lead if the ISR has no live member (C7): shape (rows,)."""
        default = self.unclean_defaults.get(BrokerDefault.STATIC, False)
        allowed = np.full(len(self._by_index), self.unclean_defaults.get(BrokerDefault.DYNAMIC, default))
        for name, is_allowed in self.unclean_topics.items():
            if (topic := self.topics.get(name)) is not None:
                allowed[topic.index] = is_allowed
        return allowed[self.columns.topic[rows]]

    def min_isr(self, rows: IntArray) -> IntArray:
        """Return `min.insync.replicas` of each row, at most the number of replicas of its topic's partition 0: shape (rows,)."""
        minimum = np.full(
            len(self._by_index), DEFAULT_MIN_ISR if self.min_isr_default is None else self.min_isr_default
        )
        for name, topic_minimum in self.min_isr_topics.items():
            if (topic := self.topics.get(name)) is not None:
                minimum[topic.index] = topic_minimum
        first = np.zeros(len(self._by_index), dtype=np.int32)
        for index in np.unique(self.columns.topic[rows]).tolist():
            topic = self._by_index[index]
            assert topic is not None, "a row belongs to no topic"
            first[index] = topic.rows[0]
        factor = (self.columns.replicas[first] != NO_BROKER).sum(axis=1)
        effective: IntArray = np.minimum(minimum, factor)[self.columns.topic[rows]].astype(np.int32)
        return effective

    def directory_number(self, directory: UUID) -> int:
        """Return the number of a log directory in the columns; a new one is added."""
        if (number := self._directory_numbers.get(directory.int)) is None:
            number = self._directory_numbers[directory.int] = len(self.directory_ids)
            self.directory_ids.append(directory)
        return number

    def rows_in_directories(self, broker: int, directories: AbstractSet[UUID]) -> IntArray:
        """Return the rows whose replica on a broker is in one of the directories."""
        columns = self.columns
        rows = columns.hosted_by(columns.flags([broker]))
        if columns.directories is None:
            return rows[:0]
        width = min(columns.directories.shape[1], columns.width)
        numbers, replicas = columns.directories[rows, :width], columns.replicas[rows, :width]
        is_meant = np.array([*(directory_id in directories for directory_id in self.directory_ids), False])
        return rows[any_of((replicas == broker) & is_meant[numbers])]

    def directories_of(self, row: int) -> tuple[UUID, ...]:
        """Return the directory of each replica of a row, in the order of the replicas."""
        count = len(self.columns.replicas_of(row))
        # Below metadata.version 3.7-IV2 no change of replicas changes the column: all directories are MIGRATING_DIRECTORY there.
        numbers = [] if self.columns.directories is None else unpad(self.columns.directories[row])[:count]
        known = [self.directory_ids[number] for number in numbers]
        return (*known, *[MIGRATING_DIRECTORY] * (count - len(known)))

    def without_pending_deletion(self, rows: IntArray) -> IntArray:
        """Drop the rows of topics that are out of service because of their deletion (C10)."""
        pending = [self.topics[name].index for name in self.deletions if self.is_pending_deletion(name)]
        return rows[~np.isin(self.columns.topic[rows], pending)] if pending else rows

    def add_topic(self, name: str, topic_id: UUID | None) -> Topic:
        """Add a topic without partitions."""
        if self._free_indices:
            index = self._free_indices.pop()
        else:
            index = len(self._by_index)
            self._by_index.append(None)
        topic = Topic(name, topic_id, index, np.zeros(0, dtype=np.int32))
        self._by_index[index] = topic
        self.topics[name] = topic
        if topic_id is not None:
            self._names_by_id[topic_id] = name
        return topic

    def set_topic_id(self, topic: Topic, topic_id: UUID) -> None:
        """Set a topic's id."""
        if topic.topic_id is not None:
            self._names_by_id.pop(topic.topic_id, None)
        topic.topic_id = topic_id
        self._names_by_id[topic_id] = topic.name

    def remove_topic(self, name: str) -> None:
        """Remove a topic and its partitions."""
        topic = self.topics.pop(name)
        for row in topic.rows.tolist():
            self.moves.pop(row, None)
            self.stray_replicas.pop(row, None)
            self.offline_replicas.pop(row, None)
            self.refused_replicas.pop(row, None)
            self.corrected_rows.discard(row)
        self.columns.remove(topic.rows)
        self._by_index[topic.index] = None
        self._free_indices.append(topic.index)
        if topic.topic_id is not None:
            self._names_by_id.pop(topic.topic_id, None)
        self.deletions.pop(name, None)
        self.unclean_topics.pop(name, None)
        self.min_isr_topics.pop(name, None)

    def record_deleted_topic(self, name: str) -> None:
        """Record that a topic was deleted together with all of its known logs."""
        self.deleted_topics.pop(name, None)
        self.deleted_topics[name] = None
        if len(self.deleted_topics) > MAX_DELETED_TOPICS:
            del self.deleted_topics[next(iter(self.deleted_topics))]
