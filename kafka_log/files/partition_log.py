"""Log of a broker's partition: batches in segments (log.py), the producers that wrote them, and retention.

The owner of a log is one thread. Leaves out the high watermark, which the replication above it knows and passes in. Source: Kafka's
UnifiedLog.
"""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kafka_log.errors import FlushFailedError, InvalidAppendError, LogWriteError, OffsetOutOfRangeError
from kafka_log.files.deferred_deletion import DeferredDeletion
from kafka_log.files.durable import make_folder
from kafka_log.files.interrupted_swap import finish_interrupted_swap
from kafka_log.files.log import Log
from kafka_log.files.partition_settings import Checkpoints, PartitionSettings
from kafka_log.files.pending_flush import PendingFlush
from kafka_log.files.producer_recovery import ProducerRecovery, rebuild_producers
from kafka_log.files.producer_snapshots import ProducerSnapshots
from kafka_log.files.segment import Segment
from kafka_log.files.transaction_index_file import TransactionIndexFile
from kafka_log.format.batches import CheckedAppend, appendable_bytes, parts_of_batches
from kafka_log.format.flush_schedule import is_flush_due_by_messages, is_flush_due_by_time
from kafka_log.format.leader_append import leader_batch
from kafka_log.format.producer_batches import ProducerBatch, read_producer_batches
from kafka_log.format.producer_states import PreparedProducers, ProducerStates
from kafka_log.format.producers import Origin
from kafka_log.format.retention import RetentionReason, SegmentAge, deletable_segments
from kafka_log.format.transaction_index import AbortedTransaction
from kafka_wire.failures import WireError
from kafka_wire.records import NO_TIMESTAMP

log = logging.getLogger(__name__)


class PartitionAppend(NamedTuple):
    """Offsets of appended batches, both inclusive; for a batch that had been appended before, those that it has."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int = NO_TIMESTAMP
    """Time of the append, if the topic's records get it; for a duplicate the largest timestamp of the batch."""


