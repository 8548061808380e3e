"""Repeated jobs of the logs, as the runner runs them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from kafka_log.files.data_folder import read_high_watermarks, read_log_start_offsets, read_recovery_points
from kafka_log.format.flush_schedule import FlushSettings
from kafka_log.format.retention import RetentionSettings
from kafka_wire.records import Record, encode_batch
from light_broker.core.log_jobs import LogJob, LogManagerSettings
from light_broker.shell.logs.job_runner import LogJobRunner
from light_broker.shell.logs.manager import LogManager
from tests.kafka_log.batches import fast_folder
from tests.light_broker.log_managers import ORDERS, SMALL, TOPIC_ID, Managed, append
from tests.waiting import until


@pytest.fixture
def managed() -> Iterator[Managed]:
    """One empty log directory."""
    with fast_folder() as folder:
        yield Managed([folder / "a"])


@pytest.fixture
async def logs(managed: Managed) -> AsyncIterator[LogManager]:
    """An open log manager with one log."""
    async with managed.opened() as opened:
        await opened.create(ORDERS, TOPIC_ID)
        yield opened


async def test_retention_deletes_segments_below_the_high_watermark_and_their_files_later(
    managed: Managed, logs: LogManager
) -> None:
    """log.retention.check.interval.ms, file.delete.delay.ms."""
    managed.topics["orders"] = replace(SMALL, retention=RetentionSettings(retention_bytes=0))
    logs.reconfigure("orders")
    append(logs, ORDERS, 20)
    managed.high_watermarks[ORDERS] = 12
    runner, opened = LogJobRunner(logs), logs.log(ORDERS)
    assert opened is not None
    before = len(opened.log.segments)

    await runner.run_job(LogJob.RETENTION)
    assert 5 < opened.start_offset <= 12
    assert len(opened.log.segments) < before
    folder = managed.directories[0] / "orders-0"
    assert len(list(folder.glob("*.log.deleted"))) == before - len(opened.log.segments)
    await runner.run_job(LogJob.DELETION)
    assert list(folder.glob("*.deleted")) != []
    managed.now_ms += SMALL.file_delete_delay_ms
    await runner.run_job(LogJob.DELETION)
    assert list(folder.glob("*.deleted")) == []


async def test_checkpoints_have_the_offsets_of_all_logs(managed: Managed, logs: LogManager) -> None:
    """Each job writes one file of each directory."""
    append(logs, ORDERS, 20)
    await logs.flush(ORDERS)
    managed.high_watermarks[ORDERS] = 15
    opened, runner = logs.log(ORDERS), LogJobRunner(logs)
    assert opened is not None
    opened.raise_start_offset(3, high_watermark=15)
    for job in (LogJob.RECOVERY_POINTS, LogJob.START_OFFSETS, LogJob.HIGH_WATERMARKS):
        await runner.run_job(job)

    (directory,) = managed.directories
    assert read_recovery_points(directory) == {ORDERS: 20}
    assert read_log_start_offsets(directory) == {ORDERS: 3}
    assert read_high_watermarks(directory) == {ORDERS: 15}


async def test_logs_are_flushed_by_time(managed: Managed, logs: LogManager) -> None:
    """flush.ms, checked in each log.flush.scheduler.interval.ms."""
    managed.topics["orders"] = replace(SMALL, flush=FlushSettings(interval_ms=100))
    logs.reconfigure("orders")
    append(logs, ORDERS, 2)
    opened, runner = logs.log(ORDERS), LogJobRunner(logs)
    assert opened is not None

    await runner.run_job(LogJob.FLUSH)
    assert opened.log.flushed_offset == 0
    managed.now_ms += 100
    await runner.run_job(LogJob.FLUSH)
    assert opened.log.flushed_offset == 2


async def test_idle_producers_expire(managed: Managed, logs: LogManager) -> None:
    """producer.id.expiration.ms."""
    opened, runner = logs.log(ORDERS), LogJobRunner(logs)
    assert opened is not None
    batch = encode_batch([Record(0, managed.now_ms, None, b"v")], producer_id=5, producer_epoch=0, base_sequence=0)
    opened.append_as_leader(batch, 0)
    managed.now_ms += SMALL.producer_expiration_ms - 1

    await runner.run_job(LogJob.EXPIRED_PRODUCERS)
    assert list(opened.producers.entries) == [5]
    managed.now_ms += 1
    await runner.run_job(LogJob.EXPIRED_PRODUCERS)
    assert list(opened.producers.entries) == []


async def test_a_job_with_a_defect_is_logged_and_runs_again(
    logs: LogManager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The other jobs go on."""
    monkeypatch.setattr(logs, "online_logs", lambda: 1 / 0)
    await LogJobRunner(logs).run_job(LogJob.RETENTION)

    assert [(record.message, record.__dict__["job"]) for record in caplog.records] == [
        ("Failed to run a job of the logs", "retention")
    ]


async def test_a_changed_interval_applies_to_a_job_that_is_waiting(managed: Managed, logs: LogManager) -> None:
    """Settings of the broker are dynamic."""
    running = asyncio.ensure_future(logs.run())
    append(logs, ORDERS, 2)
    await logs.flush(ORDERS)
    await asyncio.sleep(0)
    assert read_recovery_points(managed.directories[0]) == {}

    logs.reconfigure_all(LogManagerSettings(recovery_point_interval_ms=1))
    await until(lambda: read_recovery_points(managed.directories[0]) == {ORDERS: 2})
    running.cancel()
    await asyncio.wait([running])
