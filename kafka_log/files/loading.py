"""Opening of a log's folder: leftovers are deleted, segments checked, and a torn tail is cut.

Segments below the recovery point were flushed with their indexes and are not read. All others are checked from their first byte, as
Kafka does; the quorum's log has no recovery point, so that all of it is checked. After a clean shutdown nothing is checked.
"""

import logging
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Protocol

from kafka_log.errors import CorruptLogError, UnreadableFileError, UnsupportedFormatError
from kafka_log.files.segment import Segment, delete_segment_files
from kafka_log.format.batches import BadBatchError, batch_at, find_valid_batch
from kafka_log.format.epochs import EpochStart
from kafka_log.format.index_entries import OFFSET_ENTRY, TIME_ENTRY, entry_error, last_position
from kafka_log.format.names import (
    CLEANED_SUFFIX,
    DELETED_CHECKPOINT_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    PRODUCERS_SUFFIX,
    SWAP_SUFFIX,
    segment_name,
    segment_of,
)
from kafka_log.format.old_formats import HEAD_BYTES, announced_bytes, old_format
from kafka_log.format.recovery import Damage, corruption, is_torn_tail
from kafka_log.format.roll import LogSettings
from kafka_log.format.scan import SegmentScan
from kafka_wire.records import HEADER_BYTES

log = logging.getLogger(__name__)

CHUNK_BYTES = 4 * 1024 * 1024
"""Read at once: large enough for the disk's full speed, small enough for the processor's cache and for any container."""


@dataclass(slots=True)
class Loaded:
    """Segments of a log in order, the last of them active."""

    segments: list[Segment]
    end_offset: int
    checked_from: int
    """Offset from which batches were checked; `epochs` has the epochs that begin behind it, and the epoch at it."""
    epochs: list[EpochStart]


class SegmentRecovery(Protocol):
    """Consumer of the batches of each checked segment, which rebuilds what is not an index or an epoch."""

    def is_sound(self, segment: Segment) -> bool:
        """Return whether a flushed segment needs no check."""

    def begin(self, segment: Segment, opened: list[Segment], later: list[int]) -> None:
        """Prepare for a segment; `opened` are the segments before it, `later` the base offsets behind it."""

    def replay(self, batches: bytes) -> None:
        """Apply valid batches of the segment, in order."""

    def end(self, end_offset: int) -> None:
        """Note the end of the segment's valid batches."""


def load_segments(
    folder: Path,
    settings: LogSettings,
    *,
    recovery_point: int,
    now_ms: int,
    is_clean: bool = False,
    recovery: SegmentRecovery | None = None,
) -> Loaded:
    """Open the segments in a folder; there may be none. After a clean shutdown (`is_clean`) they are not checked.

    Raises CorruptLogError for damage that a crash does not explain, unless `settings.cut_at_corruption`, and UnsupportedFormatError.
    """
    bases = _find_segments(folder)
    loaded = Loaded([], bases[0] if bases else 0, bases[0] if bases else 0, [])
    for base, next_base in zip_longest(bases, bases[1:]):
        segment = Segment.open(folder, base, now_ms)
        loaded.segments.append(segment)
        if settings.cut_at_corruption:
            _refuse_old_format(segment, 0)
        is_flushed = is_clean or (next_base is not None and next_base <= recovery_point)
        is_sound = recovery is None or recovery.is_sound(segment)
        if is_flushed and is_sound and _has_sound_indexes(segment, is_clean=is_clean):
            end = _end_of_active(segment) if next_base is None else next_base
            if end is not None:
                loaded.end_offset = loaded.checked_from = end
                # The epochs on disk are those up to here, also where a segment before this one had to be checked.
                loaded.epochs = []
                continue
        later = bases[len(loaded.segments) :]
        damage = _check(segment, loaded, settings, recovery, later=later)
        if damage is not None:
            _cut(damage, loaded, settings, later=later)
            break
        if next_base is not None:
            segment.seal()
            segment.map_indexes()
    return loaded