class PartitionLog:
    """An open log of a broker's partition. After a FlushFailedError it must be opened again."""

    def __init__(
        self,
        folder: Path,
        settings: PartitionSettings | None = None,
        checkpoints: Checkpoints | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open the log in `folder`, which is created if it is missing.

        A log with damage is cut in front of it, as a replica fetches again what is missing (ADR 49). Raises LogWriteError,
        UnreadableFileError, and UnsupportedFormatError for a log with messages of formats 0 and 1.
        """
        self.settings = settings or PartitionSettings()
        checkpoints = checkpoints or Checkpoints()
        self._clock = clock
        make_folder(folder)
        finish_interrupted_swap(folder)
        start, now_ms = checkpoints.log_start_offset, self.now_ms()
        recovery = ProducerRecovery(
            folder, log_start_offset=start, now_ms=now_ms, expiration_ms=self.settings.producer_expiration_ms
        )
        self.log = Log(
            folder,
            self.settings.log,
            recovery_point=checkpoints.recovery_point,
            is_clean=checkpoints.is_clean,
            recovery=recovery,
            clock=clock,
        )
        self.producers = ProducerStates()
        self._snapshots = ProducerSnapshots(folder)
        self.deletions = DeferredDeletion(folder, self.settings.file_delete_delay_ms)
        self.before_truncation: Callable[[int], None] | None = None
        """Called before records from an offset on are removed, with that offset: a compaction in progress must be aborted."""
        self.last_flush_ms = now_ms
        self._unflushed_index: TransactionIndexFile | None = None
        if self.log.end_offset < start:
            # Segments were removed from the disk.
            log.warning("Log ends below its start offset", extra={"path": str(folder), "offset": start})
            self.log.truncate_fully_and_start_at(start)
        self.log.raise_start_offset(start)
        self._snapshots.delete_strays(self.log.segment_offsets)
        self._rebuild_producers(is_clean=checkpoints.is_clean)

    @property
    def start_offset(self) -> int:
        """Lowest offset that may be read."""
        return self.log.start_offset

    @property
    def end_offset(self) -> int:
        """Offset that the next record gets."""
        return self.log.end_offset

    def reconfigure(self, settings: PartitionSettings) -> None:
        """Apply changed settings; what is in the log does not change."""
        self.settings = settings
        self.log.settings = settings.log
        self.deletions.delay_ms = settings.file_delete_delay_ms

    # Appending

    def append_as_leader(
        self,
        data: bytes | memoryview,
        leader_epoch: int,
        origin: Origin = Origin.CLIENT,
        *,
        transaction_version: int = 0,
    ) -> PartitionAppend:
        """Append the one batch of a producer or a coordinator. Nothing is flushed.

        A batch that was sent again is not appended, and its first offsets are returned. Raises RefusedAppendError, and LogWriteError
        as Log.append.
        """
        made = leader_batch(
            data,
            self.settings.append,
            base_offset=self.log.end_offset,
            leader_epoch=leader_epoch,
            origin=origin,
            now_ms=self.now_ms(),
        )
        return self._append(
            CheckedAppend((made.head, made.checked), made.batch.size_bytes, [made.batch]),
            made.read_producers,
            origin,
            transaction_version=transaction_version,
            log_append_time_ms=made.batch.max_timestamp_ms if self.settings.append.log_append_time else NO_TIMESTAMP,
        )

    def append_as_follower(self, data: bytes | memoryview, leader_epoch: int) -> PartitionAppend | None:
        """Append what a leader returned: whole batches up to the first of an epoch above `leader_epoch`, None if there is none.

        Raises InvalidAppendError, and LogWriteError as Log.append.
        """
        whole = data[: appendable_bytes(data, leader_epoch)]
        first: PartitionAppend | None = None
        last: PartitionAppend | None = None
        # A leader with larger segments, from before its setting was changed, returns more than fits into one here.
        for part in parts_of_batches(whole, self.settings.log.segment_bytes):
            last = self._append(self.log.check(part), partial(read_producer_batches, part), Origin.REPLICATION)
            first = first or last
        return PartitionAppend(first.first_offset, last.last_offset) if first and last else None

    def _append(
        self,
        checked: CheckedAppend,
        read_producers: Callable[[], Sequence[ProducerBatch]],
        origin: Origin,
        *,
        transaction_version: int = 0,
        log_append_time_ms: int = NO_TIMESTAMP,
    ) -> PartitionAppend:
        try:
            producers = read_producers()
        except WireError as error:
            raise InvalidAppendError(str(error)) from None
        active = self.log.active_base_offset
        try:
            self.log.make_room(checked)
        finally:
            if self.log.active_base_offset != active:
                self._rolled()
        # After the roll, as in Kafka: a batch that is refused or was sent again may begin a segment.
        prepared = self.producers.prepare(producers, origin, transaction_version=transaction_version)
        if prepared.duplicate is not None:
            known = prepared.duplicate
            return PartitionAppend(known.first_offset, known.last_offset, known.timestamp_ms)
        appended = self.log.write(checked)
        self._commit(prepared, appended.last_offset + 1)
        return PartitionAppend(appended.first_offset, appended.last_offset, log_append_time_ms)

    def _commit(self, prepared: PreparedProducers, end_offset: int) -> None:
        aborted = self.producers.commit(prepared, end_offset)
        if not aborted:
            return
        index = TransactionIndexFile(self.log.folder, self.log.active_base_offset)
        try:
            index.append(aborted)
        except LogWriteError as error:
            # The batches are appended already. Recovery builds the index again.
            self.log.fail(FlushFailedError(f"{error} The log must be opened again, which rebuilds the index."))
        self._unflushed_index = index
        self.log.segments[-1].has_transactions = True

    def roll(self) -> None:
        """Begin another segment at the log's end."""
        active = self.log.active_base_offset
        self.log.roll()
        if self.log.active_base_offset != active:
            self._rolled()

    def _rolled(self) -> None:
        """Take a snapshot of the producers at the start of the new segment."""
        self._flush_index()
        self.producers.end_offset = self.log.active_base_offset
        self._snapshots.take(self.producers)

    # Reading

    def aborted_transactions(self, fetch_offset: int, upper_bound_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions with records from `fetch_offset` on and below `upper_bound_offset`."""
        found: list[AbortedTransaction] = []
        for segment, end_offset in zip(self.log.segments, self._segment_ends(), strict=True):
            if end_offset <= fetch_offset or not self._has_transactions(segment):
                continue
            index = TransactionIndexFile(self.log.folder, segment.base_offset)
            collected = index.collect(fetch_offset, upper_bound_offset)
            found += collected.transactions
            if collected.is_complete:
                break
        return found

    def _has_transactions(self, segment: Segment) -> bool:
        if segment.has_transactions is None:
            segment.has_transactions = TransactionIndexFile(self.log.folder, segment.base_offset).path.exists()
        return segment.has_transactions

    # Flushing

    def is_flush_due_by_messages(self) -> bool:
        """Return whether what was appended must be flushed before it is acknowledged (flush.messages)."""
        return is_flush_due_by_messages(
            self.settings.flush, end_offset=self.end_offset, flushed_offset=self.log.flushed_offset
        )

    def is_flush_due_by_time(self) -> bool:
        """Return whether the scheduler flushes the log now (flush.ms)."""
        return is_flush_due_by_time(
            self.settings.flush,
            end_offset=self.end_offset,
            flushed_offset=self.log.flushed_offset,
            last_flush_ms=self.last_flush_ms,
            now_ms=self.now_ms(),
        )

    def flush(self) -> int:
        """Write everything to the disk and return the new recovery point. Raises FlushFailedError."""
        self._flush_index()
        return self._flushed(self.log.flush())

    def begin_flush(self) -> PendingFlush:
        """Return a flush of everything up to the current end, as Log.begin_flush."""
        self._flush_index()
        return self.log.begin_flush()

    def complete(self, pending: PendingFlush) -> int:
        """Note that a flush has run, and return the new recovery point. Raises its FlushFailedError."""
        return self._flushed(self.log.complete(pending))

    def _flushed(self, recovery_point: int) -> int:
        self.last_flush_ms = self.now_ms()
        return recovery_point

    def _flush_index(self) -> None:
        if self._unflushed_index is not None:
            try:
                self._unflushed_index.flush()
            except FlushFailedError as error:
                self.log.fail(error)
            self._unflushed_index = None

    # Removing

    def truncate_to(self, offset: int) -> bool:
        """Remove the records from `offset` on, as Log.truncate_to, and what they changed of the producers."""
        if offset < self.end_offset:
            self._announce_truncation(offset)
        if not self.log.truncate_to(offset):
            return False
        self._unflushed_index = None
        TransactionIndexFile(self.log.folder, self.log.active_base_offset).truncate(self.log.end_offset)
        self._rebuild_producers()
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all records and producers; the log is empty and starts at `offset`."""
        self._announce_truncation(min(offset, self.start_offset))
        self.log.truncate_fully_and_start_at(offset)
        self._unflushed_index = None
        TransactionIndexFile(self.log.folder, offset).reset()
        self.producers.clear(offset)
        self._snapshots.restart(0)

    def _announce_truncation(self, offset: int) -> None:
        if self.before_truncation is not None:
            self.before_truncation(offset)

    def raise_start_offset(self, offset: int, *, high_watermark: int) -> bool:
        """Move the log's start up to `offset` (DeleteRecords). Return whether it was below.

        The next `delete_old_segments` deletes segments that end below it. Raises OffsetOutOfRangeError above the high watermark.
        """
        if offset > high_watermark:
            raise OffsetOutOfRangeError(
                f"The log cannot start at {offset}, which is above the high watermark {high_watermark}."
            )
        if not self.log.raise_start_offset(offset):
            return False
        self.producers.raise_start(offset)
        self._snapshots.after_start_moved(offset)
        return True

    def delete_old_segments(self, *, high_watermark: int) -> list[RetentionReason]:
        """Take out the segments that retention deletes, and return why. Raises LogWriteError."""
        now_ms = self.now_ms()
        reasons = deletable_segments(
            self.segment_ages(),
            self.settings.retention,
            log_start_offset=self.log.start_offset,
            high_watermark=high_watermark,
            now_ms=now_ms,
        )
        if not reasons:
            return reasons
        if len(reasons) == len(self.log.segments):
            self.roll()
        popped = self.log.pop_segments(len(reasons))
        for segment, reason in zip(popped, reasons, strict=True):
            log.info("Deleting old segment", extra={"path": str(segment.path), "reason": reason.value})
        self.deletions.add(popped, now_ms)
        self.producers.raise_start(self.log.start_offset)
        self._snapshots.after_start_moved(self.log.start_offset)
        return reasons

    def has_deletions_due(self) -> bool:
        """Return whether `run_deletions` deletes anything now."""
        return self.deletions.is_due(self.now_ms())

    def run_deletions(self) -> int:
        """Delete the files of segments whose delay is over, in any thread but one at a time; return the number of segments."""
        return self.deletions.run(self.now_ms())

    def remove_expired_producers(self) -> int:
        """Remove producers that were idle too long; return how many."""
        return self.producers.remove_expired(self.now_ms(), self.settings.producer_expiration_ms)

    def close(self) -> None:
        """Write everything to the disk, with a snapshot of the producers at the log's end, and close the files."""
        try:
            self._flush_index()
            self._snapshots.take(self.producers)
        finally:
            self.deletions.close()
            self.log.close()

    def close_files(self) -> None:
        """Close the files without writing anything, for a log that failed or is deleted."""
        self.deletions.close()
        self.log.close_files()

    def segment_ages(self) -> list[SegmentAge]:
        """Return sizes and ages of the segments, in order."""
        return [
            SegmentAge(
                segment.base_offset,
                end_offset,
                segment.size_bytes,
                segment.max_timestamp.timestamp_ms
                if segment.max_timestamp.timestamp_ms >= 0
                else int(segment.path.stat().st_mtime * 1000),
                is_active=segment.base_offset == self.log.active_base_offset,
            )
            for segment, end_offset in zip(self.log.segments, self._segment_ends(), strict=True)
        ]

    def _segment_ends(self) -> list[int]:
        """Return the base offset of the segment behind each one; behind the active one, the log's end."""
        return [*self.log.segment_offsets[1:], self.log.end_offset]

    def _rebuild_producers(self, *, is_clean: bool = False) -> None:
        rebuild_producers(
            self.producers,
            self._snapshots,
            self.log.segments,
            segment_offsets=self.log.segment_offsets,
            log_start_offset=self.log.start_offset,
            last_offset=self.log.end_offset,
            now_ms=self.now_ms(),
            expiration_ms=self.settings.producer_expiration_ms,
            is_clean=is_clean,
        )

    def now_ms(self) -> int:
        """Return the time in milliseconds."""
        return int(self._clock() * 1000)
