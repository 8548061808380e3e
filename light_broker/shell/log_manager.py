"""Logs of the replicas of a broker, in its log directories.

The event loop owns the logs: only it calls a PartitionLog after `create` or `open_all` has returned it. What blocks (loading, fsync, cold reads,
deletion) runs on the disk threads of the log's directory, compaction and the recovery of large logs in child processes. Source: Kafka's LogManager.
"""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kafka_log.files.partition_log import PartitionLog
from kafka_log.files.partition_settings import PartitionSettings
from kafka_log.format.data_folder_files import TopicPartition

Result = TypeVar("Result")


class LogDirectoryOfflineError(Exception):
    """A log directory that failed; its partitions answer KAFKA_STORAGE_ERROR until the broker is restarted."""


class NoLogDirectoryError(Exception):
    """The last log directory failed. The process must end."""


class WrongFolderError(Exception):
    """A log directory of another cluster or node, or two that disagree. The process must not start."""


class WrongTopicIdError(Exception):
    """A log of an older topic with the same name."""


@dataclass(frozen=True, slots=True)
class LogManagerSettings:
    """Settings of a broker for all of its logs, with Kafka's defaults."""

    retention_check_interval_ms: int = 300_000
    """log.retention.check.interval.ms"""
    flush_check_interval_ms: int = 2**63 - 1
    """log.flush.scheduler.interval.ms"""
    recovery_point_interval_ms: int = 60_000
    """log.flush.offset.checkpoint.interval.ms"""
    start_offset_interval_ms: int = 60_000
    """log.flush.start.offset.checkpoint.interval.ms"""
    high_watermark_interval_ms: int = 5_000
    """replica.high.watermark.checkpoint.interval.ms"""
    producer_expiration_check_interval_ms: int = 600_000
    """producer.id.expiration.check.interval.ms"""
    recovery_threads: int = 2
    """Logs of a directory that are loaded at the same time (num.recovery.threads.per.data.dir)."""


@dataclass(frozen=True, slots=True)
class FailedDirectory:
    """A log directory that went offline."""

    path: Path
    directory_id: uuid.UUID | None
    """`directory.id` in its meta.properties; None if that cannot be read."""
    error: str
    partitions: tuple[TopicPartition, ...]
    """Partitions whose logs are in it."""


class LogManager:
    """The logs of a broker."""

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
    ) -> None:
        """Prepare without touching a file.

        `partition_settings` returns the present settings of a topic's logs, `high_watermarks` the present high watermarks of the replicas: for
        their checkpoint, and as the bound of retention and compaction. `on_failed_directory` is called on the loop, also during `open_all`.
        """

    async def open_all(self) -> int | None:
        """Lock the directories, check that they belong to this node, and load all logs.

        Return the broker epoch of the last clean shutdown, None if that was unclean or unknown in any directory. A directory that fails goes
        offline. A log that cannot be opened is in `unreadable`. Raises NoLogDirectoryError when no directory is left, FolderLockedError when
        another process uses one, and WrongFolderError when one belongs to another cluster or node.
        """
        raise NotImplementedError

    async def run(self) -> None:
        """Run the schedules until it is cancelled: flush, retention, checkpoints, compaction, deletion. Raises NoLogDirectoryError."""

    async def close(self, broker_epoch: int = -1) -> None:
        """Flush and close all logs, write the checkpoints and the mark of a clean shutdown, and release the locks."""

    # Logs

    def log(self, partition: TopicPartition) -> PartitionLog | None:
        """Return the log of a partition on a directory that is online."""
        raise NotImplementedError

    @property
    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        """All logs on directories that are online."""
        raise NotImplementedError

    def is_offline(self, partition: TopicPartition) -> bool:
        """Whether its log is in a directory that failed, or cannot be opened: the answer is KAFKA_STORAGE_ERROR."""
        raise NotImplementedError

    @property
    def unreadable(self) -> Mapping[TopicPartition, str]:
        """Logs that could not be opened, such as those of message formats 0 and 1, with the reasons."""
        raise NotImplementedError

    def topic_id(self, partition: TopicPartition) -> uuid.UUID | None:
        """Return the topic's id in partition.metadata, None without one."""
        raise NotImplementedError

    def checkpointed_high_watermark(self, partition: TopicPartition) -> int:
        """Return the high watermark that was stored last (replication-offset-checkpoint), 0 without one."""
        raise NotImplementedError

    async def create(
        self, partition: TopicPartition, topic_id: uuid.UUID | None, settings: PartitionSettings | None = None
    ) -> PartitionLog:
        """Return the log of a partition, which is created in the directory with the fewest logs if it is missing.

        Concurrent calls for one partition return the same log. Raises LogDirectoryOfflineError when its directory failed or none is online, and
        WrongTopicIdError when the log belongs to another topic of that name.
        """
        raise NotImplementedError

    async def delete(self, partition: TopicPartition) -> None:
        """Take a log out: its folder is renamed to `-delete` when this returns, and deleted after file.delete.delay.ms.

        Without such a log nothing happens. Raises LogDirectoryOfflineError.
        """

    async def mark_stray(self, partition: TopicPartition) -> None:
        """Take a log out that no assignment explains: its folder is renamed to `-stray` and stays. Raises LogDirectoryOfflineError."""

    def reconfigure(self, topic: str) -> None:
        """Take over the present `partition_settings` of a topic for its logs."""

    def reconfigure_all(self, settings: LogManagerSettings) -> None:
        """Take over changed settings of the broker: its own schedules, and the settings of all logs."""

    # Directories

    async def run_on_disk_thread(self, partition: TopicPartition, function: Callable[[], Result]) -> Result:
        """Return the result of a function that blocks, run by a thread of the log's directory. Raises what it raises.

        The function must not change the log: it reads a LogSlice or runs a PendingFlush. An error of the disk must be passed to
        `report_failure`, as after any other call.
        """
        raise NotImplementedError

    async def flush(self, partition: TopicPartition) -> int:
        """Write a log to the disk while it goes on, and return the offset up to which it is there. Raises LogDirectoryOfflineError."""
        raise NotImplementedError

    def report_failure(self, partition: TopicPartition, error: Exception) -> None:
        """Take the log's directory offline after a LogWriteError, FlushFailedError, CorruptLogError or OSError of a call to the log."""

    async def truncated(self, partition: TopicPartition) -> None:
        """Forget a compaction in progress, and lower the cleaner's checkpoint, after a log was truncated."""
