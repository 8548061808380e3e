"""Check of each record in a batch, without building the records.

This loop runs for each record that a broker takes, but those of one size in a row (equal_records.py), so it reads lengths of one and two bytes
in place: a call for each takes as long as the rest. Bit 7 of a byte announces another one, and bit 0 of the first byte a negative number.
Source: Kafka's DefaultRecord.readFrom.
"""

from typing import NamedTuple

from kafka_log.format.equal_records import KNOWN_DELTAS, OFFSET_DELTAS, run_after
from kafka_wire.failures import CodecError
from kafka_wire.records import NO_TIMESTAMP
from kafka_wire.varints import MAX_VARLONG_BYTES, read_varint, write_varint

SHORT_RUN = 8
"""Records of one size in a row that are read one at a time as fast as in columns."""
MAX_SHORT_RUNS = 4
"""Short runs in a batch after which no others are searched."""

NULL = 0x01
"""Encoded length of a null key: -1."""

_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1


class BadRecordError(Exception):
    """Records that are malformed, or that do not fill their batch; the text is the reason."""


class WalkedRecords(NamedTuple):
    """Result of a check of records."""

    timestamps_ms: list[int]
    least_timestamp_ms: int
    largest_timestamp_ms: int
    """Both NO_TIMESTAMP without records."""
    without_key: list[int]
    """Indexes of records with a null key."""
    is_consecutive: bool
    """Whether the offsets of the records are 0, 1, 2 … above the batch's base offset."""


def walk_records(data: bytes, count: int, base_timestamp_ms: int, position: int = 0) -> WalkedRecords:
    """Return what `count` uncompressed records contain that fill `data` from `position` to its end. Raises BadRecordError."""
    total = len(data)
    timestamps: list[int] = []
    without_key: list[int] = []
    is_consecutive = True
    add_timestamp, read_expected = timestamps.append, data.startswith
    index, size_before, begin_before, short_runs = 0, -1, 0, 0
    try:
        while index < count:
            begin = position
            byte = data[position]
            if byte & 0x81 == 0:
                size = byte >> 1
                position += 1
            elif byte & 1 == 0 and (second := data[position + 1]) < 0x80:
                size = byte >> 1 & 0x3F | second << 6
                position += 2
            else:
                size, position = read_varint(data, position)
            end = position + size
            if size < 0 or end > total:
                raise BadRecordError(f"record {index} announces {size} bytes, {total - position} follow in its batch")
            if size == size_before and short_runs < MAX_SHORT_RUNS:
                run = run_after(data, begin_before, begin, index - 1, count, base_timestamp_ms)
                records = len(run.timestamps_ms)
                short_runs += records < SHORT_RUN
                if records:
                    timestamps += run.timestamps_ms
                    without_key += run.without_key
                    index += records
                    position = begin + records * run.size_bytes
                    begin_before = position - run.size_bytes
                    continue
            # The attributes have no meaning.
            position += 1
            byte = data[position]
            if byte < 0x80:
                add_timestamp(base_timestamp_ms + ((byte >> 1) ^ -(byte & 1)))
                position += 1
            else:
                delta, position = read_varint(data, position, MAX_VARLONG_BYTES)
                add_timestamp(base_timestamp_ms + delta)
            expected = OFFSET_DELTAS[index] if index < KNOWN_DELTAS else write_varint(index)
            if read_expected(expected, position):
                position += len(expected)
            else:
                is_consecutive = False
                _, position = read_varint(data, position)
            byte = data[position]
            if byte == NULL:
                without_key.append(index)
                position += 1
            elif byte & 0x81 == 0:
                position += 1 + (byte >> 1)
            else:
                key_bytes, position = read_varint(data, position)
                if key_bytes < 0:
                    without_key.append(index)
                else:
                    position += key_bytes
            byte = data[position]
            if byte & 0x81 == 0:
                position += 1 + (byte >> 1)
            elif byte & 1 == 0 and (second := data[position + 1]) < 0x80:
                position += 2 + (byte >> 1 & 0x3F | second << 6)
            else:
                value_bytes, position = read_varint(data, position)
                if value_bytes > 0:
                    position += value_bytes
            if data[position]:
                header_count, position = read_varint(data, position)
                position = _skip_headers(data, position, header_count, index)
            else:
                position += 1
            if position != end:
                raise BadRecordError(f"record {index} does not have the size that it announces")
            index += 1
            size_before, begin_before = size, begin
    except (IndexError, CodecError):
        raise BadRecordError(f"record {index} is malformed") from None
    if position != total:
        raise BadRecordError(f"{total - position} bytes follow the last record of the batch")
    least, largest = (min(timestamps), max(timestamps)) if timestamps else (NO_TIMESTAMP, NO_TIMESTAMP)
    if not _MIN_INT64 <= least <= largest <= _MAX_INT64:
        raise BadRecordError("a timestamp does not fit into 64 bits")
    return WalkedRecords(timestamps, least, largest, without_key, is_consecutive)


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
