"""Changes of the states of many partitions, from columns of PartitionChangeRecords (leaders, ISRs, eligible leader replicas): in the image and in a cluster.

A broker that leaves or returns changes a hundred thousand partitions in this way; without an object for each record that takes about half of
the time. `partition_replay.changed_partition` is the reference (tests).
"""

from collections.abc import Iterator
from itertools import islice, repeat

import numpy as np

from controller_core.metadata.column_records import topic_runs, tuples
from controller_core.metadata.replayed_records import topic_name, unknown_partition
from controller_core.model import NO_BROKER, Cluster, IntArray, quorum_changes
from controller_core.model.cluster import NO_ROW
from controller_core.model.columns import widen
from controller_core.quorum_mode.transitions import apply
from kafka_metadata.draft import Topics
from kafka_metadata.partition_replay import changed_state, known_partition
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


def change_states(topics: Topics, columns: RecordColumns) -> None:
    """Change partitions by records for which `are_states` is true in the draft of an image. Raises MetadataError."""
    numbers, count = columns.numbers, len(columns)
    leader, recovery = numbers.get("leader"), numbers.get("leader_recovery_state")
    rows = zip(
        numbers["partition_id"].tolist(),
        repeat(NO_LEADER_CHANGE, count) if leader is None else leader.tolist(),
        repeat(NO_RECOVERY_CHANGE, count) if recovery is None else recovery.tolist(),
        tuples(columns.lists.get("isr"), count),
        tuples(columns.lists.get("eligible_leader_replicas"), count),
        tuples(columns.lists.get("last_known_elr"), count),
        strict=True,
    )
    for topic_id, places in topic_runs(columns):
        partitions = topics.partitions(topic_id)
        for number, *state in islice(rows, places.stop - places.start):
            partitions[number] = changed_state(known_partition(partitions, topic_id, number), *state)


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
        [_rows_in(cluster, topic_name(cluster, topic_id), partitions[places]) for topic_id, places in topic_runs(found)]
    )


def _rows_in(cluster: Cluster, topic: str, partitions: IntArray) -> IntArray:
    """Return the rows of partitions of a topic. Raises MetadataError."""
    rows = cluster.rows_of(cluster.topics[topic], partitions)
    for partition in partitions[rows == NO_ROW].tolist():
        raise unknown_partition(cluster, topic, partition)
    return rows


def _changed_lists(changed: Lists | None, before: IntArray) -> IntArray:
    """Return lists after a change; those that it lacks stay."""
    if changed is None:
        return before
    width = max(before.shape[1], changed.values.shape[1])
    after = widen(changed.values, width)
    after = np.where(np.arange(width) < changed.lengths[:, None], after, NO_BROKER)
    return np.where((changed.lengths == ABSENT)[:, None], widen(before, width), after).astype(np.int32, copy=False)
