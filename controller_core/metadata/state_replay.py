"""Changes of the states of many partitions, from columns of PartitionChangeRecords (leaders, ISRs, eligible leader replicas): in the image and in a cluster.

A broker that leaves or returns changes a hundred thousand partitions in this way; without an object for each record that takes about half of
the time. `partition_replay.changed_partition` is the reference (tests).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, repeat
from typing import Any
from uuid import UUID

import numpy as np

from controller_core.decisions.transition import apply
from controller_core.metadata.replayed_records import topic_name, unknown_partition
from controller_core.model import NO_BROKER, Cluster, IntArray, changes
from controller_core.model.cluster import NO_ROW
from controller_core.model.columns import widen
from kafka_metadata.draft import Draft, Topics
from kafka_metadata.failures import MetadataError
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_log import MetadataLog
from kafka_metadata.partition_replay import changed_state, known_partition
from kafka_metadata.records import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, LeaderRecoveryState
from kafka_wire.record_columns import ABSENT, Lists, RecordColumns

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


def apply_states(log: MetadataLog, base_offset: int, columns: RecordColumns) -> MetadataLog:
    """Return the state after records for which `are_states` is true, as `apply_records`. Raises MetadataError, which names the offset."""
    end_offset, transaction = base_offset + len(columns), log.transaction
    if transaction is None:
        return replace(log, image=_image_after(log.image, columns, base_offset), end_offset=end_offset)
    image = _image_after(transaction.image, columns, base_offset)
    return replace(log, transaction=replace(transaction, image=image), end_offset=end_offset)


def _image_after(image: MetadataImage, columns: RecordColumns, base_offset: int) -> MetadataImage:
    draft = Draft(image)
    _change_states(draft.topics, columns, base_offset)
    return draft.result()


def _change_states(topics: Topics, columns: RecordColumns, base_offset: int) -> None:
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
    offset = base_offset
    for content, same_topic in groupby(columns.topic_ids.tolist()):
        topic_id = UUID(bytes=content)
        try:
            partitions = topics.partitions(topic_id)
            for _, (number, *state) in zip(same_topic, rows, strict=False):
                partitions[number] = changed_state(known_partition(partitions, topic_id, number), *state)
                offset += 1
        except MetadataError as error:
            raise MetadataError(f"The PartitionChangeRecord at offset {offset} cannot be applied: {error}.") from error


def replay_states(cluster: Cluster, found: RecordColumns, base_offset: int = 0) -> None:
    """Apply records for which `are_states` is true to a cluster, as `replay_records`. Raises MetadataError, which names the offset."""
    rows = _rows_of(cluster, found, base_offset)
    for some in _distinct(rows):
        apply(cluster, _states_after(cluster, rows[some], found[some]))


def _distinct(rows: IntArray) -> Iterator[slice]:
    """Yield the parts of rows in which none is repeated: a partition may change several times."""
    begin, seen = 0, set[int]()
    for place, row in enumerate(rows.tolist()):
        if row in seen:
            yield slice(begin, place)
            begin, seen = place, set()
        seen.add(row)
    yield slice(begin, len(rows))


def _states_after(cluster: Cluster, rows: IntArray, found: RecordColumns) -> changes.StatesReplayed:
    """Return the states after one change of each row: `changed_state`, for many at once."""
    columns, numbers, lists = cluster.columns, found.numbers, found.lists
    before = columns.leader[rows], columns.recovering[rows]
    leader = numbers.get("leader", np.full_like(rows, NO_LEADER_CHANGE))
    recovery = numbers.get("leader_recovery_state", np.full_like(rows, NO_RECOVERY_CHANGE))
    has_leader = leader != NO_LEADER_CHANGE
    return changes.StatesReplayed(
        rows,
        np.where(has_leader, leader, before[0]),
        columns.leader_epoch[rows] + has_leader,
        _changed_lists(lists.get("isr"), columns.isr[rows]),
        np.where(recovery == NO_RECOVERY_CHANGE, before[1], recovery).astype(np.bool_),
        _changed_lists(lists.get("eligible_leader_replicas"), columns.elr_in(rows)),
        _changed_lists(lists.get("last_known_elr"), columns.last_known_elr_in(rows)),
    )


def _rows_of(cluster: Cluster, found: RecordColumns, base_offset: int) -> IntArray:
    """Return the rows of the partitions of records. Raises MetadataError, which names the offset."""
    parts: list[IntArray] = []
    begin, partitions = 0, found.numbers["partition_id"]
    for content, same_topic in groupby(found.topic_ids.tolist()):
        end = begin + sum(1 for _ in same_topic)
        try:
            topic = topic_name(cluster, UUID(bytes=content))
            parts.append(_rows_in(cluster, topic, partitions[begin:end]))
        except MetadataError as error:
            raise MetadataError(
                f"A PartitionChangeRecord between the offsets {base_offset + begin} and {base_offset + end - 1} "
                f"cannot be applied: {error}."
            ) from error
        begin = end
    return np.concatenate(parts)


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


def tuples(column: Lists | None, count: int) -> list[Any]:
    """Return the lists of all records as tuples; None for one that a record does not have."""
    if column is None:
        return [None] * count
    lengths, values = column.lengths.tolist(), column.values.tolist()
    width = column.values.shape[1]
    return [
        tuple(one) if length == width else (None if length < 0 else tuple(one[:length]))
        for one, length in zip(values, lengths, strict=True)
    ]
