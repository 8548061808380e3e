"""Records of partitions from columns, each with the values that the codec gives: for what needs an object for each partition.

Partitions are as images have them (`partition_replay.new_partition`), which else makes a second object of each record.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any
from uuid import UUID

import numpy as np

from kafka_metadata import directory_ids, records
from kafka_wire.columns.record_encoder import UUID as UUID_ELEMENT
from kafka_wire.columns.record_encoder import Lists, RecordColumns


def partition_records(columns: RecordColumns) -> Iterator[records.PartitionRecord]:
    """Yield the records of columns of PartitionRecords: with a directory for each replica, and lists of eligible leader replicas."""
    uuid_of = _Uuids().__getitem__
    count = len(columns)
    numbers, lists = columns.numbers, columns.lists
    recovery = numbers.get("leader_recovery_state")
    replicas = tuples(lists["replicas"], count)
    return map(
        records.PartitionRecord,
        numbers["partition_id"].tolist(),
        map(uuid_of, columns.topic_ids.tolist()),
        replicas,
        tuples(lists["isr"], count),
        numbers["leader"].tolist(),
        numbers["leader_epoch"].tolist(),
        numbers["partition_epoch"].tolist(),
        _or_empty(lists.get("removing_replicas"), count),
        _or_empty(lists.get("adding_replicas"), count),
        [records.LeaderRecoveryState.RECOVERED] * count if recovery is None else recovery.tolist(),
        (
            directories or (directory_ids.MIGRATING_DIRECTORY,) * len(assigned)
            for directories, assigned in zip(_uuids(lists.get("directories"), count), replicas, strict=True)
        ),
        _or_empty(lists.get("eligible_leader_replicas"), count),
        _or_empty(lists.get("last_known_elr"), count),
    )


def change_records(columns: RecordColumns) -> Iterator[records.PartitionChangeRecord]:
    """Yield the records of columns of PartitionChangeRecords."""
    uuid_of = _Uuids().__getitem__
    count = len(columns)
    numbers, lists = columns.numbers, columns.lists
    leader, recovery = numbers.get("leader"), numbers.get("leader_recovery_state")
    return map(
        records.PartitionChangeRecord,
        numbers["partition_id"].tolist(),
        map(uuid_of, columns.topic_ids.tolist()),
        tuples(lists.get("isr"), count),
        [records.NO_LEADER_CHANGE] * count if leader is None else leader.tolist(),
        tuples(lists.get("replicas"), count),
        tuples(lists.get("removing_replicas"), count),
        tuples(lists.get("adding_replicas"), count),
        [records.NO_RECOVERY_CHANGE] * count if recovery is None else recovery.tolist(),
        _uuids(lists.get("directories"), count),
        tuples(lists.get("eligible_leader_replicas"), count),
        tuples(lists.get("last_known_elr"), count),
    )


def topic_runs(columns: RecordColumns) -> Iterator[tuple[UUID, slice]]:
    """Yield the topic of successive records, and their places."""
    begin = 0
    for content, same_topic in groupby(columns.topic_ids.tolist()):
        end = begin + sum(1 for _ in same_topic)
        yield UUID(bytes=content), slice(begin, end)
        begin = end


def tuples(column: Lists | None, count: int) -> list[Any]:
    """Return the lists of all records as tuples; None for one that a record does not have."""
    if column is None:
        return [None] * count
    lengths, values = column.lengths.tolist(), column.values.tolist()
    width = column.values.shape[1]
    return [
        tuple(value) if length == width else (None if length < 0 else tuple(value[:length]))
        for value, length in zip(values, lengths, strict=True)
    ]


def _or_empty(column: Lists | None, count: int) -> list[Any]:
    """Return the lists of all records as tuples, empty ones for those that a record does not have."""
    if column is None or not column.values.shape[1]:
        return [()] * count
    return [ids or () for ids in tuples(column, count)]


def _uuids(column: Lists | None, count: int) -> list[records.Uuids | None]:
    """Return lists of ids; equal ones, as partitions with the same replicas have, are one object."""
    if column is None:
        return [None] * count
    width = column.values.shape[1] * UUID_ELEMENT.itemsize
    if not width:
        return [None if length < 0 else () for length in column.lengths.tolist()]
    rows = np.ascontiguousarray(column.values).view(np.dtype(("V", width)))[:, 0].tolist()
    ids_of = _UuidLists().__getitem__
    lengths = (column.lengths * UUID_ELEMENT.itemsize).tolist()
    return [
        None if length < 0 else ids_of(row if length == width else row[:length])
        for row, length in zip(rows, lengths, strict=True)
    ]


class _Uuids(dict[bytes, UUID]):
    """Ids by their bytes: partitions of a topic have the same."""

    def __missing__(self, content: bytes) -> UUID:
        made = self[content] = UUID(bytes=content)
        return made


class _UuidLists(dict[bytes, records.Uuids]):
    """Lists of ids by the bytes of all of them."""

    def __init__(self) -> None:
        self._one: Mapping[bytes, UUID] = _Uuids()

    def __missing__(self, content: bytes) -> records.Uuids:
        size = UUID_ELEMENT.itemsize
        made = self[content] = tuple(self._one[content[at : at + size]] for at in range(0, len(content), size))
        return made
