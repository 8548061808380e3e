"""Changes as groups of ZooKeeper operations: a pure function, so that tests read exactly what would be written.

A group is atomic. Each transaction that contains groups is fenced by a check of `/controller_epoch`, which the store adds, and each
write names the znode's version that the decision was based on: `expected` (`zookeeper_mode.znode_versions`), or the partition epoch.

Some znodes may exist already: parents that another controller created before it failed, a name queued twice, the configuration of a
topic that was deleted in ZooKeeper. `present` names those that the first attempt found; they are then overwritten or left as they are.
Removing a topic needs reads first and is in `removal`.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from controller_core.model import NO_BROKER, NO_EPOCH, Cluster, Move, Origin, Replicas, changes, zookeeper_changes
from controller_core.model.columns import unpad
from controller_core.zookeeper_mode.znode_versions import NO_ZNODE
from kafka_zookeeper import formats, paths, writes
from kafka_zookeeper.formats import partition_columns


@dataclass(frozen=True, slots=True)
class Group:
    """Operations that must be committed together."""

    operations: tuple[writes.Operation, ...]
    row: int = NO_EPOCH
    """The row whose state the group writes; -1 for other groups."""
    topic: str = ""
    """The topic whose znode the group writes; empty for other groups."""


def groups_of(cluster: Cluster, change: changes.Change, expected: int, present: AbstractSet[str]) -> list[Group]:
    """Return the groups of one change; none for a change that was observed or exists only in memory."""
    match change:
        case changes.PartitionStates():
            return _states(cluster, change, present)
        case changes.TopicAdded(origin=Origin.REQUESTED):
            return [_new_topic(change, present)]
        case changes.TopicAdded(origin=Origin.REPAIRED):
            return [_repaired_topic(change, expected)]
        case changes.PartitionsAdded(origin=Origin.REQUESTED):
            added = dict(zip(change.partitions.tolist(), map(unpad, change.replicas), strict=True))
            return [_assignment(cluster, change.topic, expected, replicas=added)]
        case zookeeper_changes.TopicIdAssigned():
            return [_assignment(cluster, change.topic, expected, topic_id=change.topic_id)]
        case zookeeper_changes.AssignmentRestored():
            return [_assignment(cluster, change.topic, expected)]
        case zookeeper_changes.MovesStarted():
            return [_assignment(cluster, change.topic, expected, moves=dict(change.moves))]
        case zookeeper_changes.MovesFinished():
            return [_assignment(cluster, change.topic, expected, finished=dict(change.replicas))]
        case zookeeper_changes.DeletionQueued(origin=Origin.REQUESTED):
            queued = [paths.delete_topic(name) for name in change.topics]
            return [Group((writes.Create(path, None),)) for path in queued if path not in present]
        case zookeeper_changes.PendingReassignmentRequestsChanged(origin=Origin.REQUESTED):
            return [Group((_move_requests(change, expected),))]
        case zookeeper_changes.ElectionRequestsProcessed():
            return [Group((writes.Delete(paths.PREFERRED_REPLICA_ELECTION, expected),))]
        case changes.ProducerIdsAllocated():
            return [_producer_ids(change, expected)]
        case _:
            return []


def _new_topic(change: changes.TopicAdded, present: AbstractSet[str]) -> Group:
    """Write a topic's configuration and its assignment, in Kafka's order (AdminZkClient.createTopic)."""
    config_path, config = paths.topic_config(change.name), formats.encode_config(change.configs)
    configured = (
        writes.SetData(config_path, config, writes.ANY_VERSION)
        if config_path in present
        else writes.Create(config_path, config)
    )
    replicas = dict(zip(change.partitions.tolist(), map(unpad, change.replicas), strict=True))
    document = formats.encode_topic(formats.TopicAssignment(replicas, topic_id=change.topic_id))
    parent = writes.Create(paths.partitions(change.name), None)
    return Group((configured, writes.Create(paths.topic(change.name), document), parent), topic=change.name)


def _repaired_topic(change: changes.TopicAdded, expected: int) -> Group:
    replicas = dict(zip(change.partitions.tolist(), map(unpad, change.replicas), strict=True))
    adding = {partition: move.adding for partition, move in change.moves.items()}
    removing = {partition: move.removing for partition, move in change.moves.items()}
    document = formats.encode_topic(formats.TopicAssignment(replicas, adding, removing, change.topic_id))
    return Group((writes.SetData(paths.topic(change.name), document, expected),), topic=change.name)


def _assignment(
    cluster: Cluster,
    name: str,
    expected: int,
    replicas: dict[int, Replicas] | None = None,
    moves: dict[int, Move] | None = None,
    finished: dict[int, Replicas] | None = None,
    topic_id: UUID | None = None,
) -> Group:
    """Write a topic's current assignment with partitions added (`replicas`), moves started (`moves`) and moves finished."""
    columns, topic = cluster.columns, cluster.topics[name]
    all_replicas: dict[int, Replicas] = {}
    all_moves: dict[int, Move] = {}
    for row in topic.rows.tolist():
        partition = int(columns.partition[row])
        all_replicas[partition] = columns.replicas_of(row)
        if row in cluster.moves and partition not in (finished or {}):
            all_moves[partition] = cluster.moves[row]
    all_moves |= moves or {}
    all_replicas |= {partition: move.replicas for partition, move in all_moves.items()}
    all_replicas |= (replicas or {}) | (finished or {})
    document = formats.encode_topic(
        formats.TopicAssignment(
            all_replicas,
            {partition: move.adding for partition, move in all_moves.items()},
            {partition: move.removing for partition, move in all_moves.items()},
            topic_id or topic.topic_id,
        )
    )
    return Group((writes.SetData(paths.topic(name), document, expected),), topic=name)


