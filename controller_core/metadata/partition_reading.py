"""Metadata records of a snapshot: partitions decoded by columns, many at a time, all others by the codec, which is the reference.

A controller that loads a million partitions spends most of its time in the decoder otherwise.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from kafka_metadata.record_codec import decode_record
from kafka_metadata.records import LeaderRecoveryState, MetadataRecord, PartitionRecord, Uuids
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

    def numbers(name: str, default: int) -> Iterable[int]:
        column = columns.numbers.get(name)
        return [default] * count if column is None else column.tolist()

    def lists(name: str) -> Iterable[tuple[int, ...] | None]:
        return _tuples(columns.lists.get(name), count)

    directories: Iterable[Uuids] = (
        tuple(map(uuid_of, one or ())) for one in _tuples(columns.lists.get("directories"), count)
    )
    return map(
        PartitionRecord,
        numbers("partition_id", 0),
        map(uuid_of, columns.topic_ids.tolist()),
        *map(_present, map(lists, ("replicas", "isr"))),
        numbers("leader", 0),
        numbers("leader_epoch", 0),
        numbers("partition_epoch", 0),
        *map(_present, map(lists, ("removing_replicas", "adding_replicas"))),
        numbers("leader_recovery_state", LeaderRecoveryState.RECOVERED),
        directories,
        lists("eligible_leader_replicas"),
        lists("last_known_elr"),
    )


def _present(lists: Iterable[tuple[int, ...] | None]) -> Iterator[tuple[int, ...]]:
    return (one or () for one in lists)


def _tuples(column: Lists | None, count: int) -> Sequence[tuple[Any, ...] | None]:
    """Return the lists of all records; None for one that a record does not have."""
    if column is None:
        return [None] * count
    lengths, values = column.lengths.tolist(), column.values.tolist()
    width = column.values.shape[1]
    return [
        tuple(one) if length == width else (None if length < 0 else tuple(one[:length]))
        for one, length in zip(values, lengths, strict=True)
    ]
