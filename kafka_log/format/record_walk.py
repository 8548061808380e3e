"""Check of each record in a batch, without building the records.

This loop runs once for each record that a broker takes, so it reads varints of one byte in place. Source: Kafka's DefaultRecord.readFrom.
"""

from dataclasses import dataclass

from kafka_wire.failures import CodecError
from kafka_wire.varints import MAX_VARLONG_BYTES, read_varint

_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1


class BadRecordError(Exception):
    """Records that are malformed, or that do not fill their batch; the text is the reason."""


@dataclass(frozen=True, slots=True)
class WalkedRecords:
    """What a check of records found."""

    timestamps_ms: list[int]
    without_key: list[int]
    """Indexes of records with a null key."""
    is_consecutive: bool
    """Whether the offsets of the records are 0, 1, 2 … above the batch's base offset."""


def walk_records(data: bytes, count: int, base_timestamp_ms: int) -> WalkedRecords:
    """Return what `count` uncompressed records contain that fill `data` completely. Raises BadRecordError."""
    position, timestamps, without_key, is_consecutive = 0, [], [], True
    try:
        for index in range(count):
            size = data[position]
            if size < 0x80:
                size, position = (size >> 1) ^ -(size & 1), position + 1
            else:
                size, position = read_varint(data, position)
            end = position + size
            if size < 0 or end > len(data):
                raise BadRecordError(
                    f"record {index} announces {size} bytes, {len(data) - position} follow in its batch"
                )
            # The attributes have no meaning.
            delta, position = read_varint(data, position + 1, MAX_VARLONG_BYTES)
            timestamps.append(base_timestamp_ms + delta)
            offset_delta, position = read_varint(data, position)
            is_consecutive = is_consecutive and offset_delta == index
            key_bytes, position = read_varint(data, position)
            if key_bytes < 0:
                without_key.append(index)
            value_bytes, position = read_varint(data, position + max(key_bytes, 0))
            header_count, position = read_varint(data, position + max(value_bytes, 0))
            if header_count:
                position = _skip_headers(data, position, header_count, index)
            if position != end:
                raise BadRecordError(f"record {index} does not have the size that it announces")
    except (IndexError, CodecError):
        raise BadRecordError(f"record {index} is malformed") from None
    if position != len(data):
        raise BadRecordError(f"{len(data) - position} bytes follow the last record of the batch")
    if timestamps and not _MIN_INT64 <= min(timestamps) <= max(timestamps) <= _MAX_INT64:
        raise BadRecordError("a timestamp does not fit into 64 bits")
    return WalkedRecords(timestamps, without_key, is_consecutive)


def _skip_headers(data: bytes, position: int, count: int, index: int) -> int:
    if not 0 < count <= len(data) - position:
        raise BadRecordError(f"record {index} announces {count} headers")
    for _ in range(count):
        key_bytes, position = read_varint(data, position)
        if key_bytes < 0:
            raise BadRecordError(f"a header of record {index} has no key")
        value_bytes, position = read_varint(data, position + key_bytes)
        position += max(value_bytes, 0)
    return position
