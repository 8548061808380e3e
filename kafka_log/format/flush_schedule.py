"""Schedule of flushes: by a count of records, and by time. Source: Kafka's UnifiedLog.append and LogManager.flushDirtyLogs."""

from dataclasses import dataclass

NEVER = 2**63 - 1
"""Kafka's default: the operating system writes the page cache, and replication protects against its loss."""


@dataclass(frozen=True, slots=True)
class FlushSettings:
    """Settings of a topic, with Kafka's defaults."""

    messages: int = NEVER
    """Records after which a log is flushed before the append is acknowledged (flush.messages)."""
    interval_ms: int = NEVER
    """Time after which a log is flushed (flush.ms)."""


def is_flush_due_by_messages(settings: FlushSettings, *, end_offset: int, flushed_offset: int) -> bool:
    """Return whether an append must be flushed before it is acknowledged.

    >>> is_flush_due_by_messages(FlushSettings(messages=10), end_offset=15, flushed_offset=5)
    True
    """
    return end_offset - flushed_offset >= settings.messages


def is_flush_due_by_time(
    settings: FlushSettings, *, end_offset: int, flushed_offset: int, last_flush_ms: int, now_ms: int
) -> bool:
    """Return whether a log with unflushed records is flushed by the scheduler (log.flush.scheduler.interval.ms).

    >>> is_flush_due_by_time(FlushSettings(interval_ms=10), end_offset=1, flushed_offset=0, last_flush_ms=0, now_ms=10)
    True
    """
    return end_offset > flushed_offset and now_ms - last_flush_ms >= settings.interval_ms
