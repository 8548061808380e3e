"""PartitionChangeRecords of a change of many partitions, as columns: what differs from the state before.

A record has a leader only if the leader epoch grows, because each leader in a record raises it. Source: PartitionChangeBuilder and
PartitionRegistration.merge of Kafka.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

import numpy as np

from controller_core.model import Cluster, IntArray, Move, changes
from controller_core.model.columns import differ, pad
from kafka_metadata import metadata_versions, records
from kafka_wire.columns.record_encoder import ABSENT, Lists, RecordColumns
from kafka_wire.columns.record_encoder import UUID as UUID_TYPE

MESSAGE = "PartitionChangeRecord"


def partition_changes(change: changes.PartitionStates, cluster: Cluster) -> RecordColumns:
    """Return the records of a change, before it is applied, in the version of the cluster's metadata version."""
    version = metadata_versions.record_version(
        MESSAGE, cluster.features.get(metadata_versions.METADATA_VERSION, metadata_versions.MINIMUM_VERSION)
    )
    assert version is not None, "every metadata version has changes of partitions"
    columns, rows = cluster.columns, change.rows
    raised = change.leader_epoch != columns.leader_epoch[rows]
    assert (change.leader_epoch == columns.leader_epoch[rows] + raised).all(), "a record raises the leader epoch by 1"
    recovering = change.recovering_after(columns.recovering[rows])
    numbers = {
        "partition_id": columns.partition[rows],
        "leader": np.where(raised, change.leader, records.NO_LEADER_CHANGE).astype(np.int32),
        "leader_recovery_state": np.where(
            recovering != columns.recovering[rows], recovering, records.NO_RECOVERY_CHANGE
        ).astype(np.int32),
    }
    lists = {"isr": _changed(change.isr, columns.isr[rows])}
    if change.replicas is not None:
        lists["replicas"] = _changed(change.replicas, columns.replicas[rows])
    if change.elr is not None and change.last_known_elr is not None:
        lists["eligible_leader_replicas"] = _changed(change.elr, columns.elr_in(rows))
        lists["last_known_elr"] = _changed(change.last_known_elr, columns.last_known_elr_in(rows))
    if change.moves:
        lists |= _move_lists(change.moves, cluster, rows)
    if change.directories:
        lists["directories"] = _directory_lists(change.directories, rows)
    present = {name: column for name, column in lists.items() if (column.lengths != ABSENT).any()}
    return RecordColumns(MESSAGE, version, _topic_ids(cluster, rows), numbers, present)


def _changed(after: IntArray, before: IntArray) -> Lists:
    """Return the lists that differ; the others are missing."""
    return Lists.padded(after, differ(after, before))


def _move_lists(moves: Mapping[int, Move | None], cluster: Cluster, rows: IntArray) -> dict[str, Lists]:
    """Return the replicas that moves add and remove, where they change."""
    adding: list[Sequence[int] | None] = []
    removing: list[Sequence[int] | None] = []
    for row in rows.tolist():
        before, after = cluster.moves.get(row), moves.get(row, cluster.moves.get(row))
        lists = [((move.adding, move.removing) if move else ((), ())) for move in (before, after)]
        adding.append(lists[1][0] if lists[1][0] != lists[0][0] else None)
        removing.append(lists[1][1] if lists[1][1] != lists[0][1] else None)
    return {"adding_replicas": _optional(adding), "removing_replicas": _optional(removing)}


def _optional(lists: Sequence[Sequence[int] | None]) -> Lists:
    return Lists.padded(pad([ids or () for ids in lists]), np.array([ids is not None for ids in lists], np.bool_))


def _directory_lists(directories: Mapping[int, changes.Directories], rows: IntArray) -> Lists:
    found = [directories.get(row) for row in rows.tolist()]
    longest = max((len(ids) for ids in found if ids is not None), default=0)
    values = np.zeros((len(found), longest), UUID_TYPE)
    for place, ids in enumerate(found):
        for slot, directory in enumerate(ids or ()):
            values[place, slot] = np.void(directory.bytes)
    lengths = np.array([ABSENT if ids is None else len(ids) for ids in found], np.int64)
    return Lists(values, lengths)


def _topic_ids(cluster: Cluster, rows: IntArray) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    indices, places = np.unique(cluster.columns.topic[rows], return_inverse=True)
    ids = [topic.topic_id or UUID(int=0) for topic in cluster.topics_at(indices)]
    return np.array([directory_id.bytes for directory_id in ids], UUID_TYPE)[places]
