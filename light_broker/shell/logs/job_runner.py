"""Runner of the repeated jobs of a broker's logs: retention, flush by time, checkpoints, expired producers and deletions.

`core.log_jobs` decides when a job runs. Each job runs at most once at a time, and a long one does not delay the others.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

from kafka_log.files.partition_log import PartitionLog
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.log_jobs import (
    FOREVER_MS,
    LogJob,
    LogManagerSettings,
    due_jobs,
    first_runs_ms,
    job_intervals_ms,
    wait_ms,
)
from light_broker.shell.logs.checkpoints import LogCheckpoints
from light_broker.shell.logs.coalesced import Coalesced
from light_broker.shell.logs.directory import LogDirectory
from light_broker.shell.logs.errors import OfflineLogError
from light_broker.shell.logs.slices import ManagedLog, is_present, slices

log = logging.getLogger(__name__)

MAX_WAIT_MS = 3_600_000
"""Longest sleep; the loop's timers do not take the largest numbers."""


class ManagedLogs(Protocol):
    """The part of the log manager that the jobs use."""

    settings: LogManagerSettings
    directories: tuple[LogDirectory, ...]
    checkpoints: dict[LogDirectory, LogCheckpoints]

    def now_ms(self) -> int:
        """Return the time."""

    def online_logs(self) -> list[ManagedLog]:
        """Return the current logs."""

    def current_high_watermarks(self) -> dict[TopicPartition, int]:
        """Return their high watermarks."""

    def delete_old_segments(
        self, partition: TopicPartition, directory: LogDirectory, opened: PartitionLog, high_watermark: int
    ) -> int:
        """Delete the segments of a log that retention deletes."""

    async def flush(self, partition: TopicPartition) -> int:
        """Write a log to the disk."""

    async def write_checkpoint(self, directory: LogDirectory, file: Coalesced) -> None:
        """Write a checkpoint file."""


class LogJobRunner:
    """The jobs of one log manager."""

    def __init__(self, logs: ManagedLogs) -> None:
        self._logs = logs
        self._reconfigured = asyncio.Event()
        self._actions: dict[LogJob, Callable[[], Awaitable[None]]] = {
            LogJob.RETENTION: self._delete_old_segments,
            LogJob.FLUSH: self._flush,
            LogJob.RECOVERY_POINTS: partial(self._write, lambda files: files.recovery_points),
            LogJob.START_OFFSETS: partial(self._write, lambda files: files.log_starts),
            LogJob.HIGH_WATERMARKS: partial(self._write, lambda files: files.high_watermarks),
            LogJob.EXPIRED_PRODUCERS: self._remove_expired_producers,
            LogJob.DELETION: self._delete_files,
        }

    def reconfigured(self) -> None:
        """Apply changed intervals now."""
        self._reconfigured.set()

    async def run(self) -> None:
        """Run the jobs until this is cancelled."""
        next_runs = first_runs_ms(self._logs.settings, _now_ms())
        running: dict[LogJob, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                await self._wait(min(wait_ms(next_runs, _now_ms()), MAX_WAIT_MS))
                intervals, now_ms = job_intervals_ms(self._logs.settings), _now_ms()
                for job in due_jobs(next_runs, now_ms):
                    if job not in running or running[job].done():
                        running[job] = group.create_task(self.run_job(job))
                    next_runs[job] = now_ms + intervals[job]
                if self._reconfigured.is_set():
                    self._reconfigured.clear()
                    next_runs = {
                        job: min(next_runs[job], now_ms + interval, FOREVER_MS) for job, interval in intervals.items()
                    }

    async def run_job(self, job: LogJob) -> None:
        """Run a job once. An error that is no disk's is a defect of this program; the job runs again."""
        try:
            await self._actions[job]()
        except Exception:
            log.exception("Failed to run a job of the logs", extra={"job": job.value})

    async def _wait(self, timeout_ms: int) -> None:
        try:
            await asyncio.wait_for(self._reconfigured.wait(), timeout_ms / 1_000)
        except TimeoutError:
            return

    async def _delete_old_segments(self) -> None:
        deleted = 0
        async for logs in slices(self._logs.online_logs()):
            high_watermarks = self._logs.current_high_watermarks()
            for partition, directory, opened in logs:
                # The cleaner does it for compacted logs.
                if not opened.settings.append.is_compacted:
                    deleted += self._logs.delete_old_segments(
                        partition, directory, opened, high_watermarks.get(partition, 0)
                    )
        if deleted:
            log.info("Deleted old segments", extra={"segments": deleted})

    async def _flush(self) -> None:
        async for logs in slices(self._logs.online_logs()):
            for partition, directory, opened in logs:
                if is_present(partition, directory, opened) and opened.is_flush_due_by_time():
                    with contextlib.suppress(OfflineLogError):
                        await self._logs.flush(partition)

    async def _write(self, file: Callable[[LogCheckpoints], Coalesced]) -> None:
        for directory in self._logs.directories:
            if directory.is_online():
                await self._logs.write_checkpoint(directory, file(self._logs.checkpoints[directory]))

    async def _remove_expired_producers(self) -> None:
        async for logs in slices(self._logs.online_logs()):
            for _, _, opened in logs:
                opened.remove_expired_producers()

    async def _delete_files(self) -> None:
        for directory in self._logs.directories:
            due = [opened for opened in directory.logs.values() if opened.has_deletions_due()]
            if directory.is_online() and (due or directory.has_removed):
                await directory.run(partial(_delete_due, directory, due, self._logs.now_ms()))


def _delete_due(directory: LogDirectory, due: Sequence[PartitionLog], now_ms: int) -> None:
    for opened in due:
        opened.run_deletions()
    directory.delete_removed(now_ms)


def _now_ms() -> int:
    return int(time.monotonic() * 1_000)
