"""Bytes of the batches that one decision appends: records as values, or many partitions as columns.

What fits is one batch, so that brokers see it at once; what is atomic is one batch or refused, because the log has a batch whole or not at
all. Others are split in their order, so that a registration is in the last batch: if the controller fails before it, the broker registers
again, and the rest is decided again. Columns of partitions are encoded without a Python object for each. Source:
QuorumController.appendRecords of Kafka.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafka_log.format.control_records import MAX_BATCH_BYTES, RECORD_OVERHEAD_BYTES, in_batches
from kafka_metadata.record_codec import encode_record
from kafka_metadata.records import MetadataRecord, RegisterBrokerRecord
from kafka_wire import ErrorCode, Failure
from kafka_wire.columns.record_encoder import RecordColumns, encode_columns, encode_records
from kafka_wire.records import HEADER_BYTES, encode_batch_of, encode_values

MAX_RECORDS = 10_000
"""Records of a batch, as in Kafka (DEFAULT_MAX_RECORDS_PER_BATCH)."""

MAX_BYTES = MAX_BATCH_BYTES - HEADER_BYTES
"""Bytes of a batch's records."""


@dataclass(frozen=True, slots=True)
class Write:
    """Records to append. An atomic write is in the log whole or not at all."""

    records: tuple[MetadataRecord, ...]
    is_atomic: bool = True


def several_batches(values: Sequence[bytes]) -> list[list[bytes]] | Failure:
    """Return the values of each batch of a write that is not atomic, or why it is refused."""
    largest = max(map(len, values), default=0) + RECORD_OVERHEAD_BYTES
    if largest > MAX_BYTES:
        return too_large(largest)
    return list(in_batches(values, MAX_RECORDS, MAX_BYTES))


def too_many(count: int) -> Failure:
    """Return why an atomic write of so many records is refused."""
    return Failure(
        ErrorCode.POLICY_VIOLATION,
        f"The change has {count} records, but at most {MAX_RECORDS} can be written at once. Change less in one request.",
    )


def too_large(size_bytes: int) -> Failure:
    """Return why a write of so many bytes is refused."""
    return Failure(
        ErrorCode.POLICY_VIOLATION,
        f"The change has {size_bytes} bytes, but at most {MAX_BYTES} can be written at once. Change less in one request.",
    )


Part = tuple[MetadataRecord, ...] | RecordColumns
"""Successive records of one or more changes."""

JOINED_RECORDS = 1_000
"""At most so many records of a decision that is not atomic are one batch; fewer where the simulator lowers MAX_RECORDS."""


@dataclass(frozen=True, slots=True)
class Payload:
    """One batch. The quorum's node assigns its offset and epoch."""

    data: bytes
    record_count: int


def payloads(parts: Sequence[Part], metadata_version: int, now_ms: int, *, is_atomic: bool) -> list[Payload] | Failure:
    """Return the batches of a decision's records in their order, or why they are refused. Raises MetadataError as encode_record."""
    found = [part for part in parts if len(part)]
    count = sum(map(len, found))
    if is_atomic and count > MAX_RECORDS:
        return too_many(count)
    if not is_atomic and count > min(JOINED_RECORDS, MAX_RECORDS):
        return _apart(found, metadata_version, now_ms)
    joined = b"".join(_encoded(found, metadata_version))
    if len(joined) > MAX_BYTES:
        return too_large(len(joined)) if is_atomic else _apart(found, metadata_version, now_ms)
    return [Payload(encode_batch_of(joined, count, base_offset=0, timestamp_ms=now_ms), count)] if found else []


def _encoded(parts: Sequence[Part], metadata_version: int) -> Iterator[bytes | memoryview]:
    """Yield the records of parts as those of one batch."""
    place = 0
    for part in parts:
        if isinstance(part, RecordColumns):
            yield encode_records(part, place)
        else:
            yield encode_values((encode_record(record, metadata_version) for record in part), place)
        place += len(part)


def _apart(parts: Sequence[Part], metadata_version: int, now_ms: int) -> list[Payload] | Failure:
    """Return batches of each part, of which a large one is split.

    A registration is in the last batch: if the controller fails before it, the broker registers again, and the rest is decided again.
    """
    plain = [record for part in parts if not isinstance(part, RecordColumns) for record in part]
    others = plain if isinstance(parts[-1], RecordColumns) else plain[:-1]
    assert not any(isinstance(record, RegisterBrokerRecord) for record in others), "registration is last"
    made: list[Payload] = []
    for part in parts:
        if isinstance(part, RecordColumns):
            slices = [part[begin : begin + MAX_RECORDS] for begin in range(0, len(part), MAX_RECORDS)]
            made += [
                Payload(encode_columns(columns, base_offset=0, timestamp_ms=now_ms), len(columns)) for columns in slices
            ]
            continue
        batches = several_batches([encode_record(record, metadata_version) for record in part])
        if isinstance(batches, Failure):
            return batches
        for values in batches:
            data = encode_batch_of(encode_values(values), len(values), base_offset=0, timestamp_ms=now_ms)
            made.append(Payload(data, len(values)))
    return made
