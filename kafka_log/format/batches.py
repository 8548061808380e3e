"""Headers of record batches in a log, without their records.

Fields as in kafka_wire.records; here only those that a log needs are read, because recovery and appends read every batch.
"""

import mmap
import struct
from collections.abc import Iterator
from typing import NamedTuple

import google_crc32c

from kafka_wire.records import HEADER_BYTES, MAGIC

_HEADER = struct.Struct(">qiibIhiqq")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base timestamp, largest timestamp."""
_PREFIX = struct.Struct(">qi")
_OFFSET_DELTA = struct.Struct(">i")
_OFFSET_DELTA_AT = 23
_LEADER_EPOCH = struct.Struct(">i")
_LEADER_EPOCH_AT = 12
_MAGIC_AT = 16
_ATTRIBUTES = struct.Struct(">h")
CONTROL_BATCH = 0x20
"""Attribute of a batch of control records."""
CHECKED_FROM = 21
"""The CRC covers a batch from its attributes on."""

SEARCHED_OFFSETS = 2**31
"""A valid batch behind a corrupt one has an offset at most this far above it: a segment has no more."""


class Batch(NamedTuple):
    """Header of a batch, and its position in the bytes or the segment that it was read from."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    max_timestamp_ms: int


class CheckedAppend(NamedTuple):
    """Encoded batches that continue a log."""

    pieces: tuple[bytes | memoryview, ...]
    """Their bytes, which are written one after another."""
    size_bytes: int
    batches: list[Batch]
    """Their headers; positions are those in all pieces together."""


