"""Whole states of many partitions, from columns of PartitionRecords: in the image and in a cluster.

A snapshot of a million partitions has nothing else, and a request for topics makes thousands of them. `partition_replay.new_partition` is the
reference (tests).
"""

from itertools import islice
from uuid import UUID

import numpy as np

from controller_core.metadata.column_records import partition_records, topic_runs, tuples
from controller_core.metadata.replayed_records import topic_name
from controller_core.model import NO_BROKER, Cluster, IntArray, Move, quorum_changes
from controller_core.quorum_mode.transitions import apply
from kafka_metadata.directory_ids import MIGRATING_DIRECTORY
from kafka_metadata.draft import Topics
from kafka_metadata.records import LeaderRecoveryState
from kafka_wire.columns.record_encoder import Lists, RecordColumns


def are_whole(columns: RecordColumns) -> bool:
    """Return whether records are whole states that need no check one by one: each partition once, as many directories as replicas, or none."""
    if columns.message != "PartitionRecord":
        return False
    recovery, directories = columns.numbers.get("leader_recovery_state"), columns.lists.get("directories")
    partitions = zip(columns.topic_ids.tolist(), columns.numbers["partition_id"].tolist(), strict=True)
    return (
        (recovery is None or bool(np.isin(recovery, tuple(map(int, LeaderRecoveryState))).all()))
        and (
            directories is None
            or bool(((directories.lengths == columns.lists["replicas"].lengths) | (directories.lengths <= 0)).all())
        )
        and len(set(partitions)) == len(columns)
    )


def set_partitions(topics: Topics, columns: RecordColumns) -> None:
    """Set partitions for which `are_whole` is true in the draft of an image. Raises MetadataError."""
    numbers, records = columns.numbers["partition_id"].tolist(), partition_records(columns)
    for topic_id, places in topic_runs(columns):
        count = places.stop - places.start
        topics.partitions(topic_id).update(zip(numbers[places], islice(records, count), strict=True))


def replay_partitions(cluster: Cluster, columns: RecordColumns) -> None:
    """Set partitions for which `are_whole` is true in a cluster. Raises MetadataError."""
    numbers, lists, count = columns.numbers, columns.lists, len(columns)
    recovery = numbers.get("leader_recovery_state", np.zeros(count, np.int8))
    directory_ids, directories = _directories(lists.get("directories"), lists["replicas"])
    nothing = np.full((count, 1), NO_BROKER, np.int32)
    elr, last_known_elr = (
        found.values if (found := lists.get(name)) is not None and found.values.shape[1] else nothing
        for name in ("eligible_leader_replicas", "last_known_elr")
    )
    apply(
        cluster,
        quorum_changes.PartitionsReplayed(
            [(topic_name(cluster, topic_id), places.stop - places.start) for topic_id, places in topic_runs(columns)],
            numbers["partition_id"],
            lists["replicas"].values,
            lists["isr"].values,
            numbers["leader"],
            numbers["leader_epoch"],
            numbers["partition_epoch"],
            recovery.astype(np.bool_),
            elr,
            last_known_elr,
            directory_ids,
            directories,
            _moves(columns),
        ),
    )


def _directories(column: Lists | None, replicas: Lists) -> tuple[list[UUID], IntArray]:
    """Return the ids of all directories, and the place of each replica's among them: shape (n, longest), padded with -1."""
    has_replica = np.arange(replicas.values.shape[1]) < replicas.lengths[:, None]
    places = np.full(has_replica.shape, NO_BROKER, np.int32)
    found: dict[bytes, int] = {}
    if column is not None:
        width = column.values.shape[1]
        has_directory = np.arange(width) < column.lengths[:, None]
        ids = column.values[has_directory].tolist()
        places[:, :width][has_directory] = [found.setdefault(directory_id, len(found)) for directory_id in ids]
    unknown = has_replica & (places == NO_BROKER)
    if unknown.any():
        places[unknown] = found.setdefault(MIGRATING_DIRECTORY.bytes, len(found))
    return [UUID(bytes=directory_id) for directory_id in found], places


def _moves(columns: RecordColumns) -> dict[int, Move]:
    """Return the running moves by place; most partitions have none."""
    adding, removing = columns.lists["adding_replicas"], columns.lists["removing_replicas"]
    places = np.flatnonzero(adding.lengths + removing.lengths)
    moving = zip(
        *(tuples(ids[places], len(places)) for ids in (columns.lists["replicas"], adding, removing)), strict=True
    )
    return {place: Move(*ids) for place, ids in zip(places.tolist(), moving, strict=True)}
