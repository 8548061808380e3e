"""Changes of the states of many partitions in the image, from columns of PartitionChangeRecords: leaders, ISRs, eligible leader replicas.

A broker that leaves or returns changes a hundred thousand partitions in this way; without an object for each record that takes about half of
the time. `partition_replay.changed_partition` is the reference (tests).
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby, repeat
from typing import Any
from uuid import UUID

import numpy as np

from kafka_metadata.draft import Draft, Topics
from kafka_metadata.failures import MetadataError
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_log import MetadataLog
from kafka_metadata.records import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, LeaderRecoveryState, PartitionRecord
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
            for _, row in zip(same_topic, rows, strict=False):
                partitions[row[0]] = _changed(_known(partitions, topic_id, row[0]), *row)
                offset += 1
        except MetadataError as error:
            raise MetadataError(f"The PartitionChangeRecord at offset {offset} cannot be applied: {error}.") from error


def _known(partitions: Mapping[int, PartitionRecord], topic_id: UUID, number: int) -> PartitionRecord:
    found = partitions.get(number)
    if found is None:
        raise MetadataError(f"the topic with the id {topic_id} has no partition {number}")
    return found


def _changed(
    known: PartitionRecord,
    partition_id: int,
    leader: int,
    recovery: int,
    isr: tuple[int, ...] | None,
    elr: tuple[int, ...] | None,
    last_known_elr: tuple[int, ...] | None,
) -> PartitionRecord:
    has_leader = leader != NO_LEADER_CHANGE
    return PartitionRecord(
        partition_id,
        known.topic_id,
        known.replicas,
        known.isr if isr is None else isr,
        leader if has_leader else known.leader,
        known.leader_epoch + has_leader,
        known.partition_epoch + 1,
        known.removing_replicas,
        known.adding_replicas,
        known.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else recovery,
        known.directories,
        known.eligible_leader_replicas if elr is None else elr,
        known.last_known_elr if last_known_elr is None else last_known_elr,
        unknown_tags=known.unknown_tags,
    )


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
