"""Choice of the log that is compacted next, and of its dirty part. Source: Kafka's LogCleanerManager and LogToClean."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kafka_log.format.retention import SegmentAge
from kafka_wire.topic_partition import TopicPartition

NEVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class CleaningSettings:
    """Settings of a compacted topic, with Kafka's defaults."""

    min_compaction_lag_ms: int = 0
    """Age up to which a record is not compacted (min.compaction.lag.ms)."""
    max_compaction_lag_ms: int = NEVER
    """Age from which on a record is compacted whatever the dirty ratio is (max.compaction.lag.ms)."""
    min_cleanable_ratio: float = 0.5
    """Part of a log's bytes that must be dirty (min.cleanable.dirty.ratio)."""
    delete_retention_ms: int = 86_400_000
    """Time for which tombstones and end markers of transactions stay (delete.retention.ms)."""


@dataclass(frozen=True, slots=True)
class DirtyPart:
    """The part of a log that a round of compaction reads for its keys."""

    first_offset: int
    """Offset up to which the log was compacted before."""
    end_offset: int
    """Base offset of the first segment that is not compacted."""
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool = False
    """Whether it has a record that is older than max.compaction.lag.ms."""

    @property
    def ratio(self) -> float:
        """Part of the bytes that are dirty."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_cleanable(self, settings: CleaningSettings) -> bool:
        """Return whether a round is worth its cost."""
        return self.first_offset < self.end_offset and (
            (self.is_overdue and self.dirty_bytes > 0) or self.ratio > settings.min_cleanable_ratio
        )


def dirty_part(
    segments: Sequence[SegmentAge],
    settings: CleaningSettings,
    *,
    cleaned_offset: int | None,
    log_start_offset: int,
    stable_offset: int,
    now_ms: int,
    first_timestamp_ms: Callable[[int], int],
) -> DirtyPart:
    """Return the dirty part of a log from the checkpoint of its last round.

    `first_timestamp_ms` returns the timestamp of the first batch of the segment at a base offset, at most 0 without one. A checkpoint
    outside of the log does not count, as after a loss of records at its end.
    """
    end_offset = segments[-1].end_offset
    first = log_start_offset if cleaned_offset is None else cleaned_offset
    if not log_start_offset <= first <= end_offset:
        first = log_start_offset
    floor = max((segment.base_offset for segment in segments if segment.base_offset <= first), default=first)
    dirty = [segment for segment in segments[:-1] if segment.base_offset >= floor]
    end = first_uncleanable_offset(
        segments,
        dirty,
        first,
        stable_offset=stable_offset,
        min_compaction_lag_ms=settings.min_compaction_lag_ms,
        now_ms=now_ms,
    )
    clean_until_ms = now_ms - max(settings.max_compaction_lag_ms, 0)
    is_overdue = clean_until_ms > 0 and any(
        0 < first_timestamp_ms(segment.base_offset) < clean_until_ms for segment in dirty
    )
    return DirtyPart(
        first,
        end,
        clean_bytes=sum(segment.size_bytes for segment in segments if segment.base_offset < first),
        dirty_bytes=sum(segment.size_bytes for segment in dirty if segment.base_offset < end),
        is_overdue=is_overdue,
    )


def first_uncleanable_offset(
    segments: Sequence[SegmentAge],
    dirty: Sequence[SegmentAge],
    first_offset: int,
    *,
    stable_offset: int,
    min_compaction_lag_ms: int,
    now_ms: int,
) -> int:
    """Return the base offset of the first segment that is not compacted.

    It is the active one, the one that has the last stable offset, or the first dirty one with a record that is too new, whichever is the
    lowest, but not one below the first dirty offset.
    """
    young = (
        segment.base_offset
        for segment in dirty
        if min_compaction_lag_ms > 0 and segment.newest_ms > now_ms - min_compaction_lag_ms
    )
    bound = max(first_offset, min(stable_offset, segments[-1].base_offset, next(young, stable_offset)))
    return max((segment.base_offset for segment in segments if segment.base_offset <= bound), default=bound)


def dirtiest_log(parts: Mapping[TopicPartition, DirtyPart]) -> TopicPartition | None:
    """Return the cleanable log with the largest dirty ratio, None without any."""
    return max(parts, key=lambda partition: parts[partition].ratio, default=None)
