"""Entries of the sparse indexes.

    offset index: relative offset int32 | position int32       the last offset of a batch, and where the batch starts
    time index:   timestamp int64 | relative offset int32      the largest timestamp so far, and the last offset of its batch

Offsets are relative to the segment's base offset. An entry is added for a batch that starts more than the interval behind the last indexed
batch, so that both indexes are functions of the log. Source: Kafka's OffsetIndex, TimeIndex and LogSegment.
"""

import mmap
import struct
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from kafka_wire.records import NO_TIMESTAMP

Entries = bytes | bytearray | mmap.mmap

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")

MAX_RELATIVE_OFFSET = 2**31 - 1


class TimestampOffset(NamedTuple):
    """A timestamp and the last offset of the batch that has it."""

    timestamp_ms: int
    offset: int


class _Column:
    """One field of all entries, as a sequence for bisect."""

    def __init__(self, entries: Entries, layout: struct.Struct, field: int) -> None:
        self._entries = entries
        self._layout = layout
        self._field = field

    def __len__(self) -> int:
        return len(self._entries) // self._layout.size

    def __getitem__(self, row: int) -> int:
        return int(self._layout.unpack_from(self._entries, row * self._layout.size)[self._field])


def find_position(entries: Entries, relative_offset: int) -> int:
    """Return the position from which a batch with this offset is found by reading forward."""
    row = bisect_right(_Column(entries, OFFSET_ENTRY, 0), relative_offset) - 1
    return int(OFFSET_ENTRY.unpack_from(entries, row * OFFSET_ENTRY.size)[1]) if row >= 0 else 0


def first_offset_from(entries: Entries, position: int) -> int | None:
    """Return the relative offset of the first indexed batch that begins at `position` or behind it, None if there is none."""
    offsets, positions = _Column(entries, OFFSET_ENTRY, 0), _Column(entries, OFFSET_ENTRY, 1)
    row = bisect_left(positions, position)
    return offsets[row] if row < len(offsets) else None


def last_position(entries: Entries) -> int:
    """Return the position of the last indexed batch; the next entry is counted from it. 0 without entries."""
    return int(OFFSET_ENTRY.unpack_from(entries, len(entries) - OFFSET_ENTRY.size)[1]) if len(entries) else 0


def offset_bytes_before(entries: Entries, relative_offset: int) -> int:
    """Return the size of the offset index that keeps only entries below an offset."""
    return bisect_left(_Column(entries, OFFSET_ENTRY, 0), relative_offset) * OFFSET_ENTRY.size


def time_bytes_before(entries: Entries, relative_offset: int) -> int:
    """Return the size of the time index that keeps only entries below an offset."""
    return bisect_left(_Column(entries, TIME_ENTRY, 1), relative_offset) * TIME_ENTRY.size


def find_timestamp(entries: Entries, base_offset: int, timestamp_ms: int) -> TimestampOffset | None:
    """Return the last entry with at most this timestamp, None if there is none."""
    row = bisect_right(_Column(entries, TIME_ENTRY, 0), timestamp_ms) - 1
    return _time_entry(entries, base_offset, row) if row >= 0 else None


def last_timestamp(entries: Entries, base_offset: int) -> TimestampOffset:
    """Return the last entry of the time index; without entries, no timestamp and the base offset."""
    rows = len(entries) // TIME_ENTRY.size
    return _time_entry(entries, base_offset, rows - 1) if rows else TimestampOffset(NO_TIMESTAMP, base_offset)


def _time_entry(entries: Entries, base_offset: int, row: int) -> TimestampOffset:
    timestamp, relative = TIME_ENTRY.unpack_from(entries, row * TIME_ENTRY.size)
    return TimestampOffset(timestamp, base_offset + relative)


def without_unused_space(entries: bytes, layout: struct.Struct) -> bytes:
    """Return the entries of a file that Kafka allocated in full and did not trim, because it was killed.

    The first entry of an offset index has a position above 0, that of a time index a timestamp above 0: neither is all zeros.
    """
    used = len(entries.rstrip(b"\0"))
    return entries[: -(-used // layout.size) * layout.size]


def entry_error(entries: Entries, layout: struct.Struct) -> str | None:
    """Return why a file is no index, None if both fields of its entries never decrease and its size fits."""
    if len(entries) % layout.size:
        return f"its size of {len(entries)} bytes is no multiple of {layout.size}"
    previous = (-1, -1)
    for row, entry in enumerate(layout.iter_unpack(entries)):
        if entry[0] < previous[0] or entry[1] < previous[1]:
            return f"entry {row} {entry} is below the previous one {previous}"
        previous = entry
    return None
