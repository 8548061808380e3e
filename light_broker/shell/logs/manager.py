"""Logs of the replicas of a broker, in its log directories.

The event loop owns the logs: only it calls a PartitionLog after `create` or `open_all` has returned it. What blocks (loading, fsync, cold reads,
deletion) runs on the threads of the log's directory, compaction and the recovery of large logs in child processes. A directory whose disk
fails goes offline with its logs. Source: Kafka's LogManager.
"""

import asyncio
import contextlib
import logging
import random
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from kafka_log.errors import LogError, LogWriteError
from kafka_log.files.partition_log import PartitionLog
from kafka_log.files.partition_settings import PartitionSettings
from kafka_log.files.text_files import write_topic_id
from kafka_log.format.data_folder_files import UNKNOWN_BROKER_EPOCH
from kafka_log.format.folder_names import FolderKind
from kafka_log.format.roll import drawn_jitter_ms
from kafka_log.format.text_files import META_PROPERTIES_VERSION
from kafka_wire.file_slice import SliceUnreadable
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.log_jobs import LogManagerSettings
from light_broker.shell.logs.checkpoints import LogCheckpoints
from light_broker.shell.logs.cleaner import LogCleaner
from light_broker.shell.logs.coalesced import Coalesced
from light_broker.shell.logs.directory import FailedDirectory, LogDirectory
from light_broker.shell.logs.errors import (
    NoLogDirectoryError,
    OfflineLogError,
    WrongTopicIdError,
    is_disk_error,
)
from light_broker.shell.logs.flushes import LogFlushes
from light_broker.shell.logs.job_runner import LogJobRunner
from light_broker.shell.logs.loading import create_log
from light_broker.shell.logs.slices import ManagedLog
from light_broker.shell.logs.startup import claim_directories, load_directories

log = logging.getLogger(__name__)

Result = TypeVar("Result")

MAX_JITTER = 2**31 - 1
"""Random numbers of which the jitter of a log is made."""


