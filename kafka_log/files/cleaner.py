"""Compaction of closed segments into `.cleaned` files.

It reads the log's files and changes none of them, so that it can run in another process: its input and its result are plain values. The
log's owner then swaps the new segments in (`compaction.PendingSwap`). A crash before leaves files that opening the log deletes.
Source: Kafka's Cleaner.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka_log.errors import CorruptLogError, LogWriteError
from kafka_log.files.segment import Segment
from kafka_log.files.segment_batches import read_whole_batches
from kafka_log.files.transaction_index_file import TransactionIndexFile
from kafka_log.format.batches import CheckedAppend, read_batches
from kafka_log.format.cleaning import (
    DEFAULT_MAX_KEYS,
    CleaningRound,
    LastRecord,
    OffsetMap,
    SegmentSize,
    TransactionTracker,
    cleaned_batches,
    grouped_segments,
    map_offsets,
)
from kafka_log.format.names import CLEANED_SUFFIX, PRODUCERS_SUFFIX, SEGMENT_SUFFIXES, segment_name
from kafka_log.format.roll import LogSettings
from kafka_log.format.transaction_index import AbortedTransaction
from kafka_wire.failures import WireError

CHUNK_BYTES = 1024 * 1024
"""Batches that are read, filtered and written at once; their records are objects, which take several times as much."""


@dataclass(frozen=True, slots=True)
class CleaningTask:
    """A round of compaction of one log."""

    folder: Path
    segment_offsets: Sequence[int]
    """Base offsets of the segments below `first_uncleanable_offset`."""
    first_dirty_offset: int
    """Offset up to which the log was compacted before."""
    first_uncleanable_offset: int
    """Base offset of the first segment that is not compacted: the active one at the latest."""
    settings: LogSettings
    aborted: Mapping[int, Sequence[AbortedTransaction]]
    """Aborted transactions with records in a segment, by its base offset."""
    aborted_in_dirty_part: Sequence[AbortedTransaction]
    last_records: Mapping[int, LastRecord]
    now_ms: int
    delete_retention_ms: int
    max_keys: int = DEFAULT_MAX_KEYS


@dataclass(frozen=True, slots=True)
class CleanedLog:
    """Result of a round."""

    groups: Sequence[Sequence[int]]
    """Base offsets of segments that became one, which has the first of them and `.cleaned` files."""
    end_offset: int
    """Offset up to which the log is compacted: the first dirty offset of the next round."""


def clean_segments(task: CleaningTask, throttle: Callable[[int], None] = lambda _: None) -> CleanedLog:
    """Write the `.cleaned` files of a round. Raises CorruptLogError for batches that cannot be read, and LogWriteError.

    `throttle` gets each number of bytes that were read or written, and may wait. After an error no file is left.
    """
    with contextlib.ExitStack() as opened:
        segments = [Segment.open(task.folder, base_offset, task.now_ms) for base_offset in task.segment_offsets]
        for segment in segments:
            opened.callback(segment.close)
            segment.map_indexes()
        offsets = _mapped_offsets(segments, task, throttle)
        end_offset = offsets.latest_offset + 1
        below = [segment for segment in segments if segment.base_offset < end_offset]
        groups = grouped_segments(
            [_size(segment) for segment in below],
            segment_bytes=task.settings.segment_bytes,
            index_max_bytes=task.settings.index_max_bytes,
            end_offset=task.first_uncleanable_offset,
        )
        cleaning = CleaningRound(
            offsets, task.last_records, task.first_uncleanable_offset, task.now_ms, task.delete_retention_ms
        )
        transactions = TransactionTracker()
        by_offset = {segment.base_offset: segment for segment in below}
        # Left by a round that was killed
        delete_segment_copies(task.folder, task.segment_offsets)
        result = CleanedLog([[segment.base_offset for segment in group] for group in groups], end_offset)
        try:
            for group in result.groups:
                old = [by_offset[base_offset] for base_offset in group]
                _clean_group(old, task, cleaning, transactions, throttle)
        except (LogWriteError, CorruptLogError):
            delete_segment_copies(task.folder, [group[0] for group in result.groups])
            raise
        return result


def delete_segment_copies(folder: Path, base_offsets: Sequence[int], suffix: str = CLEANED_SUFFIX) -> None:
    """Delete the files of segments that end in `.cleaned` or `.swap`. Raises OSError."""
    for base_offset in base_offsets:
        for kind in SEGMENT_SUFFIXES:
            (folder / segment_name(base_offset, kind + suffix)).unlink(missing_ok=True)


def rename_segment_files(folder: Path, base_offset: int, old_suffix: str, new_suffix: str) -> None:
    """Change the further suffix of a segment's files, the log first. Raises OSError."""
    for suffix in SEGMENT_SUFFIXES:
        path = folder / segment_name(base_offset, suffix + old_suffix)
        if path.exists() and suffix != PRODUCERS_SUFFIX:
            path.rename(folder / segment_name(base_offset, suffix + new_suffix))


