"""A partition's log: batches in segments, readable from any offset.

One thread owns a log and calls everything in it, except `PendingFlush.run`, which any thread may call. Leaves out the high watermark and who may
append: both belong to the replication above it. Source: Kafka's UnifiedLog and LocalLog.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeVar

from kafka_log.errors import FlushFailedError, LogWriteError, OffsetOutOfRangeError, UnreadableFileError
from kafka_log.files.durable import flush_folder, make_folder
from kafka_log.files.loading import Loaded, SegmentRecovery, load_segments
from kafka_log.files.pending_flush import PendingFlush
from kafka_log.files.segment import Segment
from kafka_log.files.text_files import read_leader_epochs, write_leader_epochs
from kafka_log.format.append_rules import validated_batches, with_assigned_offsets
from kafka_log.format.batches import Batch, CheckedAppend
from kafka_log.format.epochs import LeaderEpochs
from kafka_log.format.roll import LogSettings, roll_reason
from kafka_wire.file_slice import DiskRunner, FileSlice

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class Appended(NamedTuple):
    """Offsets of appended batches, both inclusive."""

    first_offset: int
    last_offset: int


class LogSlice(NamedTuple):
    """Bytes of one segment. Valid until the log is truncated, deleted from or closed."""

    segment: Segment
    position: int
    size_bytes: int
    base_offset: int
    """Base offset of the first batch: at most the requested offset, and less if that is inside of a batch."""

    def read(self) -> bytes:
        """Return the bytes."""
        return self.segment.read(self.position, self.size_bytes) if self.size_bytes else b""

    def slice_for(self, run: DiskRunner) -> FileSlice:
        """Return the part of the segment's file for a response, as Segment.slice_of; it stays readable when the segment is deleted."""
        return self.segment.slice_of(self.position, self.size_bytes, run)


