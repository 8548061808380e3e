"""Retention: the segments of a log that are deleted, oldest first. Source: Kafka's UnifiedLog.deleteOldSegments."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

UNLIMITED = -1


class RetentionReason(Enum):
    """Condition under which a segment is deleted."""

    START_OFFSET = "all of its records are below the log's start offset"
    SIZE = "the log is larger than retention.bytes without it"
    AGE = "its largest timestamp is older than retention.ms"


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """Settings of a topic, with Kafka's defaults."""

    deletes: bool = True
    """Whether size and age count (`delete` in cleanup.policy). The start offset always does."""
    retention_bytes: int = UNLIMITED
    """Size of a partition from which on segments are deleted (retention.bytes)."""
    retention_ms: int = 7 * 24 * 60 * 60 * 1000
    """Age of a segment from which on it is deleted (retention.ms)."""


@dataclass(frozen=True, slots=True)
class SegmentAge:
    """Size and age of a segment."""

    base_offset: int
    end_offset: int
    """Base offset of the next segment; of the active one, the log's end."""
    size_bytes: int
    newest_ms: int
    """Largest timestamp of its records; without any, the time of its last change."""
    is_active: bool = False


def deletable_segments(
    segments: Sequence[SegmentAge],
    settings: RetentionSettings,
    *,
    log_start_offset: int,
    high_watermark: int,
    now_ms: int,
) -> list[RetentionReason]:
    """Return why each of the first segments is deleted; the list ends at the first one that stays.

    The active segment can be among them: the log then begins another one. An empty active segment stays, and so does whatever reaches
    above the high watermark, so that the log never starts above it.
    """
    reasons: list[RetentionReason] = []

    def take(reason: RetentionReason, is_breached: Callable[[SegmentAge], bool]) -> None:
        for segment in segments[len(reasons) :]:
            is_empty = segment.is_active and segment.size_bytes == 0
            if is_empty or segment.end_offset > high_watermark or not is_breached(segment):
                return
            reasons.append(reason)

    take(RetentionReason.START_OFFSET, lambda segment: not segment.is_active and segment.end_offset <= log_start_offset)
    if settings.deletes and settings.retention_bytes >= 0:
        excess = sum(segment.size_bytes for segment in segments[len(reasons) :]) - settings.retention_bytes

        def exceeds(segment: SegmentAge) -> bool:
            nonlocal excess
            excess -= segment.size_bytes
            return excess >= 0

        take(RetentionReason.SIZE, exceeds)
    if settings.deletes and settings.retention_ms >= 0:
        take(RetentionReason.AGE, lambda segment: now_ms - segment.newest_ms > settings.retention_ms)
    return reasons
