"""Metadata records of a snapshot: partitions decoded by columns, many at a time, all others by the codec, which is the reference.

A controller that loads a million partitions spends most of its time in the decoder otherwise.
"""

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from kafka_metadata.record_codec import decode_record
from kafka_metadata.records import LeaderRecoveryState, MetadataRecord, PartitionRecord
from kafka_wire.record_column_decoder import decode_columns
from kafka_wire.record_columns import Lists, RecordColumns
from kafka_wire.records import batches_of_records

COLUMN_RECORDS = 2_500
"""A batch of up to this number is decoded at once, in some 10 ms. Kafka's snapshots have larger ones, which the codec reads one by one."""

PARTITION = "PartitionRecord"

Found = tuple[int, MetadataRecord]
"""Offset and record."""


def read_batch(batch: bytes, record_count: int) -> Iterable[Found]:
    """Return the records of one batch in their order. Raises MetadataError, CorruptBatch and UnsupportedCompression, some when it is iterated."""
    if record_count > COLUMN_RECORDS:
        return _by_codec(batch)
    decoded = decode_columns(batch)
    if any(columns.message != PARTITION for _, columns in decoded.columns):
        return _by_codec(batch)
    found = [(record.offset, decode_record(record.value, record.offset)) for record in decoded.others]
    for offsets, columns in decoded.columns:
        found += zip(offsets.tolist(), partition_records(columns), strict=True)
    return sorted(found, key=lambda one: one[0]) if len(decoded.columns) + len(decoded.others) > 1 else found


def _by_codec(batch: bytes) -> Iterator[Found]:
    for _, found in batches_of_records(batch):
        for record in found:
            yield record.offset, decode_record(record.value, record.offset)


def partition_records(columns: RecordColumns) -> Iterator[PartitionRecord]:
    """Yield the records of columns of PartitionRecords, each with the values that the codec gives."""
    ids: dict[bytes, UUID] = {}
    count = len(columns)

    def uuid_of(content: bytes) -> UUID:
        known = ids.get(content)
        if known is None:
            known = ids[content] = UUID(bytes=content)
        return known

    numbers, lists = columns.numbers, columns.lists
    recovery = numbers.get("leader_recovery_state")
    return map(
        PartitionRecord,
        numbers["partition_id"].tolist(),
        map(uuid_of, columns.topic_ids.tolist()),
        _tuples(lists["replicas"], count),
        _tuples(lists["isr"], count),
        numbers["leader"].tolist(),
        numbers["leader_epoch"].tolist(),
        numbers["partition_epoch"].tolist(),
        _tuples(lists["removing_replicas"], count),
        _tuples(lists["adding_replicas"], count),
        [LeaderRecoveryState.RECOVERED] * count if recovery is None else recovery.tolist(),
        (tuple(map(uuid_of, one or ())) for one in _tuples(lists.get("directories"), count)),
        _tuples(lists.get("eligible_leader_replicas"), count),
        _tuples(lists.get("last_known_elr"), count),
    )


def _tuples(column: Lists | None, count: int) -> list[Any]:
    """Return the lists of all records as tuples; None for one that a record does not have."""
    if column is None:
        return [None] * count
    lengths, values = column.lengths.tolist(), column.values.tolist()
    width = column.values.shape[1]
    return [
        tuple(one) if length == width else (None if length < 0 else tuple(one[:length]))
        for one, length in zip(values, lengths, strict=True)
    ]
