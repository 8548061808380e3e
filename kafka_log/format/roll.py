"""When a segment is full and the next one begins. Source: Kafka's LogSegment.shouldRoll."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kafka_log.format.index_entries import MAX_RELATIVE_OFFSET, OFFSET_ENTRY, TIME_ENTRY


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Settings of a log, with Kafka's defaults of the quorum's log."""

    segment_bytes: int = 1024 * 1024 * 1024
    """Largest segment (metadata.log.segment.bytes, segment.bytes)."""
    segment_ms: int = 7 * 24 * 60 * 60 * 1000
    """Longest time between the timestamps of a segment's first batch and of an appended one (metadata.log.segment.ms, segment.ms)."""
    segment_jitter_ms: int = 0
    """Subtracted from `segment_ms`, so that the segments of many logs do not end at the same time (segment.jitter.ms)."""
    index_interval_bytes: int = 4096
    """Bytes of log between two index entries (index.interval.bytes)."""
    index_max_bytes: int = 10 * 1024 * 1024
    """Largest index (segment.index.bytes)."""
    max_batch_bytes: int = 8 * 1024 * 1024
    """Largest batch (KafkaRaftClient.MAX_BATCH_SIZE_BYTES, max.message.bytes)."""
    contiguous: bool = True
    """Whether each batch starts where the one before it ends, as in the quorum's log. Compaction leaves gaps."""
    flush_at_roll: bool = True
    """Write a segment to the disk when the next one begins. Otherwise the next flush does, which runs in another thread."""
    cut_at_corruption: bool = False
    """Cut the log at a corrupt batch although valid ones follow it. A broker's replica fetches them again; a voter would lose
    records that it has acknowledged, so that its log is not opened."""


class SegmentFill(NamedTuple):
    """What is in the active segment."""

    base_offset: int
    size_bytes: int
    offset_index_bytes: int
    time_index_bytes: int
    first_timestamp_ms: int
    """Largest timestamp of the first batch, -1 without one."""
    created_ms: int


class RollReason(Enum):
    """Condition under which a batch begins another segment."""

    SIZE = "the segment has no room for the batch"
    AGE = "the segment's first batch is too old"
    OFFSET_INDEX = "the offset index is full"
    TIME_INDEX = "the time index is full"
    RELATIVE_OFFSET = "the batch's last offset is too far from the segment's base offset"


def roll_reason(
    fill: SegmentFill, settings: LogSettings, *, size_bytes: int, last_offset: int, timestamp_ms: int, now_ms: int
) -> RollReason | None:
    """Return why batches of `size_bytes` up to `last_offset` begin another segment, None if they do not.

    `timestamp_ms` is the largest in the batches. Ages are measured by timestamps of batches; the clock counts only when the first batch has
    no timestamp.
    """
    first = fill.first_timestamp_ms
    age_ms = timestamp_ms - first if first >= 0 else now_ms - fill.created_ms
    if fill.size_bytes > settings.segment_bytes - size_bytes:
        return RollReason.SIZE
    if fill.size_bytes > 0 and age_ms > settings.segment_ms - settings.segment_jitter_ms:
        return RollReason.AGE
    if fill.offset_index_bytes + OFFSET_ENTRY.size > settings.index_max_bytes:
        return RollReason.OFFSET_INDEX
    # one entry of the time index is reserved for the segment's end
    if fill.time_index_bytes + 2 * TIME_ENTRY.size > settings.index_max_bytes:
        return RollReason.TIME_INDEX
    if last_offset - fill.base_offset > MAX_RELATIVE_OFFSET:
        return RollReason.RELATIVE_OFFSET
    return None


def max_segment_ms(segment_ms: int, *, is_compacted: bool, max_compaction_lag_ms: int) -> int:
    """Return the longest age of a segment: only closed segments are compacted. Source: LogConfig.maxSegmentMs.

    >>> max_segment_ms(1_000, is_compacted=True, max_compaction_lag_ms=300)
    300
    """
    return min(segment_ms, max_compaction_lag_ms) if is_compacted and max_compaction_lag_ms > 0 else segment_ms


def drawn_jitter_ms(max_jitter_ms: int, segment_ms: int, drawn: int) -> int:
    """Return the jitter of one segment from a random number of at least 0. Source: LogConfig.randomSegmentJitter.

    >>> drawn_jitter_ms(0, 1_000, 777), drawn_jitter_ms(5_000, 1_000, 2_345)
    (0, 345)
    """
    return drawn % min(max_jitter_ms, segment_ms) if max_jitter_ms else 0
