"""Metadata records of one batch: those of partitions decoded by columns, many at a time, all others by the codec, which is the reference.

A controller that loads a million partitions, or follows changes of a hundred thousand, spends most of its time in the decoder otherwise.
"""

from collections.abc import Callable, Iterator, Mapping
from heapq import merge
from itertools import pairwise
from operator import itemgetter
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from controller_core.metadata.state_replay import are_states, tuples
from kafka_metadata.record_codec import decode_record
from kafka_metadata.records import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    LeaderRecoveryState,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
)
from kafka_wire.record_column_decoder import decode_columns
from kafka_wire.record_columns import Lists, RecordColumns
from kafka_wire.records import batches_of_records

FEWEST_RECORDS = 20
"""Fewer are read sooner one by one than by columns."""

MOST_RECORDS = 10_000
"""The columns of so many are decoded in some 5 ms. Kafka's snapshots have larger batches, which the codec reads one by one."""

SLICE_RECORDS = 250
"""Records of a slice: 1 to 5 ms of a controller."""

Slice = list[MetadataRecord] | RecordColumns
"""Successive records; as columns, if they are many and change only states (`state_replay`)."""


def read_slices(batch: bytes, record_count: int) -> Iterator[Slice]:
    """Yield the records of one batch in their order. Raises MetadataError, CorruptBatch and UnsupportedCompression."""
    some: list[MetadataRecord] = []
    for _, found in _read(batch, record_count):
        if isinstance(found, RecordColumns):
            if some:
                yield some
            yield found
            some = []
            continue
        some.append(found)
        if len(some) == SLICE_RECORDS:
            yield some
            some = []
    if some:
        yield some


def _read(batch: bytes, record_count: int) -> Iterator[tuple[int, MetadataRecord | RecordColumns]]:
    """Yield offsets, and the record or the columns of several records that begin there."""
    if not FEWEST_RECORDS <= record_count <= MOST_RECORDS:
        yield from _by_codec(batch)
        return
    decoded = decode_columns(batch)
    others = ((record.offset, decode_record(record.value, record.offset)) for record in decoded.others)
    yield from merge(
        others, *(_of_columns(offsets, columns) for offsets, columns in decoded.columns), key=itemgetter(0)
    )


def _of_columns(
    offsets: npt.NDArray[np.int64], columns: RecordColumns
) -> Iterator[tuple[int, MetadataRecord | RecordColumns]]:
    make, has_states = _RECORDS[columns.message], are_states(columns)
    ends: list[int] = (np.flatnonzero(np.diff(offsets) != 1) + 1).tolist() if has_states else []
    for run_begin, run_end in pairwise((0, *ends, len(columns))):
        for begin in range(run_begin, run_end, SLICE_RECORDS):
            end = min(begin + SLICE_RECORDS, run_end)
            some = columns[begin:end]
            if has_states and len(some) >= FEWEST_RECORDS:
                yield int(offsets[begin]), some
            else:
                yield from zip(offsets[begin:end].tolist(), make(some), strict=True)


def _by_codec(batch: bytes) -> Iterator[tuple[int, MetadataRecord]]:
    for _, found in batches_of_records(batch):
        for record in found:
            yield record.offset, decode_record(record.value, record.offset)


def partition_records(columns: RecordColumns) -> Iterator[PartitionRecord]:
    """Yield the records of columns of PartitionRecords, each with the values that the codec gives.

    Eligible replicas that a record does not have are empty lists, as in images: `new_partition` else makes a second object of each record.
    """
    uuid_of = _Uuids().__getitem__
    count = len(columns)
    numbers, lists = columns.numbers, columns.lists
    recovery = numbers.get("leader_recovery_state")
    return map(
        PartitionRecord,
        numbers["partition_id"].tolist(),
        map(uuid_of, columns.topic_ids.tolist()),
        tuples(lists["replicas"], count),
        tuples(lists["isr"], count),
        numbers["leader"].tolist(),
        numbers["leader_epoch"].tolist(),
        numbers["partition_epoch"].tolist(),
        _or_empty(lists.get("removing_replicas"), count),
        _or_empty(lists.get("adding_replicas"), count),
        [LeaderRecoveryState.RECOVERED] * count if recovery is None else recovery.tolist(),
        (tuple(map(uuid_of, one or ())) for one in tuples(lists.get("directories"), count)),
        _or_empty(lists.get("eligible_leader_replicas"), count),
        _or_empty(lists.get("last_known_elr"), count),
    )


def _or_empty(column: Lists | None, count: int) -> list[Any]:
    """Return the lists of all records as tuples, empty ones for those that a record does not have."""
    return [()] * count if column is None else [one or () for one in tuples(column, count)]


def change_records(columns: RecordColumns) -> Iterator[PartitionChangeRecord]:
    """Yield the records of columns of PartitionChangeRecords, each with the values that the codec gives."""
    uuid_of = _Uuids().__getitem__
    count = len(columns)
    numbers, lists = columns.numbers, columns.lists
    leader, recovery = numbers.get("leader"), numbers.get("leader_recovery_state")
    return map(
        PartitionChangeRecord,
        numbers["partition_id"].tolist(),
        map(uuid_of, columns.topic_ids.tolist()),
        tuples(lists.get("isr"), count),
        [NO_LEADER_CHANGE] * count if leader is None else leader.tolist(),
        tuples(lists.get("replicas"), count),
        tuples(lists.get("removing_replicas"), count),
        tuples(lists.get("adding_replicas"), count),
        [NO_RECOVERY_CHANGE] * count if recovery is None else recovery.tolist(),
        (None if one is None else tuple(map(uuid_of, one)) for one in tuples(lists.get("directories"), count)),
        tuples(lists.get("eligible_leader_replicas"), count),
        tuples(lists.get("last_known_elr"), count),
    )


_RECORDS: Mapping[str, Callable[[RecordColumns], Iterator[MetadataRecord]]] = {
    "PartitionRecord": partition_records,
    "PartitionChangeRecord": change_records,
}


class _Uuids(dict[bytes, UUID]):
    """Ids by their bytes: partitions of a topic have the same."""

    def __missing__(self, content: bytes) -> UUID:
        made = self[content] = UUID(bytes=content)
        return made
