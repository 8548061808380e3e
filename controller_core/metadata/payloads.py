"""Bytes of the batches that one decision appends: records as values, or many partitions as columns.

What fits is one batch, so that brokers see it at once. Columns of many partitions are batches of their own, which are encoded without a
Python object for each partition; only an atomic decision joins them with its other records.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from controller_core.metadata.batches import MAX_RECORDS, Write, split_values
from kafka_metadata.record_codec import encode_record
from kafka_metadata.records import MetadataRecord
from kafka_wire.errors import Failure
from kafka_wire.record_columns import RecordColumns, encode_columns
from kafka_wire.records import Record, decode_batches, encode_batch

Part = tuple[MetadataRecord, ...] | RecordColumns
"""Records of one change."""

JOINED_RECORDS = 1_000
"""Columns of at most so many partitions share a batch with other records: that takes 3 ms."""


@dataclass(frozen=True, slots=True)
class Payload:
    """One batch. The quorum's node assigns its offset and epoch."""

    data: bytes
    record_count: int


def payloads(parts: Sequence[Part], metadata_version: int, now_ms: int, *, is_atomic: bool) -> list[Payload] | Failure:
    """Return the batches of a decision's records in their order, or why they are refused. Raises MetadataError as encode_record."""
    found = [part for part in parts if len(part)]
    are_joined = is_atomic or sum(map(len, found)) <= JOINED_RECORDS
    if not are_joined or (len(found) == 1 and isinstance(found[0], RecordColumns) and len(found[0]) <= MAX_RECORDS):
        return _apart(found, metadata_version, now_ms)
    values = [value for part in found for value in _values(part, metadata_version)]
    return _of_values(values, now_ms, is_atomic=is_atomic)


def write_payloads(write: Write, metadata_version: int, now_ms: int) -> list[Payload] | Failure:
    """Return the batches of records, as `payloads`."""
    return payloads([write.records], metadata_version, now_ms, is_atomic=write.is_atomic)


def _apart(parts: Sequence[Part], metadata_version: int, now_ms: int) -> list[Payload] | Failure:
    made: list[Payload] = []
    for part in parts:
        if isinstance(part, RecordColumns):
            slices = [part[begin : begin + MAX_RECORDS] for begin in range(0, len(part), MAX_RECORDS)]
            made += [Payload(encode_columns(one, base_offset=0, timestamp_ms=now_ms), len(one)) for one in slices]
            continue
        split = _of_values(_values(part, metadata_version), now_ms, is_atomic=False)
        if isinstance(split, Failure):
            return split
        made += split
    return made


def _of_values(values: list[bytes], now_ms: int, *, is_atomic: bool) -> list[Payload] | Failure:
    batches = split_values(values, is_atomic=is_atomic)
    if isinstance(batches, Failure):
        return batches
    return [
        Payload(encode_batch([Record(place, now_ms, None, value) for place, value in enumerate(batch)]), len(batch))
        for batch in batches
    ]


def _values(part: Part, metadata_version: int) -> list[bytes]:
    if not isinstance(part, RecordColumns):
        return [encode_record(record, metadata_version) for record in part]
    values = []
    for begin in range(0, len(part), MAX_RECORDS):
        encoded = encode_columns(part[begin : begin + MAX_RECORDS], base_offset=0, timestamp_ms=0)
        values += [record.value for batch in decode_batches(encoded) for record in batch.records]
    return [value for value in values if value is not None]