def _mapped_offsets(segments: Sequence[Segment], task: CleaningTask, throttle: Callable[[int], None]) -> OffsetMap:
    """Read the dirty part, as far as its keys fit into the map."""
    offsets, transactions = OffsetMap(task.max_keys), TransactionTracker()
    transactions.add(task.aborted_in_dirty_part)
    ends = [*(segment.base_offset for segment in segments[1:]), task.first_uncleanable_offset]
    for segment, end_offset in zip(segments, ends, strict=True):
        if end_offset <= task.first_dirty_offset:
            continue
        for data in _read(segment, task.first_dirty_offset, throttle):
            with _names_the_segment(segment):
                is_whole = map_offsets(data, offsets, transactions, task.first_dirty_offset)
            if not is_whole:
                return offsets
        # The last batches of a segment may have been removed.
        offsets.read_up_to(end_offset - 1)
    return offsets


def _clean_group(
    group: Sequence[Segment],
    task: CleaningTask,
    cleaning: CleaningRound,
    transactions: TransactionTracker,
    throttle: Callable[[int], None],
) -> None:
    cleaned = Segment.create(task.folder, group[0].base_offset, task.now_ms, CLEANED_SUFFIX)
    try:
        for segment in group:
            transactions.add(task.aborted.get(segment.base_offset, ()))
            for data in _read(segment, segment.base_offset, throttle):
                with _names_the_segment(segment):
                    kept = b"".join(cleaned_batches(data, cleaning, transactions))
                if kept:
                    batches = list(read_batches(kept, verify_checksums=False))
                    cleaned.append(CheckedAppend((kept,), len(kept), batches), task.settings.index_interval_bytes)
                    throttle(len(kept))
        index = TransactionIndexFile(task.folder, group[0].base_offset, CLEANED_SUFFIX)
        index.append(transactions.kept)
        if transactions.kept:
            index.flush()
        transactions.kept = []
        cleaned.seal()
        # Retention by time counts from the last change of a segment without timestamps.
        shutil.copystat(group[-1].path, cleaned.path)
    except OSError as error:
        raise LogWriteError(f"Failed to compact {cleaned.path}: {error.strerror}") from error
    finally:
        cleaned.close()


def _read(segment: Segment, offset: int, throttle: Callable[[int], None]) -> Iterator[bytes]:
    """Yield whole batches from the one that has `offset`."""
    first = segment.find(offset)
    position = segment.size_bytes if first is None else first.position
    for data in read_whole_batches(segment, position, segment.size_bytes, CHUNK_BYTES):
        throttle(len(data))
        yield data


@contextlib.contextmanager
def _names_the_segment(segment: Segment) -> Iterator[None]:
    try:
        yield
    except WireError as error:
        raise CorruptLogError(
            f"Failed to compact log segment {segment.path}: {error} The segment is left as it is."
        ) from error


def _size(segment: Segment) -> SegmentSize:
    return SegmentSize(
        segment.base_offset,
        segment.size_bytes,
        len(segment.offset_index.entries),
        len(segment.time_index.entries),
    )
