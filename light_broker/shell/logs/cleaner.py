"""Compaction of logs: the dirtiest one at a time, in a child process; the event loop swaps the result in.

Truncation, deletion and the failure of a directory abort a round: the child is killed, and what it wrote is deleted. A partition that
cannot be compacted is left out until the broker is restarted. Source: Kafka's LogCleaner and LogCleanerManager.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from kafka_log.errors import LogError
from kafka_log.files.cleaner import CleanedLog, CleaningTask, clean_segments, delete_segment_copies
from kafka_log.files.compaction import PendingSwap, find_dirty_part, prepare_cleaning
from kafka_log.files.durable import flush_folder
from kafka_log.files.partition_log import PartitionLog
from kafka_log.format.cleaning_schedule import DirtyPart, dirtiest_log
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.log_jobs import LogManagerSettings
from light_broker.shell.logs.child_process import ChildFailedError, run_in_child
from light_broker.shell.logs.directory import LogDirectory
from light_broker.shell.logs.errors import OfflineLogError, is_disk_error
from light_broker.shell.logs.slices import ManagedLog, is_present, slices

log = logging.getLogger(__name__)

Found = TypeVar("Found")

KEY_BYTES = 160
"""Memory of one key in a round: an entry of a dict, its hash of 16 bytes and its offset as objects. Kafka takes 24."""


class CleanedLogs(Protocol):
    """The part of the log manager that the cleaner uses."""

    settings: LogManagerSettings

    def online_logs(self) -> list[ManagedLog]:
        """Return the current logs."""

    def current_high_watermarks(self) -> dict[TopicPartition, int]:
        """Return their high watermarks."""

    def fail(self, directory: LogDirectory, error: BaseException) -> None:
        """Take a directory offline."""

    async def write_cleaned_offsets(self, directory: LogDirectory) -> None:
        """Write the checkpoint of the cleaner."""

    def delete_old_segments(
        self, partition: TopicPartition, directory: LogDirectory, opened: PartitionLog, high_watermark: int
    ) -> int:
        """Delete the segments of a log that retention deletes."""


@dataclass(slots=True)
class Round:
    """A compaction in progress."""

    partition: TopicPartition
    directory: LogDirectory
    opened: PartitionLog
    task: CleaningTask
    child: asyncio.Task[CleanedLog] | None = None
    swap: PendingSwap | None = None
    is_aborted: bool = False


@dataclass(frozen=True, slots=True)
class ThrottledTask:
    """A round with its share of the disk."""

    task: CleaningTask
    bytes_per_second: float


@dataclass(slots=True)
class Throttle:
    """Waits so that a number of bytes a second is not exceeded. Source: Kafka's Throttler."""

    bytes_per_second: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _started_s: float = field(init=False)
    _total_bytes: int = 0

    def __post_init__(self) -> None:
        self._started_s = self.clock()

    def __call__(self, size_bytes: int) -> None:
        """Note bytes that were read or written, and wait."""
        self._total_bytes += size_bytes
        ahead_s = self._total_bytes / self.bytes_per_second - (self.clock() - self._started_s)
        if ahead_s > 0:
            self.sleep(ahead_s)


def clean_throttled(throttled: ThrottledTask) -> CleanedLog:
    """Run a round in a child process."""
    return clean_segments(throttled.task, Throttle(throttled.bytes_per_second))