def _find_segments(folder: Path) -> list[int]:
    """Delete what an interrupted deletion left, and return the base offsets of the segments in order."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    for name in names:
        if name.endswith(SWAP_SUFFIX):
            raise UnreadableFileError(
                f"{folder / name} is from an interrupted compaction of Kafka; open the folder with Kafka once."
            )
        if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX)) and not name.endswith(DELETED_CHECKPOINT_SUFFIX):
            (folder / name).unlink(missing_ok=True)
    files = [found for name in names if (found := segment_of(name))]
    bases = [base for base, suffix in files if suffix == LOG_SUFFIX]
    for base in {base for base, suffix in files if suffix != PRODUCERS_SUFFIX} - set(bases):
        log.warning("Deleting index without a log segment", extra={"path": str(folder), "offset": base})
        delete_segment_files(folder, base)
    return bases


def _has_sound_indexes(segment: Segment, *, is_clean: bool) -> bool:
    """Return whether both indexes exist and are in order; after a clean shutdown their entries are not read."""
    for index, layout in ((segment.offset_index, OFFSET_ENTRY), (segment.time_index, TIME_ENTRY)):
        if not index.path.is_file():
            return False
        index.map()
        if len(index.entries) % layout.size or (not is_clean and entry_error(index.entries, layout)):
            return False
    segment.find_max_timestamp()
    return True


def _end_of_active(segment: Segment) -> int | None:
    """Return the offset behind the last batch of a segment that is not checked, None unless a whole batch is at its end."""
    segment.load_indexes()
    position, end = last_position(segment.offset_index.entries), segment.base_offset
    while position < segment.size_bytes:
        batch, _ = batch_at(segment.read(position, HEADER_BYTES), segment.base_offset)
        if batch is None:
            return None
        position += batch.size_bytes
        end = batch.last_offset + 1
    return end if position == segment.size_bytes else None


def _check(
    segment: Segment, loaded: Loaded, settings: LogSettings, recovery: SegmentRecovery | None, *, later: list[int]
) -> Damage | None:
    """Check a segment and rebuild its indexes; return its damage."""
    if recovery is not None:
        recovery.begin(segment, loaded.segments[:-1], later)
    scan = SegmentScan(
        segment.base_offset,
        loaded.end_offset if settings.contiguous else max(segment.base_offset, loaded.end_offset),
        settings.index_interval_bytes,
        contiguous=settings.contiguous,
    )
    if settings.contiguous and segment.base_offset != loaded.end_offset:
        scan.bad = BadBatchError(
            0, f"the segment starts at offset {segment.base_offset}, expected is {loaded.end_offset}"
        )
    size = segment.size_bytes
    while scan.bad is None and scan.position < size and scan.position + scan.wanted_bytes <= size:
        start = scan.position
        data = segment.read(start, max(scan.wanted_bytes, CHUNK_BYTES))
        scan.feed(data)
        if recovery is not None:
            recovery.replay(data[: scan.position - start])
    scan.finish(size)
    damage = None
    if scan.bad is not None:
        if settings.cut_at_corruption:
            _refuse_old_format(segment, scan.bad.position)
        damage = Damage(
            scan.bad, scan.next_offset, _valid_position(segment, scan), tuple(_with_content(segment, later))
        )
        if not is_torn_tail(damage) and not settings.cut_at_corruption:
            raise CorruptLogError(corruption(str(segment.path), damage))
    segment.recovered(scan)
    segment.flush()
    segment.save_indexes()
    if recovery is not None:
        recovery.end(scan.next_offset)
    loaded.end_offset = scan.next_offset
    known = loaded.epochs[-1].epoch if loaded.epochs else -1
    loaded.epochs += [start for start in scan.epochs if start.epoch > known]
    return damage


def _refuse_old_format(segment: Segment, position: int) -> None:
    """Raise UnsupportedFormatError for a message of format 0 or 1, which is no damage that a log may be cut at."""
    size = announced_bytes(segment.read(position, HEAD_BYTES))
    found = old_format(segment.read(position, size)) if size is not None and size <= segment.size_bytes else None
    if found is not None:
        raise UnsupportedFormatError(
            f"Log segment {segment.path} has messages of format {found} at byte offset {position}; only format 2 is supported. "
            "Copy the topic to a new one with brokers of Kafka 3, or delete the topic."
        )


def _valid_position(segment: Segment, scan: SegmentScan) -> int | None:
    if not segment.size_bytes:
        return None
    with segment.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return find_valid_batch(content, scan.position, scan.next_offset)


def _with_content(segment: Segment, later: list[int]) -> Iterator[int]:
    return (base for base in later if segment.path.with_name(segment_name(base)).stat().st_size)


def _cut(damage: Damage, loaded: Loaded, settings: LogSettings, *, later: list[int]) -> None:
    """Delete the segments behind the damaged one, which ends in front of the damage.

    Without content it is deleted too. A broker keeps it, as Kafka does.
    """
    log.warning(
        "Cut the log at an invalid batch",
        extra={
            "path": str(loaded.segments[-1].path),
            "position": damage.bad.position,
            "offset": loaded.end_offset,
            "reason": damage.bad.reason,
        },
    )
    damaged = loaded.segments[-1]
    for base in reversed(later):
        delete_segment_files(damaged.path.parent, base)
    if not damaged.size_bytes and len(loaded.segments) > 1 and not settings.cut_at_corruption:
        damaged.delete()
        loaded.segments.pop()
        loaded.segments[-1].load_indexes()