def _states(cluster: Cluster, change: changes.PartitionStates, present: AbstractSet[str]) -> list[Group]:
    """Write partition states, one group each; a partition's first state is created together with its parent."""
    counts = (change.isr != NO_BROKER).sum(axis=1)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    documents = partition_columns.encode_partition_states(
        change.leader,
        change.leader_epoch,
        cluster.controller_epoch,
        change.isr[change.isr != NO_BROKER],
        offsets,
        leader_recovery_state=change.recovering_after(cluster.columns.recovering[change.rows]).astype(np.int8),
    )
    rows = change.rows.tolist()
    versions = cluster.columns.partition_epoch[change.rows].tolist()
    where = dict(_state_paths(cluster, rows))
    groups: list[Group] = []
    for row, version, document in zip(rows, versions, documents, strict=True):
        path = where[row]
        if version != NO_EPOCH:
            groups.append(Group((writes.SetData(path, document, version),), row))
            continue
        parent = path.rpartition("/")[0]
        parents: tuple[writes.Operation, ...] = () if parent in present else (writes.Create(parent, None),)
        groups.append(Group((*parents, writes.Create(path, document)), row))
    return groups


def _state_paths(cluster: Cluster, rows: list[int]) -> Iterator[tuple[int, str]]:
    """Return the paths of many rows' states, topic by topic."""
    for topic, of_topic in cluster.by_topic(rows):
        indexes = cluster.columns.partition[of_topic].tolist()
        yield from zip(of_topic, paths.partition_states(topic.name, indexes), strict=True)


def parents_of(cluster: Cluster, change: changes.Change) -> list[str]:
    """Return the parents of first states, which another controller may have created already."""
    if not isinstance(change, changes.PartitionStates):
        return []
    first = change.rows[cluster.columns.partition_epoch[change.rows] == NO_EPOCH]
    return [paths.partitions(topic.name) for topic, _ in cluster.by_topic(first.tolist())]


def _move_requests(change: zookeeper_changes.PendingReassignmentRequestsChanged, expected: int) -> writes.Operation:
    if not change.targets:
        return writes.Delete(paths.REASSIGN_PARTITIONS, expected)
    targets = {formats.TopicPartition(*name): target for name, target in change.targets.items()}
    return writes.SetData(paths.REASSIGN_PARTITIONS, formats.encode_reassignment(targets), expected)


def _producer_ids(change: changes.ProducerIdsAllocated, expected: int) -> Group:
    document = formats.encode_producer_id_block(formats.ProducerIdBlock(change.broker, change.first, change.last))
    path = paths.PRODUCER_ID_BLOCK
    written = writes.Create(path, document) if expected == NO_ZNODE else writes.SetData(path, document, expected)
    return Group((written,))