class LogCleaner:
    """The compaction of a broker's logs."""

    def __init__(self, logs: CleanedLogs) -> None:
        self._logs = logs
        self._reconfigured = asyncio.Event()
        self._rounds: dict[TopicPartition, Round] = {}
        self.uncleanable: dict[TopicPartition, str] = {}
        """Partitions that cannot be compacted, with the reasons."""
        self.max_dirty_ratio = 0.0
        """Of the dirtiest log at the last check."""

    async def run(self) -> None:
        """Compact logs until this is cancelled; then the rounds are aborted."""
        workers: dict[int, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                self._reconfigured.clear()
                for number in range(self._logs.settings.cleaner_threads):
                    if number not in workers or workers[number].done():
                        workers[number] = group.create_task(self._run_rounds(number))
                await self._reconfigured.wait()

    def reconfigured(self) -> None:
        """Apply a changed number of threads; one that is not needed ends after its round."""
        self._reconfigured.set()

    async def _run_rounds(self, number: int) -> None:
        while number < self._logs.settings.cleaner_threads:
            has_cleaned = await self.clean_dirtiest_log()
            await self._delete_old_segments()
            if not has_cleaned:
                await asyncio.sleep(self._logs.settings.cleaner_backoff_ms / 1_000)

    def is_cleaning(self, partition: TopicPartition) -> bool:
        """Return whether a round of the log is in progress, so that nothing else may delete its segments."""
        return partition in self._rounds

    def abort(self, partition: TopicPartition) -> None:
        """End a round before the log changes otherwise. Raises LogWriteError when a whole new segment cannot be deleted."""
        found = self._rounds.get(partition)
        if found is None:
            return
        found.is_aborted = True
        if found.child is not None:
            found.child.cancel()
        if found.swap is not None:
            found.swap.abort()

    async def clean_dirtiest_log(self) -> bool:
        """Run one round; return whether there was a log to compact."""
        begun = await self._begin_round()
        if begun is None:
            return False
        try:
            await self._clean(begun)
        except OfflineLogError:
            return True
        except Exception as error:  # noqa: BLE001 - logged; the other logs go on, as in CleanerThread.tryCleanFilthiestLog
            self._failed(begun.partition, begun.directory, error)
        finally:
            self._rounds.pop(begun.partition, None)
        return True

    def forget(self, partition: TopicPartition) -> None:
        """Note that a log was deleted: a new one of the same name may be compacted."""
        self.uncleanable.pop(partition, None)

    def _failed(self, partition: TopicPartition, directory: LogDirectory, error: Exception) -> None:
        if is_disk_error(error):
            self._logs.fail(directory, error)
            return
        log.error(
            "Failed to compact log; it is left out until the broker is restarted",
            extra={"partition": str(partition), "error": str(error)},
            exc_info=None if isinstance(error, LogError | ChildFailedError) else error,
        )
        self.uncleanable[partition] = str(error)

    def _examined(
        self, partition: TopicPartition, directory: LogDirectory, examine: Callable[[], Found]
    ) -> Found | None:
        """Return what `examine` finds in a log, None if it fails: the log is left out then."""
        try:
            return examine()
        except Exception as error:  # noqa: BLE001 - logged; the other logs go on, as in LogCleanerManager.grabFilthiestCompactedLog
            self._failed(partition, directory, error)
            return None

    async def _begin_round(self) -> Round | None:
        parts: dict[TopicPartition, DirtyPart] = {}
        found: dict[TopicPartition, ManagedLog] = {}
        self.max_dirty_ratio = 0.0
        high_watermarks = self._logs.current_high_watermarks()
        async for logs in slices(self._logs.online_logs()):
            for candidate in logs:
                part = self._dirty_part(*candidate, high_watermarks) if self._may_clean(*candidate) else None
                if part is not None:
                    self.max_dirty_ratio = max(self.max_dirty_ratio, part.ratio)
                    if part.is_cleanable(candidate[2].settings.cleaning):
                        parts[candidate[0]], found[candidate[0]] = part, candidate
        while (chosen := dirtiest_log(parts)) is not None:
            del parts[chosen]
            if self._may_clean(*found[chosen]) and (begun := self._prepare(*found[chosen])) is not None:
                self._rounds[chosen] = begun
                return begun
        return None

    def _dirty_part(
        self,
        partition: TopicPartition,
        directory: LogDirectory,
        opened: PartitionLog,
        high_watermarks: Mapping[TopicPartition, int],
    ) -> DirtyPart | None:
        find = partial(
            find_dirty_part,
            opened,
            directory.stored.cleaned.get(partition),
            high_watermark=min(high_watermarks.get(partition, 0), opened.end_offset),
        )
        return self._examined(partition, directory, find)

    def _prepare(self, partition: TopicPartition, directory: LogDirectory, opened: PartitionLog) -> Round | None:
        prepare = partial(
            prepare_cleaning,
            opened,
            directory.stored.cleaned.get(partition),
            high_watermark=min(self._logs.current_high_watermarks().get(partition, 0), opened.end_offset),
            max_keys=self._max_keys(),
        )
        task = self._examined(partition, directory, prepare)
        return None if task is None else Round(partition, directory, opened, task)

    def _may_clean(self, partition: TopicPartition, directory: LogDirectory, opened: PartitionLog) -> bool:
        return (
            opened.settings.append.is_compacted
            and is_present(partition, directory, opened)
            and partition not in self._rounds
            and partition not in self.uncleanable
        )

    def _max_keys(self) -> int:
        settings = self._logs.settings
        memory_bytes = settings.cleaner_buffer_bytes / settings.cleaner_threads * settings.cleaner_load_factor
        return max(int(memory_bytes / KEY_BYTES), 1)

    async def _clean(self, begun: Round) -> None:
        settings, partition = self._logs.settings, begun.partition
        throttled = ThrottledTask(begun.task, settings.cleaner_bytes_per_second / settings.cleaner_threads)
        begun.child = asyncio.ensure_future(
            run_in_child(clean_throttled, throttled, what=f"the compaction of {partition}")
        )
        started_s = time.monotonic()
        try:
            cleaned = await begun.child
        except asyncio.CancelledError:
            # Either the round was aborted, or the cleaner is stopped.
            await self._delete_leftovers(begun)
            if begun.is_aborted and not _is_cancelled():
                return
            raise
        finally:
            begun.child.cancel()
        for group in cleaned.groups:
            begun.swap = PendingSwap(begun.task.folder, group)
            if begun.is_aborted:
                break
            await begun.directory.run(begun.swap.prepare)
            begun.swap.finish(begun.opened)
        if begun.is_aborted:
            await self._delete_leftovers(begun)
            return
        begun.directory.stored.cleaned[partition] = cleaned.end_offset
        await begun.directory.run(lambda: flush_folder(begun.task.folder))
        await self._logs.write_cleaned_offsets(begun.directory)
        log.info(
            "Compacted log",
            extra={
                "partition": str(partition),
                "first_offset": begun.task.first_dirty_offset,
                "end_offset": cleaned.end_offset,
                "duration_s": round(time.monotonic() - started_s, 1),
            },
        )

    async def _delete_leftovers(self, begun: Round) -> None:
        if begun.directory.is_online():
            # The folder of a deleted log was renamed.
            with contextlib.suppress(OSError):
                await begun.directory.run(lambda: delete_segment_copies(begun.task.folder, begun.task.segment_offsets))

    async def _delete_old_segments(self) -> None:
        """Apply retention to compacted logs, which the retention of other logs leaves to the cleaner."""
        high_watermarks = self._logs.current_high_watermarks()
        async for logs in slices(self._logs.online_logs()):
            for partition, directory, opened in logs:
                if self._may_clean(partition, directory, opened):
                    self._logs.delete_old_segments(partition, directory, opened, high_watermarks.get(partition, 0))


def _is_cancelled() -> bool:
    """Return whether the current task is cancelled itself, not only a task that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
