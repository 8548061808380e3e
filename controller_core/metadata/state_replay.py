"""States of many partitions, from columns of PartitionChangeRecords and PartitionRecords: in the image and in a cluster.

A broker that leaves or returns changes a hundred thousand partitions in this way; without an object for each record that takes about half of
the time. A snapshot of a million partitions has whole states only. `changed_partition` and `new_partition` of
`partition_replay` are the reference (tests).
"""

from collections.abc import Iterator
from itertools import islice, repeat
from uuid import UUID

import numpy as np

from controller_core.metadata import column_records, replayed_records
from controller_core.model import NO_BROKER, Cluster, IntArray, Move, quorum_changes
from controller_core.model.cluster import NO_ROW
from controller_core.model.columns import widen
from controller_core.quorum_mode.transitions import apply
from kafka_metadata import draft, partition_replay
from kafka_metadata.directory_ids import MIGRATING_DIRECTORY
from kafka_metadata.records import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, LeaderRecoveryState
from kafka_wire.columns.record_encoder import ABSENT, Lists, RecordColumns

_LISTS = frozenset(("isr", "eligible_leader_replicas", "last_known_elr"))
_RECOVERY = (NO_RECOVERY_CHANGE, *map(int, LeaderRecoveryState))


def are_states(columns: RecordColumns) -> bool:
    """Return whether records change only states: no replicas and no directories, and to a recovery state that is known."""
    recovery = columns.numbers.get("leader_recovery_state")
    return (
        columns.message == "PartitionChangeRecord"
        and all(name in _LISTS or (lists.lengths == ABSENT).all() for name, lists in columns.lists.items())
        and (recovery is None or bool(np.isin(recovery, _RECOVERY).all()))
    )


def change_states(topics: draft.Topics, columns: RecordColumns) -> None:
    """Change partitions by records for which `are_states` is true in the draft of an image. Raises MetadataError."""
    numbers, count = columns.numbers, len(columns)
    leader, recovery = numbers.get("leader"), numbers.get("leader_recovery_state")
    rows = zip(
        numbers["partition_id"].tolist(),
        repeat(NO_LEADER_CHANGE, count) if leader is None else leader.tolist(),
        repeat(NO_RECOVERY_CHANGE, count) if recovery is None else recovery.tolist(),
        column_records.tuples(columns.lists.get("isr"), count),
        column_records.tuples(columns.lists.get("eligible_leader_replicas"), count),
        column_records.tuples(columns.lists.get("last_known_elr"), count),
        strict=True,
    )
    for topic_id, places in column_records.topic_runs(columns):
        partitions = topics.partitions(topic_id)
        for number, *state in islice(rows, places.stop - places.start):
            partitions[number] = partition_replay.changed_state(
                partition_replay.known_partition(partitions, topic_id, number), *state
            )


def replay_states(cluster: Cluster, columns: RecordColumns) -> None:
    """Change partitions by records for which `are_states` is true in a cluster. Raises MetadataError."""
    rows = _rows_of(cluster, columns)
    for some in _distinct(rows):
        apply(cluster, _states_after(cluster, rows[some], columns[some]))


def _distinct(rows: IntArray) -> Iterator[slice]:
    """Yield the parts of rows in which none is repeated: a partition may change several times."""
    begin, seen = 0, set[int]()
    for place, row in enumerate(rows.tolist()):
        if row in seen:
            yield slice(begin, place)
            begin, seen = place, set()
        seen.add(row)
    yield slice(begin, len(rows))


def _states_after(cluster: Cluster, rows: IntArray, found: RecordColumns) -> quorum_changes.StatesReplayed:
    """Return the states after one change of each row: `changed_state`, for many at once."""
    columns, numbers, lists = cluster.columns, found.numbers, found.lists
    before = columns.leader[rows], columns.recovering[rows]
    leader = numbers.get("leader", np.full_like(rows, NO_LEADER_CHANGE))
    recovery = numbers.get("leader_recovery_state", np.full_like(rows, NO_RECOVERY_CHANGE))
    has_leader = leader != NO_LEADER_CHANGE
    return quorum_changes.StatesReplayed(
        rows,
        np.where(has_leader, leader, before[0]),
        columns.leader_epoch[rows] + has_leader,
        _changed_lists(lists.get("isr"), columns.isr[rows]),
        np.where(recovery == NO_RECOVERY_CHANGE, before[1], recovery).astype(np.bool_),
        _changed_lists(lists.get("eligible_leader_replicas"), columns.elr_in(rows)),
        _changed_lists(lists.get("last_known_elr"), columns.last_known_elr_in(rows)),
    )


def _rows_of(cluster: Cluster, found: RecordColumns) -> IntArray:
    """Return the rows of the partitions of records. Raises MetadataError."""
    partitions = found.numbers["partition_id"]
    return np.concatenate(
        [
            _rows_in(cluster, replayed_records.topic_name(cluster, topic_id), partitions[places])
            for topic_id, places in column_records.topic_runs(found)
        ]
    )


def _rows_in(cluster: Cluster, topic: str, partitions: IntArray) -> IntArray:
    """Return the rows of partitions of a topic. Raises MetadataError."""
    rows = cluster.rows_of(cluster.topics[topic], partitions)
    for partition in partitions[rows == NO_ROW].tolist():
        raise replayed_records.unknown_partition(cluster, topic, partition)
    return rows


def _changed_lists(changed: Lists | None, before: IntArray) -> IntArray:
    """Return lists after a change; those that it lacks stay."""
    if changed is None:
        return before
    width = max(before.shape[1], changed.values.shape[1])
    after = widen(changed.values, width)
    after = np.where(np.arange(width) < changed.lengths[:, None], after, NO_BROKER)
    return np.where((changed.lengths == ABSENT)[:, None], widen(before, width), after).astype(np.int32, copy=False)


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


def set_partitions(topics: draft.Topics, columns: RecordColumns) -> None:
    """Set partitions for which `are_whole` is true in the draft of an image. Raises MetadataError."""
    numbers, records = columns.numbers["partition_id"].tolist(), column_records.partition_records(columns)
    for topic_id, places in column_records.topic_runs(columns):
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
            [
                (replayed_records.topic_name(cluster, topic_id), places.stop - places.start)
                for topic_id, places in column_records.topic_runs(columns)
            ],
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
        *(column_records.tuples(ids[places], len(places)) for ids in (columns.lists["replicas"], adding, removing)),
        strict=True,
    )
    return {place: Move(*ids) for place, ids in zip(places.tolist(), moving, strict=True)}
