"""Check of a segment from its first byte, which also rebuilds its indexes and leader epochs.

recovery.py decides about a segment that ends in damage. Source: Kafka's LogSegment.recover.
"""

import struct

import google_crc32c

from kafka_log.format.batches import CHECKED_FROM, BadBatchError, checksum_error, header_error
from kafka_log.format.epochs import EpochStart
from kafka_log.format.index_entries import (
    MAX_RELATIVE_OFFSET,
    OFFSET_ENTRY,
    TIME_ENTRY,
    TimestampOffset,
    last_timestamp,
)
from kafka_wire.records import HEADER_BYTES, MAGIC, NO_TIMESTAMP

_HEADER = struct.Struct(">qiibIhiqq")
_PREFIX_BYTES = 12


class SegmentScan:
    """The state of a check: feed it the segment's bytes in order, each time from `position` on."""

    def __init__(self, base_offset: int, next_offset: int, index_interval_bytes: int, *, contiguous: bool) -> None:
        self.base_offset = base_offset
        self.next_offset = next_offset
        """Offset behind the last valid batch; where nothing is valid, the end of the previous segment."""
        self.position = 0
        """Size of the valid part of the segment in bytes."""
        self.wanted_bytes = HEADER_BYTES
        """Bytes that the next batch needs, as far as it is known."""
        self.bad: BadBatchError | None = None
        self.offset_entries = bytearray()
        self.time_entries = bytearray()
        self.max_timestamp = TimestampOffset(NO_TIMESTAMP, base_offset)
        self.first_timestamp_ms = NO_TIMESTAMP
        self.epochs: list[EpochStart] = []
        self._interval = index_interval_bytes
        self._contiguous = contiguous
        self._indexed_at = 0

    def feed(self, data: bytes) -> None:
        """Check the whole batches in `data`, which starts at `position`. At a bad one `bad` is set, and nothing more is read."""
        # Local names: this loop runs once for each batch of a log of gigabytes.
        unpack, checksum = _HEADER.unpack_from, google_crc32c.value
        size, at, next_offset = len(data), 0, self.next_offset
        contiguous, last_possible = self._contiguous, self.base_offset + MAX_RELATIVE_OFFSET
        max_timestamp, epoch = self.max_timestamp.timestamp_ms, self.epochs[-1].epoch if self.epochs else -1
        index_at = self._indexed_at + self._interval - self.position
        wanted = HEADER_BYTES
        while size - at >= HEADER_BYTES:
            base, length, batch_epoch, magic, crc, _, delta, _, timestamp = unpack(data, at)
            end = at + _PREFIX_BYTES + length
            if length < HEADER_BYTES - _PREFIX_BYTES or magic != MAGIC or delta < 0 or base < 0:
                self._fail(at, header_error(base, length, magic, delta))
                break
            if base != next_offset and (contiguous or base < next_offset):
                self._fail(at, f"base offset is {base}, expected is {next_offset}")
                break
            if end > size:
                wanted = end - at
                break
            if checksum(data[at + CHECKED_FROM : end]) != crc:
                self._fail(at, checksum_error(data[at:end]))
                break
            last = base + delta
            if last > last_possible:
                self._fail(at, f"offset {last} does not fit into a segment from {self.base_offset}")
                break
            if timestamp > max_timestamp:
                max_timestamp = timestamp
                self.max_timestamp = TimestampOffset(timestamp, last)
            if at > index_at:
                self._index(last, self.position + at)
                index_at = at + self._interval
            if batch_epoch > epoch:
                epoch = batch_epoch
                self.epochs.append(EpochStart(epoch, base))
            if at + self.position == 0:
                self.first_timestamp_ms = timestamp
            next_offset = last + 1
            at = end
        self.next_offset = next_offset
        self.position += at
        self.wanted_bytes = wanted

    def finish(self, size_bytes: int) -> None:
        """Note the end of the segment at `size_bytes`: an incomplete batch in front of it is a bad one."""
        if self.bad is None and self.position < size_bytes:
            left = size_bytes - self.position
            self.bad = BadBatchError(
                self.position, f"the last batch is incomplete: {left} of at least {self.wanted_bytes} bytes"
            )

    def close_time_index(self) -> bytes:
        """Return the time index of a segment that ends here: a closed segment's last entry has its largest timestamp."""
        entries = bytearray(self.time_entries)
        if self.max_timestamp.timestamp_ms > last_timestamp(entries, self.base_offset).timestamp_ms:
            entries += TIME_ENTRY.pack(self.max_timestamp.timestamp_ms, self.max_timestamp.offset - self.base_offset)
        return bytes(entries)

    def _index(self, last_offset: int, position: int) -> None:
        self.offset_entries += OFFSET_ENTRY.pack(last_offset - self.base_offset, position)
        if self.max_timestamp.timestamp_ms > last_timestamp(self.time_entries, self.base_offset).timestamp_ms:
            self.time_entries += TIME_ENTRY.pack(
                self.max_timestamp.timestamp_ms, self.max_timestamp.offset - self.base_offset
            )
        self._indexed_at = position

    def _fail(self, at: int, reason: str) -> None:
        self.bad = BadBatchError(self.position + at, reason)
