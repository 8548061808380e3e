"""When a segment is full and the next one begins. Source: Kafka's LogSegment.shouldRoll."""

from dataclasses import dataclass

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
    cut_at_corruption: bool = False
    """Cut the log at a corrupt batch although valid ones follow it. A broker's replica fetches them again; a voter would lose
    records that it has acknowledged, so that its log is not opened."""


@dataclass(frozen=True, slots=True)
class SegmentFill:
    """What is in the active segment."""

    base_offset: int
    size_bytes: int
    offset_index_bytes: int
    time_index_bytes: int
    first_timestamp_ms: int
    """Largest timestamp of the first batch, -1 without one."""
    created_ms: int


def should_roll(
    fill: SegmentFill, settings: LogSettings, *, size_bytes: int, last_offset: int, timestamp_ms: int, now_ms: int
) -> bool:
    """Return whether batches of `size_bytes` up to `last_offset` begin another segment; `timestamp_ms` is the largest in them.

    Ages are measured by timestamps of batches; the clock counts only when the first batch has no timestamp.
    """
    first = fill.first_timestamp_ms
    age_ms = timestamp_ms - first if first >= 0 else now_ms - fill.created_ms
    return (
        fill.size_bytes > settings.segment_bytes - size_bytes
        or (fill.size_bytes > 0 and age_ms > settings.segment_ms - settings.segment_jitter_ms)
        or fill.offset_index_bytes + OFFSET_ENTRY.size > settings.index_max_bytes
        # one entry of the time index is reserved for the segment's end
        or fill.time_index_bytes + 2 * TIME_ENTRY.size > settings.index_max_bytes
        or last_offset - fill.base_offset > MAX_RELATIVE_OFFSET
    )
