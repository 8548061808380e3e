"""One segment of a log: a file of batches, and its two indexes."""

import errno
import os
from pathlib import Path

from kafka_log.errors import ClosedSegmentError, CorruptLogError, LogWriteError
from kafka_log.files.durable import flush_file, write_at
from kafka_log.files.index_file import IndexFile
from kafka_log.format.batches import Batch, CheckedAppend, batch_at
from kafka_log.format.index_entries import (
    OFFSET_ENTRY,
    TIME_ENTRY,
    TimestampOffset,
    find_position,
    find_timestamp,
    first_offset_from,
    last_position,
    last_timestamp,
    offset_bytes_before,
    time_bytes_before,
)
from kafka_log.format.names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    segment_name,
)
from kafka_log.format.roll import SegmentFill
from kafka_log.format.scan import SegmentScan
from kafka_wire.file_slice import DiskRunner, FileSlice, SharedFile
from kafka_wire.records import HEADER_BYTES, NO_TIMESTAMP

LOOKUP_BYTES = 8192
"""Read at once to find a batch: two index intervals, so that small batches need one read."""


class Segment:
    """The batches from `base_offset` on. The file stays open."""

    def __init__(self, folder: Path, base_offset: int, descriptor: int, now_ms: int, file_suffix: str = "") -> None:
        self.base_offset = base_offset
        self.path = folder / segment_name(base_offset, LOG_SUFFIX + file_suffix)
        self.offset_index = IndexFile(
            folder / segment_name(base_offset, OFFSET_INDEX_SUFFIX + file_suffix), OFFSET_ENTRY
        )
        self.time_index = IndexFile(folder / segment_name(base_offset, TIME_INDEX_SUFFIX + file_suffix), TIME_ENTRY)
        self.size_bytes = os.fstat(descriptor).st_size
        self.max_timestamp = TimestampOffset(NO_TIMESTAMP, base_offset)
        self.has_transactions: bool | None = None
        """Whether it may have a transaction index, for its owner: few do, and each read of committed records asks. None: not known yet."""
        self._first_timestamp_ms = NO_TIMESTAMP
        self._created_ms = now_ms
        self._descriptor = descriptor
        self._file: SharedFile | None = SharedFile(descriptor, str(self.path))
        """Owner of the descriptor, which responses with a slice of the file keep open."""

    @classmethod
    def create(cls, folder: Path, base_offset: int, now_ms: int, file_suffix: str = "") -> "Segment":
        """Create the files of an empty segment, whose names may end in a further suffix. Raises LogWriteError, and then leaves none."""
        path = folder / segment_name(base_offset, LOG_SUFFIX + file_suffix)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
            segment = cls(folder, base_offset, descriptor, now_ms, file_suffix)
        except OSError as error:
            raise LogWriteError(f"Failed to create log segment {path}: {error.strerror}") from error
        try:
            for index in (segment.offset_index, segment.time_index):
                index.replace(b"")
                index.save()
        except LogWriteError:
            segment.delete()
            raise
        return segment

    @classmethod
    def open(cls, folder: Path, base_offset: int, now_ms: int) -> "Segment":
        """Open an existing segment, without its indexes."""
        return cls(folder, base_offset, os.open(folder / segment_name(base_offset), os.O_RDWR), now_ms)

    def fill(self) -> SegmentFill:
        """Return what is in it."""
        if self.size_bytes and self._first_timestamp_ms == NO_TIMESTAMP:
            first, _ = batch_at(self.read(0, HEADER_BYTES), self.base_offset)
            self._first_timestamp_ms = first.max_timestamp_ms if first else NO_TIMESTAMP
        return SegmentFill(
            base_offset=self.base_offset,
            size_bytes=self.size_bytes,
            offset_index_bytes=len(self.offset_index.entries),
            time_index_bytes=len(self.time_index.entries),
            first_timestamp_ms=self._first_timestamp_ms,
            created_ms=self._created_ms,
        )

    def append(self, checked: CheckedAppend, index_interval_bytes: int) -> None:
        """Append valid batches. Raises LogWriteError and then has nothing of them."""
        batches = checked.batches
        write_at(self._descriptor, checked.pieces, self.size_bytes, self.path)
        indexed_at = last_position(self.offset_index.entries)
        for batch in batches:
            position = self.size_bytes + batch.position
            if batch.max_timestamp_ms > self.max_timestamp.timestamp_ms:
                self.max_timestamp = TimestampOffset(batch.max_timestamp_ms, batch.last_offset)
            if position - indexed_at > index_interval_bytes:
                self.offset_index.append(batch.last_offset - self.base_offset, position)
                self._append_time()
                indexed_at = position
        if self.size_bytes == 0:
            self._first_timestamp_ms = batches[0].max_timestamp_ms
        self.size_bytes += checked.size_bytes

    def recovered(self, scan: SegmentScan) -> None:
        """Adopt the indexes and the size that a check found, and truncate what is behind it. The caller flushes."""
        if scan.position < self.size_bytes:
            self._cut(scan.position)
        self.max_timestamp = scan.max_timestamp
        self._first_timestamp_ms = scan.first_timestamp_ms
        self.offset_index.replace(bytes(scan.offset_entries))
        self.time_index.replace(scan.close_time_index())

    def load_indexes(self) -> None:
        """Read the indexes into memory, as appending and truncating need them."""
        self.offset_index.load()
        self.time_index.load()

    def map_indexes(self) -> None:
        """Read the indexes from their files on demand, as suits a closed segment."""
        self.offset_index.map()
        self.time_index.map()

    def find_max_timestamp(self) -> None:
        """Find the largest timestamp: the indexed one, or one of a batch behind the last indexed batch."""
        self.max_timestamp = last_timestamp(self.time_index.entries, self.base_offset)
        position = last_position(self.offset_index.entries)
        while position < self.size_bytes:
            batch, _ = batch_at(self.read(position, HEADER_BYTES), self.base_offset)
            if batch is None:
                return
            if batch.max_timestamp_ms > self.max_timestamp.timestamp_ms:
                self.max_timestamp = TimestampOffset(batch.max_timestamp_ms, batch.last_offset)
            position += batch.size_bytes

    def find(self, offset: int) -> Batch | None:
        """Return the first batch with a last offset of at least `offset`, None behind the end. Its position is that in the file."""
        position = find_position(self.offset_index.entries, offset - self.base_offset)
        while position < self.size_bytes:
            batch, consumed = batch_at(self.read(position, LOOKUP_BYTES), offset)
            if batch:
                return batch._replace(position=position + consumed)
            position += consumed
        return None

    def find_by_timestamp(self, timestamp_ms: int, offset: int) -> Batch | None:
        """Return the first batch from `offset` on whose largest timestamp is at least `timestamp_ms`, None if there is none."""
        if timestamp_ms > self.max_timestamp.timestamp_ms:
            return None
        known = find_timestamp(self.time_index.entries, self.base_offset, timestamp_ms)
        batch = self.find(max(offset, known.offset if known else self.base_offset))
        while batch and batch.max_timestamp_ms < timestamp_ms:
            batch = self.find(batch.last_offset + 1)
        return batch

    def read(self, position: int, size_bytes: int) -> bytes:
        """Read up to `size_bytes`, fewer at the end of the segment.

        Raises CorruptLogError when the disk cannot read them or the file is too short, and ClosedSegmentError when another thread closes the
        segment. When another thread truncates it, there may be fewer bytes.
        """
        wanted = max(0, min(size_bytes, self.size_bytes - position))
        try:
            data = os.pread(self._descriptor, wanted, position)
        except OSError as error:
            if error.errno == errno.EBADF:
                raise ClosedSegmentError(f"Log segment {self.path} was removed while it was read.") from None
            raise CorruptLogError(
                f"Failed to read log segment {self.path} at byte offset {position}: {error.strerror}. Check the disk."
            ) from error
        if len(data) < wanted and position + wanted <= self.size_bytes:
            raise CorruptLogError(
                f"Failed to read log segment {self.path} at byte offset {position}: the file has {os.fstat(self._descriptor).st_size} of "
                f"its {self.size_bytes} bytes. Check what else has changed it."
            )
        return data

    def slice_of(self, position: int, size_bytes: int, run: DiskRunner) -> FileSlice:
        """Return a part of the file for a response; `run` reads what is not cached. Raises ClosedSegmentError."""
        if self._file is None:
            raise ClosedSegmentError(f"Log segment {self.path} was removed.")
        return FileSlice(self._file, position, size_bytes, run)

    def upper_bound_offset(self, position: int) -> int | None:
        """Return an offset above those of the batches that begin before `position`; None if the index has none.

        Source: OffsetIndex.fetchUpperBoundOffset.
        """
        relative = first_offset_from(self.offset_index.entries, position)
        return None if relative is None else self.base_offset + relative

    def truncate(self, offset: int) -> int:
        """Remove the batches that reach `offset`, on the disk too; return the offset at which the segment ends.

        The indexes must be in memory.
        """
        cut = self.find(offset)
        if cut is None:
            return offset
        self._cut(cut.position)
        # Without it a crash could show the old end behind batches that are appended now.
        flush_file(self._descriptor, self.path)
        relative = cut.base_offset - self.base_offset
        self.offset_index.truncate(offset_bytes_before(self.offset_index.entries, relative))
        self.time_index.truncate(time_bytes_before(self.time_index.entries, relative))
        if self.size_bytes == 0:
            self._first_timestamp_ms = NO_TIMESTAMP
        self.find_max_timestamp()
        return cut.base_offset

    def flush(self) -> None:
        """Write the batches to the disk."""
        flush_file(self._descriptor, self.path)

    def duplicate_descriptor(self) -> int:
        """Return a second descriptor of the file of batches, which stays valid when the segment is deleted."""
        return os.dup(self._descriptor)

    def save_indexes(self) -> None:
        """Write the indexes without fsync."""
        self.offset_index.save()
        self.time_index.save()

    def seal(self, *, flush: bool = True) -> None:
        """End the segment: its last entry of the time index; with `flush`, all three files are on the disk then."""
        self._append_time()
        self.offset_index.save(flush=flush)
        self.time_index.save(flush=flush)
        if flush:
            self.flush()

    def close(self) -> None:
        """Close the file, once no response has a slice of it. Other reads fail, and never read a file that got the same number."""
        self._descriptor, self._file = -1, None

    def delete(self) -> None:
        """Close and delete the segment's files; the caller flushes the folder."""
        self.close()
        delete_segment_files(self.path.parent, self.base_offset)

    def _cut(self, size_bytes: int) -> None:
        """Shorten the file. The size changes first, so that another thread's read does not take the file for damaged."""
        self.size_bytes = size_bytes
        if self._file is not None:
            self._file.cut(size_bytes)
        os.ftruncate(self._descriptor, size_bytes)

    def _append_time(self) -> None:
        if self.max_timestamp.timestamp_ms > last_timestamp(self.time_index.entries, self.base_offset).timestamp_ms:
            self.time_index.append(self.max_timestamp.timestamp_ms, self.max_timestamp.offset - self.base_offset)


def delete_segment_files(folder: Path, base_offset: int) -> None:
    """Delete the files of a segment. The log goes last: indexes without it are deleted when the log is opened."""
    for suffix in reversed(SEGMENT_SUFFIXES):
        (folder / segment_name(base_offset, suffix)).unlink(missing_ok=True)