class BadBatchError(Exception):
    """Bytes at `position` that are no valid batch. The position belongs to what was read: the given bytes, or a segment."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason


def read_batches(data: bytes | memoryview | mmap.mmap, *, verify_checksums: bool = True) -> Iterator[Batch]:
    """Yield the headers of batches that fill `data` completely.

    Raises BadBatchError for anything else: a wrong checksum, another format than 2, an incomplete batch at the end.
    """
    position, size = 0, len(data)
    while position < size:
        if size - position < HEADER_BYTES:
            raise BadBatchError(position, f"{size - position} bytes at the end are no whole batch")
        base, length, epoch, magic, crc, _, delta, _, timestamp = _HEADER.unpack_from(data, position)
        end = position + _PREFIX.size + length
        if length < HEADER_BYTES - _PREFIX.size or magic != MAGIC or delta < 0 or base < 0:
            raise BadBatchError(position, header_error(base, length, magic, delta))
        if end > size:
            raise BadBatchError(position, f"a batch of {end - position} bytes has only {size - position} bytes")
        if verify_checksums and google_crc32c.value(bytes(data[position + CHECKED_FROM : end])) != crc:
            raise BadBatchError(position, checksum_error(bytes(data[position:end])))
        yield Batch(position, end - position, base, base + delta, epoch, timestamp)
        position = end


def header_error(base_offset: int, length: int, magic: int, last_offset_delta: int) -> str:
    """Return why the fields of a header are invalid."""
    if length < HEADER_BYTES - _PREFIX.size:
        return f"record size {_PREFIX.size + length} is smaller than the minimum of {HEADER_BYTES}"
    if magic != MAGIC:
        return f"message format {magic} is not supported, only {MAGIC}"
    return f"base offset {base_offset} or last offset delta {last_offset_delta} is negative"


def checksum_error(batch: bytes) -> str:
    """Return the message for a batch with a wrong checksum."""
    return checksum_message(_HEADER.unpack_from(batch)[4], google_crc32c.value(batch[CHECKED_FROM:]))


def checksum_message(stored: int, computed: int) -> str:
    """Return the message for a wrong checksum."""
    return f"record is corrupt (stored crc = {stored}, computed crc = {computed})"


def batch_at(data: bytes | memoryview, offset: int, position: int = 0) -> tuple[Batch | None, int]:
    """Return the first batch whose last offset is at least `offset`, or None and the position at which to read on.

    Checksums are not verified: the data comes from a log that was verified when it was written or recovered.
    """
    size = len(data)
    while size - position >= HEADER_BYTES:
        base, length = _PREFIX.unpack_from(data, position)
        last = base + _OFFSET_DELTA.unpack_from(data, position + _OFFSET_DELTA_AT)[0]
        if last >= offset:
            epoch = _LEADER_EPOCH.unpack_from(data, position + _LEADER_EPOCH_AT)[0]
            timestamp = _HEADER.unpack_from(data, position)[8]
            return Batch(position, _PREFIX.size + length, base, last, epoch, timestamp), position
        position += _PREFIX.size + length
    return None, position


def control_batches(data: bytes) -> tuple[list[bytes], int | None]:
    """Return the batches of control records in `data`, and the offset after its last whole batch; None without a whole one.

    Only what this needs is read, because a start reads every batch of the log. Checksums are not verified.
    """
    found: list[bytes] = []
    position, size, end_offset = 0, len(data), None
    while size - position >= HEADER_BYTES:
        base, length = _PREFIX.unpack_from(data, position)
        end = position + _PREFIX.size + length
        if end > size:
            break
        if _ATTRIBUTES.unpack_from(data, position + CHECKED_FROM)[0] & CONTROL_BATCH:
            found.append(data[position:end])
        end_offset = base + _OFFSET_DELTA.unpack_from(data, position + _OFFSET_DELTA_AT)[0] + 1
        position = end
    return found, end_offset


def with_offsets(data: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """Return the batches with offsets from `base_offset` on and with this epoch. The checksum covers neither.

    Raises BadBatchError for bytes that are no batches; checksums are not verified.
    """
    changed = bytearray(data)
    for batch in read_batches(data, verify_checksums=False):
        struct.pack_into(">q", changed, batch.position, base_offset)
        _LEADER_EPOCH.pack_into(changed, batch.position + _LEADER_EPOCH_AT, leader_epoch)
        base_offset += batch.last_offset - batch.base_offset + 1
    return bytes(changed)


def find_valid_batch(data: bytes | mmap.mmap, position: int, least_offset: int) -> int | None:
    """Return the first position from `position` on with a valid batch whose offset is at least `least_offset`, None if there is none.

    Every position with the magic byte of a batch is examined: behind a corrupt header the start of the next batch is unknown.
    """
    size = len(data)
    found = data.find(bytes([MAGIC]), position + _MAGIC_AT)
    while found >= 0:
        start = found - _MAGIC_AT
        if size - start < HEADER_BYTES:
            return None
        base, length = _PREFIX.unpack_from(data, start)
        end = start + _PREFIX.size + length
        if 0 <= base - least_offset <= SEARCHED_OFFSETS and start + HEADER_BYTES <= end <= size:
            crc = _HEADER.unpack_from(data, start)[4]
            if google_crc32c.value(data[start + CHECKED_FROM : end]) == crc:
                return start
        found = data.find(bytes([MAGIC]), found + 1)
    return None


def appendable_bytes(data: bytes | memoryview, max_leader_epoch: int) -> int:
    """Return the size of the whole batches at the start of a fetched response whose epochs are at most `max_leader_epoch`.

    A response may end in a part of a batch, and have batches of a later epoch than that of the request it answers (KAFKA-18723).
    """
    position, size = 0, len(data)
    while size - position >= HEADER_BYTES:
        _, length = _PREFIX.unpack_from(data, position)
        end = position + _PREFIX.size + length
        if end > size or _LEADER_EPOCH.unpack_from(data, position + _LEADER_EPOCH_AT)[0] > max_leader_epoch:
            break
        if length < HEADER_BYTES - _PREFIX.size:
            return size  # malformed: the append is refused with the reason
        position = end
    return position


def parts_of_batches(data: bytes | memoryview, max_bytes: int) -> Iterator[bytes | memoryview]:
    """Yield whole batches in parts of at most `max_bytes`, or of one larger batch.

    Malformed bytes stay in the last part, which is refused when it is appended.
    """
    begin = end = 0
    size = len(data)
    while size - begin > max_bytes and size - end >= HEADER_BYTES:
        _, length = _PREFIX.unpack_from(data, end)
        after = end + _PREFIX.size + length
        if length < HEADER_BYTES - _PREFIX.size or after > size:
            break
        if after - begin > max_bytes and end > begin:
            yield data[begin:end]
            begin = end
        end = after
    if begin < size:
        yield data[begin:]
