"""Opening of a log's folder: leftovers are deleted, segments checked, and a torn tail is cut.

Segments below the recovery point were flushed with their indexes and are not read. All others are checked from their first byte, as
Kafka does; the quorum's log has no recovery point, so that all of it is checked.
"""

import logging
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from kafka_log.errors import CorruptLogError, UnreadableFileError
from kafka_log.files.segment import Segment, delete_segment_files
from kafka_log.format.batches import BadBatchError, find_valid_batch
from kafka_log.format.epochs import EpochStart
from kafka_log.format.index_entries import OFFSET_ENTRY, TIME_ENTRY, entry_error
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
from kafka_log.format.recovery import Damage, corruption, is_torn_tail
from kafka_log.format.roll import LogSettings
from kafka_log.format.scan import SegmentScan

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


def load_segments(folder: Path, settings: LogSettings, *, recovery_point: int, now_ms: int) -> Loaded:
    """Open the segments in a folder; there may be none.

    Raises CorruptLogError for damage that a crash does not explain, unless `settings.cut_at_corruption`.
    """
    bases = _find_segments(folder)
    loaded = Loaded([], bases[0] if bases else 0, bases[0] if bases else 0, [])
    for base, next_base in zip_longest(bases, bases[1:]):
        segment = Segment.open(folder, base, now_ms)
        loaded.segments.append(segment)
        if next_base is not None and next_base <= recovery_point and _has_sound_indexes(segment):
            loaded.end_offset = loaded.checked_from = next_base
            continue
        damage = _check(segment, loaded, settings, later=bases[len(loaded.segments) :])
        if damage is not None:
            _cut(damage, loaded, later=bases[len(loaded.segments) :])
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


def _has_sound_indexes(segment: Segment) -> bool:
    for index, layout in ((segment.offset_index, OFFSET_ENTRY), (segment.time_index, TIME_ENTRY)):
        if not index.path.is_file():
            return False
        index.map()
        if entry_error(index.entries, layout):
            return False
    segment.find_max_timestamp()
    return True


def _check(segment: Segment, loaded: Loaded, settings: LogSettings, *, later: list[int]) -> Damage | None:
    """Check a segment and rebuild its indexes; return its damage."""
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
        scan.feed(segment.read(scan.position, max(scan.wanted_bytes, CHUNK_BYTES)))
    scan.finish(size)
    damage = None
    if scan.bad is not None:
        damage = Damage(
            scan.bad, scan.next_offset, _valid_position(segment, scan), tuple(_with_content(segment, later))
        )
        if not is_torn_tail(damage) and not settings.cut_at_corruption:
            raise CorruptLogError(corruption(str(segment.path), damage))
    segment.recovered(scan)
    segment.flush()
    segment.save_indexes()
    loaded.end_offset = scan.next_offset
    known = loaded.epochs[-1].epoch if loaded.epochs else -1
    loaded.epochs += [start for start in scan.epochs if start.epoch > known]
    return damage


def _valid_position(segment: Segment, scan: SegmentScan) -> int | None:
    if not segment.size_bytes:
        return None
    with segment.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return find_valid_batch(content, scan.position, scan.next_offset)


def _with_content(segment: Segment, later: list[int]) -> Iterator[int]:
    return (base for base in later if segment.path.with_name(segment_name(base)).stat().st_size)


def _cut(damage: Damage, loaded: Loaded, *, later: list[int]) -> None:
    """Delete the segments behind the damaged one, which ends in front of the damage; without content it is deleted too."""
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
    if not damaged.size_bytes and len(loaded.segments) > 1:
        damaged.delete()
        loaded.segments.pop()
        loaded.segments[-1].load_indexes()