class Log:
    """An open log. After a FlushFailedError every further call raises it again."""

    def __init__(
        self,
        folder: Path,
        settings: LogSettings | None = None,
        *,
        recovery_point: int = 0,
        is_clean: bool = False,
        recovery: SegmentRecovery | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open the log in `folder`, which is created if it is missing.

        `recovery_point` is an offset below which everything was flushed: segments below it are not checked. After a clean shutdown
        (`is_clean`) none is. `recovery` gets the batches of the checked segments. Raises CorruptLogError.
        """
        self.folder = folder
        self.settings = settings or LogSettings()
        self._clock = clock
        self._failure: FlushFailedError | None = None
        self._flushes: list[PendingFlush] = []
        self._unflushed: list[Segment] = []
        """Closed segments that the next flush writes to the disk."""
        make_folder(folder)
        loaded = load_segments(
            folder,
            self.settings,
            recovery_point=recovery_point,
            now_ms=self._now_ms(),
            is_clean=is_clean,
            recovery=recovery,
        )
        self._segments = loaded.segments
        self.end_offset = loaded.end_offset
        """Offset that the next record gets."""
        if not self._segments:
            self._segments = [Segment.create(folder, 0, self._now_ms())]
        self.start_offset = self._segments[0].base_offset
        """Lowest offset that may be read."""
        flush_folder(folder)
        self.flushed_offset = self.end_offset
        """End of what is on the disk."""
        self._stored_epochs = self._read_epochs(all_checked=loaded.checked_from == self.start_offset)
        """The epochs on disk; of the active segment they may be missing, or be those of removed batches (see `append`)."""
        self.epochs = self._loaded_epochs(loaded)
        self._store_epochs()

    @property
    def size_bytes(self) -> int:
        """Size of all segments, without indexes."""
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments in order, the last of them active."""
        return tuple(self._segments)

    @property
    def segment_offsets(self) -> list[int]:
        """Base offsets of the segments."""
        return [segment.base_offset for segment in self._segments]

    @property
    def active_base_offset(self) -> int:
        """Base offset of the active segment."""
        return self._active.base_offset

    # Appending

    def append(self, data: bytes, *, verify_checksums: bool = True) -> Appended:
        """Append encoded batches, which have their offsets and epochs. Nothing is flushed.

        A new epoch is stored when the segment is closed; until then a crash loses nothing, because an opened log reads the epochs of its last
        segment from the batches. Kafka stores it here: two more flushes in each election, on the leader and on each follower.

        Raises InvalidAppendError, and LogWriteError, such as on a full disk: the log then is as it was before.
        """
        checked = self.check(data, verify_checksums=verify_checksums)
        self.make_room(checked)
        return self.write(checked)

    def check(self, data: bytes | memoryview, *, verify_checksums: bool = True) -> CheckedAppend:
        """Return encoded batches if they continue the log. Raises as `append`."""
        self._raise_failure()
        batches = validated_batches(
            data,
            self.settings,
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            verify_checksums=verify_checksums,
        )
        return CheckedAppend((data,), len(data), batches)

    def make_room(self, checked: CheckedAppend) -> None:
        """Begin another segment if batches need it. Raises as `append`."""
        self._raise_failure()
        batches = checked.batches
        timestamp_ms = max(batch.max_timestamp_ms for batch in batches)
        reason = roll_reason(
            self._active.fill(),
            self.settings,
            size_bytes=checked.size_bytes,
            last_offset=batches[-1].last_offset,
            timestamp_ms=timestamp_ms,
            now_ms=self._now_ms(),
        )
        if reason is not None:
            self._roll(batches[0].base_offset)

    def write(self, checked: CheckedAppend) -> Appended:
        """Append batches for which `make_room` made room since the last change of the log. Raises LogWriteError as `append`."""
        batches = checked.batches
        try:
            self._active.append(checked, self.settings.index_interval_bytes)
        except FlushFailedError as error:
            self.fail(error)
        for batch in batches:
            if batch.leader_epoch >= 0:
                self.epochs = self.epochs.assign(batch.leader_epoch, batch.base_offset)
        self.end_offset = batches[-1].last_offset + 1
        return Appended(batches[0].base_offset, batches[-1].last_offset)

    def append_as_leader(self, data: bytes, leader_epoch: int) -> Appended:
        """Append encoded batches with offsets from the log's end on, and this epoch. Raises as `append`."""
        return self.append(with_assigned_offsets(data, self.end_offset, leader_epoch))

    def assign_epoch(self, epoch: int) -> None:
        """Note that `epoch` starts at the log's end, before its first record (a new leader's)."""
        self._raise_failure()
        self._set_epochs(self.epochs.assign(epoch, self.end_offset))

    def roll(self) -> None:
        """Begin another segment at the log's end, unless the active one is empty and begins there."""
        self._raise_failure()
        self._roll(self.end_offset)

    def _roll(self, base_offset: int) -> None:
        active = self._active
        if active.size_bytes == 0 and active.base_offset == base_offset:
            return  # an empty segment with no room for an index entry; Kafka replaces it by its like
        flushes = self.settings.flush_at_roll
        self._store_epochs()
        self._guarded(lambda: active.seal(flush=flushes))
        created = Segment.create(self.folder, base_offset, self._now_ms())
        if flushes:
            try:
                self._guarded(lambda: flush_folder(self.folder))
            except LogWriteError:
                created.delete()
                raise
        active.map_indexes()
        self._segments.append(created)
        if flushes:
            self.flushed_offset = max(self.flushed_offset, self.end_offset)
        else:
            self._unflushed.append(active)

    # Reading

    def read(self, offset: int, max_bytes: int, *, up_to: int | None = None) -> bytes:
        """Return batches from the one that has `offset`, at most `max_bytes` but at least one whole batch; see `locate`."""
        return self.locate(offset, max_bytes, up_to=up_to).read()

    def locate(self, offset: int, max_bytes: int, *, up_to: int | None = None) -> LogSlice:
        """Return the bytes of one segment from the batch that has `offset`. The first batch is whole, the last one may be cut.

        `up_to` is an exclusive limit, such as the high watermark: no batch that reaches it is returned. Raises OffsetOutOfRangeError.
        """
        self._raise_failure()
        limit = self.end_offset if up_to is None else min(up_to, self.end_offset)
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRangeError(f"Offset {offset} is not between {self.start_offset} and {self.end_offset}.")
        index = self._segment_index(offset)
        while offset < limit and index < len(self._segments):
            segment = self._segments[index]
            first = segment.find(offset)
            if first is not None:
                end = self._limit_position(index, limit)
                size = min(max(max_bytes, first.size_bytes), end - first.position)
                return LogSlice(segment, first.position, max(size, 0), first.base_offset)
            index += 1
        return LogSlice(self._active, self._active.size_bytes, 0, offset)

    def batch_with(self, offset: int) -> Batch | None:
        """Return the batch that has `offset`, or the next one; None at the log's end."""
        for segment in self._segments[self._segment_index(offset) :]:
            if found := segment.find(offset):
                return found
        return None

    def upper_bound_offset(self, found: LogSlice) -> int:
        """Return an offset above those of a slice: that of an index entry, or the end of its segment (UnifiedLog.collectAbortedTransactions)."""
        bound = found.segment.upper_bound_offset(found.position + found.size_bytes)
        if bound is not None:
            return bound
        later = (segment.base_offset for segment in self._segments if segment.base_offset > found.segment.base_offset)
        return next(later, self.end_offset)

    def find_by_timestamp(self, timestamp_ms: int) -> Batch | None:
        """Return the first batch whose largest timestamp is at least `timestamp_ms` (ListOffsets), None if there is none."""
        for segment in self._segments:
            if found := segment.find_by_timestamp(timestamp_ms, self.start_offset):
                return found
        return None

    def _limit_position(self, index: int, limit: int) -> int:
        segment = self._segments[index]
        behind = self._segments[index + 1].base_offset if index + 1 < len(self._segments) else self.end_offset
        if limit >= behind:
            return segment.size_bytes
        found = segment.find(limit)
        return found.position if found else segment.size_bytes

    def _segment_index(self, offset: int) -> int:
        index = len(self._segments) - 1
        while index > 0 and self._segments[index].base_offset > offset:
            index -= 1
        return index

    # Flushing

    def flush(self) -> int:
        """Write everything to the disk and return the end offset that is safe. Raises FlushFailedError."""
        pending = self.begin_flush()
        self._guarded(pending.run)
        return self.complete(pending)

    def begin_flush(self) -> PendingFlush:
        """Return a flush of everything up to the current end, to be run in any thread while the log goes on."""
        self._raise_failure()
        # On a full disk the entries are written later, and rebuilt after a crash.
        with contextlib.suppress(LogWriteError):
            self._active.save_indexes()
        pending = PendingFlush(self._active, self.end_offset, self._unflushed)
        self._flushes.append(pending)
        return pending

    def complete(self, pending: PendingFlush) -> int:
        """Note that a flush has run, and return the end offset that is safe. Raises its FlushFailedError."""
        self._flushes.remove(pending)
        if pending.error is not None:
            self.fail(pending.error)
        if not pending.done:
            raise AssertionError("The flush has not run.")
        self._unflushed = [segment for segment in self._unflushed if segment not in pending.closed]
        self.flushed_offset = max(self.flushed_offset, pending.end_offset)
        return self.flushed_offset

    def fail(self, error: FlushFailedError) -> NoReturn:
        """Raise an error, now and in all further calls."""
        self._failure = error
        raise error

    # Removing

    def truncate_to(self, offset: int) -> bool:
        """Remove the records from `offset` on, on the disk too; a batch that reaches it goes as a whole. Return whether any was removed.

        An offset below the log's start empties the log, which then starts there.
        """
        self._raise_failure()
        if offset >= self.end_offset:
            # A leader that wrote nothing in its epoch has noted it at the end.
            self.epochs = self.epochs.truncate_from_end(self.end_offset)
            return False
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        while self._active.base_offset > offset:
            self._guarded(self._segments.pop().delete)
        self._activate()
        self.end_offset = self._guarded(lambda: self._active.truncate(offset))
        self._after_truncation()
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all records; the log is empty and starts at `offset`, as after a snapshot was fetched."""
        self._raise_failure()
        kept = next((segment for segment in self._segments if segment.base_offset == offset), None)
        # Created first, so that a crash leaves no folder without a segment.
        kept = kept or Segment.create(self.folder, offset, self._now_ms())
        others = [segment for segment in self._segments if segment is not kept]
        self._segments = [kept]
        for segment in reversed(others):
            self._guarded(segment.delete)
        self._activate()
        self._guarded(lambda: kept.truncate(offset))
        self.end_offset = self.start_offset = self.flushed_offset = offset
        self._set_epochs(LeaderEpochs())
        self._after_truncation()

    def delete_before(self, offset: int) -> int:
        """Move the log's start to `offset`, and delete the segments that end below it. Return how many.

        The active segment stays. Raises OffsetOutOfRangeError above the end.
        """
        if not self.raise_start_offset(offset):
            return 0
        deleted = 0
        while len(self._segments) > 1 and self._segments[1].base_offset <= offset:
            self._guarded(self._segments.pop(0).delete)
            deleted += 1
        if deleted:
            self._guarded(lambda: flush_folder(self.folder))
        return deleted

    def raise_start_offset(self, offset: int) -> bool:
        """Move the log's start up to `offset`; no segment is deleted. Return whether it was below.

        Raises OffsetOutOfRangeError above the end.
        """
        self._raise_failure()
        if offset > self.end_offset:
            raise OffsetOutOfRangeError(f"The log ends at {self.end_offset}, it cannot start at {offset}.")
        if offset <= self.start_offset:
            return False
        self.start_offset = offset
        self._set_epochs(self.epochs.truncate_from_start(offset))
        return True

    def pop_segments(self, count: int) -> list[Segment]:
        """Take out the first segments, whose files stay open for reads in progress, and move the log's start behind them.

        The active segment stays.
        """
        if not 0 <= count < len(self._segments):
            raise ValueError(f"The log has {len(self._segments)} segments, {count} cannot be taken out.")
        popped, self._segments = self._segments[:count], self._segments[count:]
        self._unflushed = [segment for segment in self._unflushed if segment not in popped]
        self.raise_start_offset(self._segments[0].base_offset)
        return popped

    def replace_segments(self, base_offsets: Sequence[int]) -> list[Segment]:
        """Put the segment whose files now have the first name in the place of closed segments, and return these.

        Their files stay open for reads in progress. The active segment cannot be among them.
        """
        self._raise_failure()
        replaced = [segment for segment in self._segments[:-1] if segment.base_offset in base_offsets]
        if [segment.base_offset for segment in replaced] != list(base_offsets):
            raise ValueError(f"The log in {self.folder} has no closed segments at {list(base_offsets)}.")
        segment = Segment.open(self.folder, base_offsets[0], self._now_ms())
        segment.map_indexes()
        segment.find_max_timestamp()
        self._unflushed = [segment for segment in self._unflushed if segment not in replaced]
        row = self._segments.index(replaced[0])
        self._segments[row : row + len(replaced)] = [segment]
        return replaced

    def close(self) -> None:
        """Write everything to the disk and close the files. After a failed flush the files are only closed."""
        try:
            if self._failure is None:
                self._store_epochs()
                if self._unflushed:
                    self.flush()
                self._guarded(self._active.seal)
                self.flushed_offset = self.end_offset
        finally:
            self.close_files()

    def close_files(self) -> None:
        """Close the files without writing anything, for a log that failed or is deleted."""
        for segment in self._segments:
            segment.close()
        self._segments = []
        self._failure = self._failure or FlushFailedError("The log is closed.")

    @property
    def _active(self) -> Segment:
        return self._segments[-1]

    def _activate(self) -> None:
        """Prepare a closed segment for appending."""
        if not isinstance(self._active.offset_index.entries, bytearray):
            self._active.load_indexes()
        # Of the others only those that are left; the active one is flushed in any case.
        self._unflushed = [segment for segment in self._unflushed if segment in self._segments[:-1]]

    def _after_truncation(self) -> None:
        self._guarded(lambda: flush_folder(self.folder))
        self.start_offset = min(self.start_offset, self.end_offset)
        self.flushed_offset = min(self.flushed_offset, self.end_offset)
        for pending in self._flushes:
            pending.end_offset = min(pending.end_offset, self.end_offset)
        self.epochs = self.epochs.truncate_from_end(self.end_offset)
        if not self.settings.contiguous:
            # An opened log takes only new epochs from its batches.
            self._store_epochs()

    def _read_epochs(self, *, all_checked: bool) -> LeaderEpochs:
        try:
            return read_leader_epochs(self.folder)
        except UnreadableFileError as error:
            if not all_checked:
                raise
            log.warning(
                "Building leader epochs again from the log", extra={"path": str(self.folder), "error": str(error)}
            )
            return LeaderEpochs()

    def _loaded_epochs(self, loaded: Loaded) -> LeaderEpochs:
        """Return the epochs of a log that was opened, from those on disk and those of the batches that were checked."""
        if self.settings.contiguous:
            epochs = self._stored_epochs.truncate_from_end(loaded.checked_from)
            for start in loaded.epochs:
                epochs = epochs.assign(*start)
            return epochs
        # Compaction may have removed the first batches of an epoch, so that only new epochs are taken from the batches.
        epochs = self._stored_epochs
        for start in loaded.epochs:
            if epochs.latest is None or start.epoch > epochs.latest:
                epochs = epochs.assign(*start)
        return epochs.truncate_from_end(loaded.end_offset)

    def _set_epochs(self, epochs: LeaderEpochs) -> None:
        self.epochs = epochs
        self._store_epochs()

    def _store_epochs(self) -> None:
        epochs = self.epochs
        if epochs != self._stored_epochs:
            self._guarded(lambda: write_leader_epochs(self.folder, epochs))
            self._stored_epochs = epochs

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _guarded(self, action: Callable[[], Result]) -> Result:
        try:
            return action()
        except FlushFailedError as error:
            self.fail(error)
        except OSError as error:
            raise LogWriteError(f"Failed to change the log in {self.folder}: {error}") from error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
