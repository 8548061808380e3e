"""Compaction of a partition's log by its owner: what a round reads, and the swap of the new segments.

Between the two, `cleaner.clean_segments` does the work, which may be in another process. Source: Kafka's LogCleanerManager and
LocalLog.replaceSegments.
"""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from kafka_log.errors import LogWriteError
from kafka_log.files.cleaner import CleaningTask, delete_segment_copies, rename_segment_files
from kafka_log.files.durable import flush_folder
from kafka_log.files.partition_log import PartitionLog
from kafka_log.format.cleaning import DEFAULT_MAX_KEYS, last_records
from kafka_log.format.cleaning_schedule import DirtyPart, dirty_part
from kafka_log.format.names import CLEANED_SUFFIX, SWAP_SUFFIX


def find_dirty_part(partition: PartitionLog, cleaned_offset: int | None, *, high_watermark: int) -> DirtyPart:
    """Return the part of a log that is not compacted yet, from the offset up to which it was compacted (None for never).

    Only closed segments count, below open transactions and the high watermark, and older than min.compaction.lag.ms.
    """
    unstable = partition.producers.first_unstable_offset
    segments = {segment.base_offset: segment for segment in partition.log.segments}
    return dirty_part(
        partition.segment_ages(),
        partition.settings.cleaning,
        cleaned_offset=cleaned_offset,
        log_start_offset=partition.start_offset,
        stable_offset=high_watermark if unstable is None else min(unstable, high_watermark),
        now_ms=partition.now_ms(),
        first_timestamp_ms=lambda base_offset: segments[base_offset].fill().first_timestamp_ms,
    )


def prepare_cleaning(
    partition: PartitionLog, cleaned_offset: int | None, *, high_watermark: int, max_keys: int = DEFAULT_MAX_KEYS
) -> CleaningTask | None:
    """Return a round of compaction of the dirty part; None if there is nothing to do."""
    dirty = find_dirty_part(partition, cleaned_offset, high_watermark=high_watermark)
    closed = [age for age in partition.segment_ages() if age.base_offset < dirty.end_offset]
    start = max(dirty.first_offset, partition.log.segment_offsets[0])
    if not closed or start >= dirty.end_offset:
        return None
    return CleaningTask(
        partition.log.folder,
        [age.base_offset for age in closed],
        start,
        dirty.end_offset,
        partition.settings.log,
        {age.base_offset: partition.aborted_transactions(age.base_offset, age.end_offset) for age in closed},
        partition.aborted_transactions(start, dirty.end_offset),
        last_records(partition.producers),
        partition.now_ms(),
        partition.settings.cleaning.delete_retention_ms,
        max_keys,
    )


class PendingSwap:
    """A compacted segment that takes the place of those at the base offsets of `group`.

    `prepare` blocks and may run in another thread. Then the log's owner calls `finish`, or `abort` before it truncates the log: the
    segment has records that the log no longer has. A crash in between is finished or undone when the log is opened again.
    """

    def __init__(self, folder: Path, group: Sequence[int]) -> None:
        self._folder = folder
        self._group = group
        self._lock = threading.Lock()
        self._is_aborted = False

    def prepare(self) -> None:
        """Mark the new segment as whole, on the disk, before the old ones are removed. Raises LogWriteError and FlushFailedError."""
        with self._lock, self._names_the_swap():
            if not self._is_aborted:
                rename_segment_files(self._folder, self._group[0], CLEANED_SUFFIX, SWAP_SUFFIX)
                flush_folder(self._folder)

    def finish(self, partition: PartitionLog) -> None:
        """Swap the files, unless the swap was aborted; a later flush of the folder writes their names to the disk. Raises LogWriteError.

        After an error the old segments are read until the log is closed.
        """
        if self._is_aborted:
            return
        old = [segment for segment in partition.log.segments if segment.base_offset in self._group]
        with self._names_the_swap():
            partition.deletions.add(old, partition.now_ms(), replaced_offset=self._group[0])
            rename_segment_files(self._folder, self._group[0], SWAP_SUFFIX, "")
        partition.log.replace_segments(self._group)

    def abort(self) -> None:
        """Delete the new segment. Raises LogWriteError."""
        with self._lock, self._names_the_swap():
            self._is_aborted = True
            for suffix in (CLEANED_SUFFIX, SWAP_SUFFIX):
                delete_segment_copies(self._folder, self._group[:1], suffix)

    @contextlib.contextmanager
    def _names_the_swap(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LogWriteError(
                f"Failed to swap compacted segment {self._group[0]} in {self._folder}: {error}"
            ) from error
