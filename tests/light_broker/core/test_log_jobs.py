"""Schedule of the background jobs of logs."""

from __future__ import annotations

from dataclasses import replace

from kafka_node.configs.layered_settings import Settings
from light_broker.core.log_jobs import (
    FOREVER_MS,
    LogJob,
    LogManagerSettings,
    due_jobs,
    first_runs_ms,
    job_intervals_ms,
    log_manager_settings,
    wait_ms,
)

NOW_MS = 1_000_000


def test_settings_without_values_are_kafkas_defaults() -> None:
    """KafkaConfig."""
    assert log_manager_settings(Settings(1)) == LogManagerSettings()


def test_a_broker_without_a_cleaner_compacts_nothing() -> None:
    """log.cleaner.enable."""
    assert log_manager_settings(Settings(1, {"log.cleaner.enable": "false"})).cleaner_threads == 0


def test_jobs_that_read_all_logs_wait_for_the_initial_delay() -> None:
    """LogManager.startup schedules them 30 s after the start; the high watermarks after their own interval."""
    runs = first_runs_ms(LogManagerSettings(), NOW_MS)

    assert (runs[LogJob.RETENTION], runs[LogJob.HIGH_WATERMARKS]) == (NOW_MS + 30_000, NOW_MS + 5_000)


def test_producers_expire_from_the_first_interval_on() -> None:
    """UnifiedLog schedules the check with its interval as the delay; ProducerIdExpirationTest of Kafka's clients waits for it."""
    settings = replace(LogManagerSettings(), producer_expiration_check_interval_ms=500)

    assert first_runs_ms(settings, NOW_MS)[LogJob.EXPIRED_PRODUCERS] == NOW_MS + 500


def test_a_job_without_an_interval_never_runs() -> None:
    """KafkaScheduler repeats no task with a period of 0; log.flush.scheduler.interval.ms is unlimited by default."""
    settings = replace(LogManagerSettings(), recovery_point_interval_ms=0)
    runs = first_runs_ms(settings, NOW_MS)

    assert {job for job, at_ms in runs.items() if at_ms == FOREVER_MS} == {LogJob.FLUSH, LogJob.RECOVERY_POINTS}
    assert job_intervals_ms(settings)[LogJob.RECOVERY_POINTS] == FOREVER_MS


def test_a_job_is_due_at_its_time() -> None:
    """And the runner waits for the first one."""
    runs = {LogJob.RETENTION: 50, LogJob.DELETION: 20}

    assert (due_jobs(runs, 19), due_jobs(runs, 20), due_jobs(runs, 50)) == ([], [LogJob.DELETION], list(runs))
    assert (wait_ms(runs, 5), wait_ms(runs, 60)) == (15, 0)
