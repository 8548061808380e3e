"""Record batches of format 2 (magic 2): the content of Produce requests, Fetch responses and logs.

    base_offset int64 | length int32 | leader_epoch int32 | magic int8 | crc uint32 | attributes int16 | ...

The CRC is CRC-32C over everything from the attributes on; it excludes base offset and leader epoch, so that a broker can
set them without changing the rest. Each record has varint deltas to the batch's base offset and timestamp.
Formats 0 and 1 are rejected; compression.py has the codecs. Source: Kafka's DefaultRecordBatch and DefaultRecord,
KIP-98, KIP-534 (delete horizon).
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import google_crc32c

from kafka_wire.compression import MAX_UNPACKED_BYTES, Compression, pack, unpack
from kafka_wire.failures import CodecError, WireError
from kafka_wire.varints import MAX_VARLONG_BYTES, read_varint, write_varint

MAGIC = 2

METADATA_FRAME_VERSION = 1
"""First number in the value of a metadata record; its API key, its version and the record follow (AbstractApiMessageSerde)."""

_PREFIX = struct.Struct(">qi")
"""Offset and length, which the length itself does not count."""
_AFTER_LENGTH = struct.Struct(">ibI")
_AFTER_CRC = struct.Struct(">hiqqqhii")
HEADER_BYTES = _PREFIX.size + _AFTER_LENGTH.size + _AFTER_CRC.size

MIN_RECORD_BYTES = 7
"""A record has at least one byte each for length, attributes, two deltas, key and value lengths, and header count."""
MIN_RECORD_HEADER_BYTES = 2
"""A header has at least the lengths of its key and value."""

_COMPRESSION_MASK = 0x07
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_DELETE_HORIZON = 0x40

NO_PRODUCER = -1
NO_TIMESTAMP = -1


class CorruptBatch(WireError):  # noqa: N818 -- Kafka's name: CORRUPT_MESSAGE
    """A malformed record batch, or one with a wrong checksum."""


class ControlType(IntEnum):
    """Type of a control record (ControlRecordType)."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class Record(NamedTuple):
    """One record. `timestamp_ms` is the producer's time, or the broker's in a batch with `log_append_time`."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class BatchHeader(NamedTuple):
    """Header of a batch, which is readable without its records. `size_bytes` is the size of the whole batch."""

    base_offset: int
    size_bytes: int
    partition_leader_epoch: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        """Last offset of the batch, even if compaction removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def compression(self) -> int:
        """Number of the compression codec: a member of Compression, or an unknown one."""
        return self.attributes & _COMPRESSION_MASK

    @property
    def log_append_time(self) -> bool:
        """Whether `max_timestamp_ms`, the broker's time of appending, is the timestamp of every record."""
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the records are control records of Kafka, with a control_type, and not data of the application."""
        return bool(self.attributes & _CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """Time from which its tombstones may be deleted (KIP-534), if the base timestamp has that meaning."""
        return self.base_timestamp_ms if self.attributes & _DELETE_HORIZON else None


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """A batch and its records."""

    header: BatchHeader
    records: tuple[Record, ...]


def control_type(record: Record) -> ControlType | None:
    """Return the type of a control record, None for an unknown type; raises CorruptBatch for an invalid key."""
    try:
        _, kind = struct.unpack_from(">hh", record.key or b"")
    except struct.error:
        raise CorruptBatch(
            f"The key {record.key!r} of a control record does not contain a version and a type."
        ) from None
    return ControlType(kind) if kind in ControlType.__members__.values() else None


def encode_batch(
    records: tuple[Record, ...] | list[Record],
    *,
    compression: Compression = Compression.NONE,
    partition_leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """Encode records, in the order of their offsets, as one batch. The first record sets its base offset and timestamp.

    Raises WireError for no records, a number out of range, or an unsupported compression codec.
    """
    if not records:
        raise WireError("A batch needs at least one record.")
    base = records[0]
    attributes = compression | (_TRANSACTIONAL if is_transactional else 0) | (_CONTROL if is_control else 0)
    fields = (
        attributes,
        records[-1].offset - base.offset,
        base.timestamp_ms,
        max(record.timestamp_ms for record in records),
        producer_id,
        producer_epoch,
        base_sequence,
    )
    return _assembled(records, base.offset, partition_leader_epoch, fields)


def encode_batch_of(
    encoded: bytes | memoryview, count: int, *, base_offset: int, timestamp_ms: int, partition_leader_epoch: int = -1
) -> bytes:
    """Return a batch of records that are already encoded, all with the same timestamp and with offsets one after another."""
    fields = (0, count - 1, timestamp_ms, timestamp_ms, NO_PRODUCER, -1, -1)
    return _framed(encoded, count, base_offset, partition_leader_epoch, fields)


def encode_values(values: Iterable[bytes], first_place: int = 0) -> bytes:
    """Encode records of `encode_batch_of` that have only a value; their batch has others before the first place."""
    return b"".join(
        _encode_record(Record(place, 0, None, value), 0, 0) for place, value in enumerate(values, start=first_place)
    )


def encode_kept_records(header: BatchHeader, records: Sequence[Record], *, delete_horizon_ms: int | None) -> bytes:
    """Encode the records of a batch that compaction keeps, with the batch's offsets, producer, leader epoch and codec.

    A batch of which no record is kept still has the last sequence number of its producer. `delete_horizon_ms` replaces the base timestamp
    (KIP-534). Source: Kafka's MemoryRecords.filterTo. Raises WireError as `encode_batch`.
    """
    attributes = header.attributes & (_COMPRESSION_MASK | _LOG_APPEND_TIME | _TRANSACTIONAL | _CONTROL)
    max_timestamp_ms, base_timestamp_ms = header.max_timestamp_ms, NO_TIMESTAMP
    if not records:
        attributes &= ~_COMPRESSION_MASK
    else:
        base_timestamp_ms = records[0].timestamp_ms
        if not header.log_append_time:
            max_timestamp_ms = max(record.timestamp_ms for record in records)
        if delete_horizon_ms is not None:
            attributes |= _DELETE_HORIZON
            base_timestamp_ms = delete_horizon_ms
    fields = (
        attributes,
        header.last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    )
    return _assembled(records, header.base_offset, header.partition_leader_epoch, fields)


def _assembled(
    records: Sequence[Record], base_offset: int, leader_epoch: int, fields: tuple[int, int, int, int, int, int, int]
) -> bytes:
    """Return a batch; `fields` are those from the attributes to the base sequence."""
    attributes, _, base_timestamp_ms = fields[:3]
    try:
        encoded = b"".join(_encode_record(record, base_offset, base_timestamp_ms) for record in records)
        packed = pack(Compression(attributes & _COMPRESSION_MASK), encoded)
        return _framed(packed, len(records), base_offset, leader_epoch, fields)
    except (struct.error, UnicodeEncodeError) as error:
        raise WireError(
            f"A batch of {len(records)} records from offset {base_offset} cannot be encoded: {error}"
        ) from None


def _framed(
    packed: bytes | memoryview,
    count: int,
    base_offset: int,
    leader_epoch: int,
    fields: tuple[int, int, int, int, int, int, int],
) -> bytes:
    checked = b"".join((_AFTER_CRC.pack(*fields, count), packed))
    checksum = google_crc32c.value(checked)
    length = _AFTER_LENGTH.size + len(checked)
    return b"".join((_PREFIX.pack(base_offset, length), _AFTER_LENGTH.pack(leader_epoch, MAGIC, checksum), checked))


def _encode_record(record: Record, base_offset: int, base_timestamp_ms: int) -> bytes:
    parts = [
        b"\0",
        write_varint(record.timestamp_ms - base_timestamp_ms),
        write_varint(record.offset - base_offset),
        _encode_bytes(record.key),
        _encode_bytes(record.value),
        write_varint(len(record.headers)),
    ]
    for key, value in record.headers:
        parts += (_encode_bytes(key.encode()), _encode_bytes(value))
    body = b"".join(parts)
    return write_varint(len(body)) + body


def _encode_bytes(value: bytes | None) -> bytes:
    return write_varint(-1) if value is None else write_varint(len(value)) + value


def batch_headers(data: bytes | memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """Yield the position and header of each whole batch; a batch truncated at the end is ignored, as Fetch allows it.

    Raises CorruptBatch for an invalid length and for another format than 2. Checksums are not verified.
    """
    position = 0
    while len(data) - position >= HEADER_BYTES:
        base_offset, length = _PREFIX.unpack_from(data, position)
        size = _PREFIX.size + length
        if size < HEADER_BYTES:
            raise CorruptBatch(
                f"The batch at offset {base_offset} announces {size} bytes; its header needs {HEADER_BYTES}."
            )
        leader_epoch, magic, crc = _AFTER_LENGTH.unpack_from(data, position + _PREFIX.size)
        if magic != MAGIC:
            raise CorruptBatch(f"The batch at offset {base_offset} has format {magic}; only {MAGIC} is supported.")
        if size > len(data) - position:
            return
        rest = _AFTER_CRC.unpack_from(data, position + _PREFIX.size + _AFTER_LENGTH.size)
        yield position, BatchHeader(base_offset, size, leader_epoch, crc, *rest)
        position += size


def checked_records(data: bytes, position: int, header: BatchHeader) -> bytes:
    """Return the records of the batch at a position, which may be compressed. Raises CorruptBatch for a wrong checksum."""
    checked = data[position + _PREFIX.size + _AFTER_LENGTH.size : position + header.size_bytes]
    if google_crc32c.value(checked) != header.crc:
        raise CorruptBatch(f"The checksum of the batch at offset {header.base_offset} is wrong.")
    return checked[_AFTER_CRC.size :]


def decode_batches(data: bytes | memoryview, *, max_unpacked_bytes: int = MAX_UNPACKED_BYTES) -> Iterator[RecordBatch]:
    """Yield each whole batch with its records.

    Raises CorruptBatch (a wrong checksum, length or count) and UnsupportedCompression, both WireErrors.
    """
    for header, records in batches_of_records(data, max_unpacked_bytes=max_unpacked_bytes):
        yield RecordBatch(header, tuple(records))


def batches_of_records(
    data: bytes | memoryview, *, max_unpacked_bytes: int = MAX_UNPACKED_BYTES
) -> Iterator[tuple[BatchHeader, Iterator[Record]]]:
    """Yield the header of each whole batch and an iterator over its records, which are decoded one by one. Raises as decode_batches."""
    data = bytes(data)
    for position, header in batch_headers(data):
        records = unpack(header.compression, checked_records(data, position, header), max_unpacked_bytes)
        yield header, _decode_records(records, header)


def _decode_records(data: bytes, header: BatchHeader) -> Iterator[Record]:
    count = header.record_count
    if not 0 <= count <= len(data) // MIN_RECORD_BYTES:
        raise CorruptBatch(f"The batch at offset {header.base_offset} announces {count} records in {len(data)} bytes.")
    position = 0
    try:
        for _ in range(count):
            length, position = read_varint(data, position)
            record, end = decode_record(data, position, header)
            if end != position + length:
                raise CorruptBatch(f"The record at offset {record.offset} does not have the length that it announces.")
            position = end
            yield record
    except (IndexError, UnicodeDecodeError, CodecError) as error:
        raise CorruptBatch(f"A record in the batch at offset {header.base_offset} is malformed: {error}") from None
    if position != len(data):
        raise CorruptBatch(
            f"{len(data) - position} bytes follow the records of the batch at offset {header.base_offset}."
        )


def decode_record(data: bytes, position: int, header: BatchHeader) -> tuple[Record, int]:
    """Decode a record of a batch, from the position after its length; return it and the position after it.

    Raises IndexError, UnicodeDecodeError and CodecError.
    """
    position += 1  # the attributes, which Kafka does not use
    timestamp_delta, position = read_varint(data, position, MAX_VARLONG_BYTES)
    offset_delta, position = read_varint(data, position)
    key, position = _decode_bytes(data, position)
    value, position = _decode_bytes(data, position)
    count, position = read_varint(data, position)
    if not 0 <= count <= (len(data) - position) // MIN_RECORD_HEADER_BYTES:
        raise CodecError(f"it announces {count} headers in {len(data) - position} bytes")
    headers = []
    for _ in range(count):
        name, position = _decode_bytes(data, position)
        content, position = _decode_bytes(data, position)
        if name is None:
            raise CodecError("a header has no key")
        headers.append((name.decode(), content))
    timestamp = header.max_timestamp_ms if header.log_append_time else header.base_timestamp_ms + timestamp_delta
    return Record(header.base_offset + offset_delta, timestamp, key, value, tuple(headers)), position


def _decode_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length < 0:
        return None, position
    end = position + length
    if end > len(data):
        raise CodecError(f"a length of {length} exceeds the remaining {len(data) - position} bytes")
    return data[position:end], end
