"""Compaction of a partition's log by its owner: what a round reads, and the swap of the new segments.

Between the two, `cleaner.clean_segments` does the work, which may be in another process. Source: Kafka's LogCleanerManager and
LocalLog.replaceSegments.
"""

from collections.abc import Sequence

from kafka_log.errors import LogWriteError
from kafka_log.files.cleaner import CleaningTask, rename_segment_files
from kafka_log.files.durable import flush_folder
from kafka_log.files.partition_log import PartitionLog
from kafka_log.format.cleaning import first_uncleanable_offset, last_records
from kafka_log.format.names import CLEANED_SUFFIX, SWAP_SUFFIX


def prepare_cleaning(partition: PartitionLog, first_dirty_offset: int, *, high_watermark: int) -> CleaningTask | None:
    """Return a round of compaction from the offset up to which the log was compacted; None if there is nothing to do.

    Only closed segments are compacted, below open transactions and the high watermark, and older than min.compaction.lag.ms.
    """
    ages, now_ms, settings = partition.segment_ages(), partition.now_ms(), partition.settings.cleaning
    unstable = partition.producers.first_unstable_offset
    end = first_uncleanable_offset(
        ages,
        stable_offset=high_watermark if unstable is None else min(unstable, high_watermark),
        min_compaction_lag_ms=settings.min_compaction_lag_ms,
        now_ms=now_ms,
    )
    closed = [age for age in ages if age.base_offset < end]
    start = max(first_dirty_offset, ages[0].base_offset)
    if not closed or start >= end:
        return None
    return CleaningTask(
        partition.log.folder,
        [age.base_offset for age in closed],
        start,
        end,
        partition.settings.log,
        {age.base_offset: partition.aborted_transactions(age.base_offset, age.end_offset) for age in closed},
        partition.aborted_transactions(start, end),
        last_records(partition.producers),
        now_ms,
        settings.delete_retention_ms,
        settings.max_keys,
    )


def swap_cleaned(partition: PartitionLog, group: Sequence[int]) -> None:
    """Put a compacted segment in the place of those at the base offsets of `group`. Raises LogWriteError.

    After an error the old segments are read until the log is closed. Opening it again finishes or undoes the swap.
    """
    folder, base_offset = partition.log.folder, group[0]
    old = [segment for segment in partition.log.segments if segment.base_offset in group]
    try:
        rename_segment_files(folder, base_offset, CLEANED_SUFFIX, SWAP_SUFFIX)
        # The new segment is on the disk before the old ones are removed.
        flush_folder(folder)
        partition.deletions.add(old, partition.now_ms(), replaced_offset=base_offset)
        rename_segment_files(folder, base_offset, SWAP_SUFFIX, "")
    except OSError as error:
        raise LogWriteError(f"Failed to swap compacted segment {base_offset} in {folder}: {error}") from error
    partition.log.replace_segments(group)
    flush_folder(folder)
