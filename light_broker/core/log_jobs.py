"""Schedule of the background jobs of a broker's logs. Source: Kafka's LogManager.startup and ReplicaManager."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from kafka_node.configs.layered_settings import Settings

INITIAL_DELAY_MS = 30_000
"""Time without jobs after the start, in which the logs of a restarted broker are busiest (LogManager.InitialTaskDelayMs)."""

DELETION_CHECK_INTERVAL_MS = 1_000
"""Files are deleted at most so much later than their delay is over; a check costs a microsecond for each log."""

FOREVER_MS = 2**63 - 1

UNLIMITED_BYTES_PER_SECOND = 1.7976931348623157e308
"""Kafka's default: the largest double."""


class LogJob(Enum):
    """A job that runs repeatedly."""

    RETENTION = "retention"
    FLUSH = "flush"
    RECOVERY_POINTS = "recovery points"
    START_OFFSETS = "start offsets"
    HIGH_WATERMARKS = "high watermarks"
    EXPIRED_PRODUCERS = "expired producers"
    DELETION = "deletion"


@dataclass(frozen=True, slots=True)
class LogManagerSettings:
    """Settings of a broker for all of its logs, with Kafka's defaults."""

    retention_check_interval_ms: int = 300_000
    """log.retention.check.interval.ms"""
    flush_check_interval_ms: int = FOREVER_MS
    """log.flush.scheduler.interval.ms"""
    recovery_point_interval_ms: int = 60_000
    """log.flush.offset.checkpoint.interval.ms"""
    start_offset_interval_ms: int = 60_000
    """log.flush.start.offset.checkpoint.interval.ms"""
    high_watermark_interval_ms: int = 5_000
    """replica.high.watermark.checkpoint.interval.ms"""
    producer_expiration_check_interval_ms: int = 600_000
    """producer.id.expiration.check.interval.ms"""
    initial_delay_ms: int = INITIAL_DELAY_MS
    """Time from the start to the first run of a job that reads all logs (log.initial.task.delay.ms)."""
    recovery_threads: int = 2
    """Logs of a directory that are loaded at the same time (num.recovery.threads.per.data.dir)."""
    io_threads: int = 8
    """Disk threads of a directory (num.io.threads)."""
    cleaner_threads: int = 1
    """Logs that are compacted at the same time, each in a child process (log.cleaner.threads)."""
    cleaner_backoff_ms: int = 15_000
    """Time until the next check when no log can be compacted (log.cleaner.backoff.ms)."""
    cleaner_buffer_bytes: int = 128 * 1024 * 1024
    """Memory for the keys of all rounds of compaction (log.cleaner.dedupe.buffer.size)."""
    cleaner_load_factor: float = 0.9
    """Part of this memory that is filled (log.cleaner.io.buffer.load.factor)."""
    cleaner_bytes_per_second: float = UNLIMITED_BYTES_PER_SECOND
    """Bytes that all rounds of compaction read and write (log.cleaner.io.max.bytes.per.second)."""


def log_manager_settings(settings: Settings) -> LogManagerSettings:
    """Return the current settings of a broker for its logs."""

    def decimal(name: str) -> float:
        found = settings.value(name)
        assert isinstance(found, float), name
        return found

    return LogManagerSettings(
        retention_check_interval_ms=settings.number("log.retention.check.interval.ms"),
        flush_check_interval_ms=settings.number("log.flush.scheduler.interval.ms"),
        recovery_point_interval_ms=settings.number("log.flush.offset.checkpoint.interval.ms"),
        start_offset_interval_ms=settings.number("log.flush.start.offset.checkpoint.interval.ms"),
        high_watermark_interval_ms=settings.number("replica.high.watermark.checkpoint.interval.ms"),
        producer_expiration_check_interval_ms=settings.number("producer.id.expiration.check.interval.ms"),
        initial_delay_ms=settings.number("log.initial.task.delay.ms"),
        recovery_threads=settings.number("num.recovery.threads.per.data.dir"),
        io_threads=settings.number("num.io.threads"),
        cleaner_threads=settings.number("log.cleaner.threads") if settings.flag("log.cleaner.enable") else 0,
        cleaner_backoff_ms=settings.number("log.cleaner.backoff.ms"),
        cleaner_buffer_bytes=settings.number("log.cleaner.dedupe.buffer.size"),
        cleaner_load_factor=decimal("log.cleaner.io.buffer.load.factor"),
        cleaner_bytes_per_second=decimal("log.cleaner.io.max.bytes.per.second"),
    )


def job_intervals_ms(settings: LogManagerSettings) -> dict[LogJob, int]:
    """Return the time between two runs of each job; one without a positive interval never runs."""
    intervals = {
        LogJob.RETENTION: settings.retention_check_interval_ms,
        LogJob.FLUSH: settings.flush_check_interval_ms,
        LogJob.RECOVERY_POINTS: settings.recovery_point_interval_ms,
        LogJob.START_OFFSETS: settings.start_offset_interval_ms,
        LogJob.HIGH_WATERMARKS: settings.high_watermark_interval_ms,
        LogJob.EXPIRED_PRODUCERS: settings.producer_expiration_check_interval_ms,
        LogJob.DELETION: DELETION_CHECK_INTERVAL_MS,
    }
    return {job: interval_ms if interval_ms > 0 else FOREVER_MS for job, interval_ms in intervals.items()}


def first_runs_ms(settings: LogManagerSettings, now_ms: int) -> dict[LogJob, int]:
    """Return the time of the first run of each job.

    Deletions, the checkpoint of high watermarks and the expiry of producers begin after their interval; the other jobs wait for the
    initial delay.
    """
    early = {LogJob.HIGH_WATERMARKS, LogJob.DELETION, LogJob.EXPIRED_PRODUCERS}
    return {
        job: FOREVER_MS
        if interval_ms >= FOREVER_MS
        else now_ms + (interval_ms if job in early else settings.initial_delay_ms)
        for job, interval_ms in job_intervals_ms(settings).items()
    }


def due_jobs(next_runs_ms: Mapping[LogJob, int], now_ms: int) -> list[LogJob]:
    """Return the jobs whose time has come."""
    return [job for job, at_ms in next_runs_ms.items() if at_ms <= now_ms]


def wait_ms(next_runs_ms: Mapping[LogJob, int], now_ms: int) -> int:
    """Return the time until the next job, at least 0."""
    return max(min(next_runs_ms.values()) - now_ms, 0)