class LogManager:
    """The logs of a broker: `open_all`, then `run` in a task until it is cancelled, then `close`."""

    def __init__(
        self,
        directories: Sequence[Path],
        settings: LogManagerSettings,
        *,
        cluster_id: str,
        node_id: int,
        partition_settings: Callable[[str], PartitionSettings],
        on_failed_directory: Callable[[FailedDirectory], None],
        high_watermarks: Callable[[], Mapping[TopicPartition, int]],
        clock: Callable[[], float] = time.time,
        meta_version: int = META_PROPERTIES_VERSION,
    ) -> None:
        """Prepare without touching a file.

        `partition_settings` returns the current settings of a topic's logs, `high_watermarks` the current high watermarks of the replicas: for
        their checkpoint, and as the bound of retention and compaction. `on_failed_directory` is called on the loop, also during `open_all`.
        `meta_version` is the version of meta.properties in new directories.
        """
        self.settings = settings
        self.directories = tuple(LogDirectory(path, io_threads=settings.io_threads) for path in directories)
        self.cleaner = LogCleaner(self)
        self._jobs = LogJobRunner(self)
        self._cluster_id = cluster_id
        self._node_id = node_id
        self._meta_version = meta_version
        self._partition_settings = partition_settings
        self._on_failed_directory = on_failed_directory
        self._high_watermarks = high_watermarks
        self._clock = clock
        self._directory_of: dict[TopicPartition, LogDirectory] = {}
        self._changing: dict[TopicPartition, asyncio.Task[Any]] = {}
        """Logs that are created or removed."""
        self._flushes = LogFlushes()
        self.checkpoints = {directory: LogCheckpoints(directory, high_watermarks) for directory in self.directories}
        self._tasks: set[asyncio.Task[None]] = set()
        self._none_left = asyncio.Event()

    # Start and end

    async def open_all(self) -> int | None:
        """Lock the directories, check that they belong to this node, and load all logs.

        Return the broker epoch of the last clean shutdown, None if that was unclean or unknown in any directory. A directory whose disk fails
        goes offline. Raises NoLogDirectoryError when none is left, FolderLockedError when another process uses one, and WrongFolderError
        when one belongs to another cluster or node.
        """
        try:
            await claim_directories(
                self.directories,
                self.fail,
                cluster_id=self._cluster_id,
                node_id=self._node_id,
                meta_version=self._meta_version,
            )
            online = [directory for directory in self.directories if directory.is_online()]
            await load_directories(
                online, self.fail, self._settings_of, threads=self.settings.recovery_threads, clock=self._clock
            )
            self._check_any_left()
        except BaseException:
            await self._release_all()
            raise
        for directory in self.directories:
            for partition in directory.unreadable.keys() | directory.loading:
                self._directory_of[partition] = directory
            for partition, opened in directory.logs.items():
                self._register(partition, directory, opened)
        epochs = {directory.broker_epoch for directory in self.directories if directory.is_online()}
        is_known = len(epochs) == 1 and all(directory.is_online() for directory in self.directories)
        epoch = epochs.pop() if is_known else None
        return None if epoch == UNKNOWN_BROKER_EPOCH else epoch

    async def run(self) -> None:
        """Run the jobs and the cleaner until this is cancelled. Raises NoLogDirectoryError when the last directory fails."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._jobs.run()), group.create_task(self.cleaner.run())]
            await self._none_left.wait()
            for task in tasks:
                task.cancel()
        self._check_any_left()

    async def close(self, broker_epoch: int = UNKNOWN_BROKER_EPOCH) -> None:
        """Flush and close all logs, write the checkpoints and the mark of a clean shutdown, and release the locks.

        A directory whose disk fails in the meantime is not marked.
        """
        await asyncio.gather(*self._changing.values(), return_exceptions=True)
        await asyncio.gather(
            *(self._close(directory, broker_epoch) for directory in self.directories if directory.is_online())
        )
        await self._release_all()

    async def _close(self, directory: LogDirectory, broker_epoch: int) -> None:
        checkpoints, limit = self.checkpoints[directory], asyncio.Semaphore(self.settings.recovery_threads)

        async def close_log(opened: PartitionLog) -> None:
            async with limit:
                await directory.run(opened.close)

        try:
            await checkpoints.high_watermarks.run()
            # Their files are closed then.
            await checkpoints.log_starts.run()
            await asyncio.gather(*map(close_log, directory.logs.values()))
            await checkpoints.recovery_points.run()
            await directory.run(partial(directory.mark_clean, broker_epoch))
        except (LogError, OSError) as error:
            self.fail(directory, error)
        except OfflineLogError:
            return  # it failed in the meantime

    async def settle(self) -> None:
        """Wait for what truncations and failures have started: checkpoint writes, and the closing of files."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _release_all(self) -> None:
        await self.settle()
        await asyncio.gather(
            *(asyncio.to_thread(directory.release) for directory in self.directories if directory.is_online())
        )

    # Logs

    def log(self, partition: TopicPartition) -> PartitionLog | None:
        """Return the log of a partition on a directory that is online."""
        directory = self._directory_of.get(partition)
        return directory.logs.get(partition) if directory is not None and directory.is_online() else None

    def online_logs(self) -> list[ManagedLog]:
        """Return the current logs on directories that are online."""
        return [
            (partition, directory, opened)
            for directory in self.directories
            if directory.is_online()
            for partition, opened in directory.logs.items()
        ]

    def directory(self, partition: TopicPartition) -> LogDirectory | None:
        """Return the directory of a log, also one that failed."""
        return self._directory_of.get(partition)

    def offline_reason(self, partition: TopicPartition) -> str | None:
        """Return why a log cannot be used: its directory failed, or it cannot be opened. The answer is KAFKA_STORAGE_ERROR."""
        directory = self._directory_of.get(partition)
        if directory is None:
            return None
        return directory.error or directory.unreadable.get(partition)

    def topic_id(self, partition: TopicPartition) -> uuid.UUID | None:
        """Return the topic's id in partition.metadata, None without one."""
        directory = self._directory_of.get(partition)
        return directory.topic_ids.get(partition) if directory is not None else None

    def checkpointed_high_watermark(self, partition: TopicPartition) -> int:
        """Return the high watermark that was stored before the start (replication-offset-checkpoint), 0 without one."""
        directory = self._directory_of.get(partition)
        return directory.stored.high_watermarks.get(partition, 0) if directory is not None else 0

    def current_high_watermarks(self) -> dict[TopicPartition, int]:
        """Return the high watermark of each log: that of its replica, or that of the checkpoint."""
        known = self._high_watermarks()
        return {
            partition: known.get(partition, directory.stored.high_watermarks.get(partition, 0))
            for partition, directory, _ in self.online_logs()
        }

    async def create(
        self, partition: TopicPartition, topic_id: uuid.UUID | None, *, is_new: bool = False
    ) -> PartitionLog:
        """Return the log of a partition, which is created in the directory with the fewest logs if it is missing.

        A directory that could not be read at the start may have the log, which is not created then, unless the partition is new. Raises
        OfflineLogError, and WrongTopicIdError when the log belongs to another topic of that name.
        """
        await self._until_unchanged(partition)
        if (reason := self.offline_reason(partition)) is not None:
            raise OfflineLogError(reason)
        if (opened := self.log(partition)) is not None:
            await self._set_topic_id(partition, topic_id)
            return opened
        unread = next((directory for directory in self.directories if not directory.is_listed), None)
        if unread is not None and not is_new:
            raise OfflineLogError(f"The log may be in {unread.path}, which is offline: {unread.error}")
        return await self._change(partition, self._create(partition, topic_id))

    async def _create(self, partition: TopicPartition, topic_id: uuid.UUID | None) -> PartitionLog:
        while online := [directory for directory in self.directories if directory.is_online()]:
            directory = min(online, key=lambda directory: directory.log_count)
            directory.creating.add(partition)
            settings = self._settings_of(partition)
            create = partial(create_log, directory.folder(partition), settings, topic_id, self._clock)
            try:
                made = await directory.run(create)
            except (LogError, OSError) as error:
                if not is_disk_error(error):
                    raise OfflineLogError(str(error)) from error
                self.fail(directory, error)
                continue
            finally:
                directory.creating.discard(partition)
            if directory.is_online():
                directory.topic_ids[partition] = made.topic_id
                self._register(partition, directory, made.log)
                return made.log
            made.log.close_files()
        raise OfflineLogError("All log directories are offline.")

    async def _change(self, partition: TopicPartition, change: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of a change of which logs there are; it goes on when the caller is cancelled."""
        task = asyncio.ensure_future(change)
        self._changing[partition] = task
        task.add_done_callback(lambda _: self._changing.pop(partition))
        return await asyncio.shield(task)

    async def _until_unchanged(self, partition: TopicPartition) -> None:
        """Wait while the log is created or removed."""
        while (task := self._changing.get(partition)) is not None:
            await asyncio.wait([task])

    async def _set_topic_id(self, partition: TopicPartition, topic_id: uuid.UUID | None) -> None:
        directory = self._directory_of[partition]
        known = directory.topic_ids.get(partition)
        if topic_id is None or topic_id == known:
            return
        if known is not None:
            raise WrongTopicIdError(f"The log of {partition} belongs to the topic with id {known}, not to {topic_id}.")
        directory.topic_ids[partition] = topic_id
        await self._guarded(directory, partial(write_topic_id, directory.folder(partition), topic_id))

    def _register(self, partition: TopicPartition, directory: LogDirectory, opened: PartitionLog) -> None:
        self._directory_of[partition] = directory
        directory.logs[partition] = opened
        opened.before_truncation = partial(self._before_truncation, partition)
        # They may have changed while the log was opened.
        opened.reconfigure(self._settings_of(partition))

    def _settings_of(self, partition: TopicPartition) -> PartitionSettings:
        """Return the settings of one log; each draws its own part of segment.jitter.ms."""
        settings = self._partition_settings(partition[0])
        drawn = random.randrange(MAX_JITTER)  # noqa: S311 - spreads load
        jitter_ms = drawn_jitter_ms(settings.log.segment_jitter_ms, settings.log.segment_ms, drawn)
        return replace(settings, log=replace(settings.log, segment_jitter_ms=jitter_ms))

    def reconfigure(self, topic: str) -> None:
        """Apply the current settings of a topic to its logs."""
        for partition, _, opened in self.online_logs():
            if partition[0] == topic:
                opened.reconfigure(self._settings_of(partition))

    def reconfigure_all(self, settings: LogManagerSettings) -> None:
        """Apply changed settings of the broker, and of all topics."""
        self.settings = settings
        for partition, _, opened in self.online_logs():
            opened.reconfigure(self._settings_of(partition))
        self._jobs.reconfigured()
        self.cleaner.reconfigured()

    # Removing

    async def delete(self, partition: TopicPartition) -> None:
        """Take a log out: its folder is renamed to `-delete` when this returns, and deleted after file.delete.delay.ms.

        Without such a log nothing happens. Raises OfflineLogError.
        """
        await self._remove(partition, FolderKind.DELETED)

    async def mark_stray(self, partition: TopicPartition) -> None:
        """Take a log out that no assignment explains: its folder is renamed to `-stray` and stays. Raises OfflineLogError."""
        await self._remove(partition, FolderKind.STRAY)

    async def _remove(self, partition: TopicPartition, kind: FolderKind) -> None:
        await self._until_unchanged(partition)
        directory = self._directory_of.get(partition)
        if directory is None:
            return
        if not directory.is_online():
            raise OfflineLogError(directory.error)
        await self._change(partition, self._rename(partition, directory, kind))

    async def _rename(self, partition: TopicPartition, directory: LogDirectory, kind: FolderKind) -> None:
        self._abort_cleaning(partition, directory)
        opened = directory.logs.pop(partition, None)
        if opened is not None:
            self._flushes.forget(opened)
        directory.unreadable.pop(partition, None)
        directory.forget(partition)
        self.cleaner.forget(partition)
        folder = await self._guarded(directory, partial(directory.rename, partition, kind))
        del self._directory_of[partition]
        delay_ms = opened.settings.file_delete_delay_ms if opened is not None else 0
        if kind is FolderKind.DELETED:
            directory.remove_at(self.now_ms() + delay_ms, folder, opened)
        elif opened is not None:
            opened.close_files()
        # A log that is created again must not be opened with the checkpoints of this one.
        checkpoints = self.checkpoints[directory]
        await asyncio.gather(*(self._written(directory, file) for file in checkpoints.all))

    def delete_old_segments(
        self, partition: TopicPartition, directory: LogDirectory, opened: PartitionLog, high_watermark: int
    ) -> int:
        """Delete the segments that retention deletes, unless the log is being compacted; return how many."""
        if self.cleaner.is_cleaning(partition):
            return 0
        try:
            return len(opened.delete_old_segments(high_watermark=min(high_watermark, opened.end_offset)))
        except (LogError, OSError) as error:
            self.fail(directory, error)
            return 0

    # Disk

    async def read_slice(self, partition: TopicPartition, read: Callable[[], bytes]) -> bytes:
        """Return the result of a blocking read of a FileSlice, by a thread of the log's directory.

        An error of the disk takes the directory offline. Raises SliceUnreadable, also when the log was deleted or truncated in the meantime.
        """
        directory = self._directory_of.get(partition)
        if directory is None:
            raise SliceUnreadable(f"The log of {partition} was deleted.")
        try:
            return await self._guarded(directory, read)
        except OfflineLogError as error:
            raise SliceUnreadable(str(error)) from error

    async def flush(self, partition: TopicPartition) -> int:
        """Write a log to the disk while it goes on, and return the offset up to which it is there. Raises OfflineLogError.

        An append is flushed before it is acknowledged when `is_flush_due_by_messages`. Callers during a flush share the next one.
        """
        opened = self.log(partition)
        if opened is None:
            raise OfflineLogError(self.offline_reason(partition) or "The log was deleted.")
        directory = self._directory_of[partition]
        try:
            return await self._flushes.flush(directory, opened)
        except (LogError, OSError) as error:
            if directory.logs.get(partition) is opened:
                self.fail(directory, error)
            raise OfflineLogError(str(error)) from error

    def report_failure(self, partition: TopicPartition, error: Exception) -> bool:
        """Take the log's directory offline after an error of its disk; return whether `error` is one.

        To be called with what a call to a log raised, other than RefusedAppendError and OffsetOutOfRangeError.
        """
        directory = self._directory_of.get(partition)
        if directory is None or not is_disk_error(error):
            return False
        self.fail(directory, error)
        return True

    def fail(self, directory: LogDirectory, error: BaseException) -> None:
        """Take a directory offline. Its files are closed when its threads have ended."""
        if not directory.is_online():
            return
        directory.error = str(error)
        partitions = (*directory.logs, *directory.unreadable, *directory.loading)
        log.error(
            "Log directory failed and is offline until the broker is restarted",
            extra={"path": str(directory.path), "error": str(error), "partitions": len(partitions)},
        )
        for partition, opened in directory.logs.items():
            self._directory_of[partition] = directory
            self._flushes.forget(opened)
            with contextlib.suppress(LogWriteError):
                self.cleaner.abort(partition)
        self._spawn(asyncio.to_thread(directory.release))
        if not any(directory.is_online() for directory in self.directories):
            self._none_left.set()
        self._on_failed_directory(FailedDirectory(directory.path, directory.directory_id, directory.error, partitions))

    async def write_cleaned_offsets(self, directory: LogDirectory) -> None:
        """Write cleaner-offset-checkpoint."""
        await self._written(directory, self.checkpoints[directory].cleaned)

    async def write_checkpoint(self, directory: LogDirectory, file: Coalesced) -> None:
        """Write a checkpoint file; a failure takes the directory offline."""
        with contextlib.suppress(OfflineLogError):
            await self._written(directory, file)

    async def _written(self, directory: LogDirectory, file: Coalesced) -> None:
        try:
            await file.run()
        except (LogError, OSError) as error:
            self.fail(directory, error)
            raise OfflineLogError(str(error)) from error

    async def _guarded(self, directory: LogDirectory, function: Callable[[], Result]) -> Result:
        try:
            return await directory.run(function)
        except (LogError, OSError, SliceUnreadable) as error:
            if not is_disk_error(error):
                raise
            self.fail(directory, error)
            raise OfflineLogError(str(error)) from error

    def _before_truncation(self, partition: TopicPartition, offset: int) -> None:
        """Abort a compaction, and lower the offsets in the checkpoint files, which would be wrong for what is appended next."""
        directory = self._directory_of[partition]
        self._abort_cleaning(partition, directory)
        checkpoints = self.checkpoints[directory]
        self._spawn(self.write_checkpoint(directory, checkpoints.recovery_points))
        cleaned = directory.stored.cleaned.get(partition)
        if cleaned is not None and cleaned > offset:
            directory.stored.cleaned[partition] = offset
            self._spawn(self.write_checkpoint(directory, checkpoints.cleaned))

    def _abort_cleaning(self, partition: TopicPartition, directory: LogDirectory) -> None:
        try:
            self.cleaner.abort(partition)
        except LogWriteError as error:
            self.fail(directory, error)
            raise

    def _spawn(self, action: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(action)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _check_any_left(self) -> None:
        if any(directory.is_online() for directory in self.directories):
            return
        failures = "; ".join(f"{directory.path}: {directory.error}" for directory in self.directories)
        raise NoLogDirectoryError(
            f"All log directories have failed. Check the disks and restart the broker. {failures}"
        )

    def now_ms(self) -> int:
        """Return the time in milliseconds."""
        return int(self._clock() * 1_000)
