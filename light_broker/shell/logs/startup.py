"""Start of the log directories of a broker: locks, identity, and the loading of all logs. Source: Kafka's LogManager.loadLogs."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from kafka_log.errors import FolderLockedError, LogError, UnreadableFileError
from kafka_log.files.partition_settings import PartitionSettings
from kafka_log.format.text_files import META_PROPERTIES_VERSION, MetaProperties
from kafka_wire.topic_partition import TopicPartition
from light_broker.shell.logs.directory import LogDirectory, check_identity
from light_broker.shell.logs.errors import OfflineLogError, WrongFolderError, is_disk_error
from light_broker.shell.logs.loading import LARGE_LOG_BYTES, LogToOpen, bytes_to_check, open_log, recover_in_child

log = logging.getLogger(__name__)

PROGRESS_INTERVAL_S = 5.0
"""Time between two log messages while logs are loaded."""

Fail = Callable[[LogDirectory, BaseException], None]
SettingsOf = Callable[[TopicPartition], PartitionSettings]


async def claim_directories(
    directories: Sequence[LogDirectory],
    fail: Fail,
    *,
    cluster_id: str,
    node_id: int,
    meta_version: int = META_PROPERTIES_VERSION,
) -> None:
    """Lock the directories, check that they belong to this node, and format new ones. Directories whose disk fails go offline.

    Raises FolderLockedError and WrongFolderError.
    """
    formatted: dict[Path, MetaProperties | None] = {}
    for directory in directories:
        try:
            formatted[directory.path] = await directory.run(directory.claim)
        except (LogError, OSError) as error:
            if is_disk_error(error):
                fail(directory, error)
            elif isinstance(error, UnreadableFileError):
                raise WrongFolderError(f"{error}. Restore the file, or use another directory.") from error
            elif isinstance(error, FolderLockedError):
                raise FolderLockedError(f"{error} Stop that process, or set log.dirs to another folder.") from error
            else:
                raise
    check_identity(formatted, cluster_id=cluster_id, node_id=node_id)
    for directory in directories:
        if directory.is_online() and formatted[directory.path] is None:
            try:
                await directory.run(partial(directory.format, cluster_id, node_id, meta_version))
            except (LogError, OSError) as error:
                fail(directory, error)


async def load_directories(
    directories: Sequence[LogDirectory],
    fail: Fail,
    settings_of: SettingsOf,
    *,
    threads: int,
    clock: Callable[[], float],
) -> None:
    """Load the logs in all directories; each has a number of threads. A log that cannot be opened is in `unreadable`."""
    found: dict[LogDirectory, dict[TopicPartition, Path]] = {}
    for directory in directories:
        try:
            found[directory] = await directory.run(partial(directory.read, int(clock() * 1_000)))
        except (LogError, OSError) as error:
            fail(directory, error)
    _refuse_duplicates(found)
    progress = _Progress(sum(map(len, found.values())))
    async with contextlib.AsyncExitStack() as stack:
        reporter = asyncio.ensure_future(progress.report())
        stack.callback(reporter.cancel)
        limits = {directory: asyncio.Semaphore(threads) for directory in found}
        async with asyncio.TaskGroup() as group:
            for directory, folders in found.items():
                for partition, folder in folders.items():
                    group.create_task(
                        _load(directory, partition, folder, fail, settings_of, clock, limits[directory], progress)
                    )
    progress.finish([directory.path for directory in found if not directory.was_clean])


def _refuse_duplicates(found: dict[LogDirectory, dict[TopicPartition, Path]]) -> None:
    """Take logs out that are in two directories: which one is current is unknown."""
    holders: dict[TopicPartition, list[LogDirectory]] = {}
    for directory, folders in found.items():
        for partition in folders:
            holders.setdefault(partition, []).append(directory)
    for partition, several in holders.items():
        if len(several) < 2:
            continue
        reason = (
            f"Partition {partition} has a log in each of {', '.join(str(copy.path) for copy in several)}. "
            "Delete all but one of them while the broker is stopped."
        )
        log.error("Duplicate log", extra={"partition": str(partition), "reason": reason})
        for directory in several:
            del found[directory][partition]
            directory.loading.discard(partition)
            directory.unreadable[partition] = reason


async def _load(
    directory: LogDirectory,
    partition: TopicPartition,
    folder: Path,
    fail: Fail,
    settings_of: SettingsOf,
    clock: Callable[[], float],
    limit: asyncio.Semaphore,
    progress: "_Progress",
) -> None:
    async with limit:
        if not directory.is_online():
            return
        to_open = LogToOpen(folder, settings_of(partition), directory.checkpoints(partition))
        try:
            if (
                not to_open.checkpoints.is_clean
                and await directory.run(lambda: bytes_to_check(to_open)) >= LARGE_LOG_BYTES
            ):
                to_open = await recover_in_child(to_open)
            opened = await directory.run(lambda: open_log(to_open, clock))
        except OfflineLogError:
            return
        except Exception as error:
            if is_disk_error(error):
                fail(directory, error)
            else:
                directory.loading.discard(partition)
                directory.unreadable[partition] = str(error)
                log.error(
                    "Failed to open log; its partition is offline",
                    extra={"partition": str(partition), "error": str(error)},
                    exc_info=None if isinstance(error, LogError) else error,
                )
            return
        if not directory.is_online():
            opened.log.close_files()
            return
        directory.loading.discard(partition)
        directory.logs[partition] = opened.log
        directory.topic_ids[partition] = opened.topic_id
        progress.loaded += 1


class _Progress:
    """Log messages on the loading of logs."""

    def __init__(self, total: int) -> None:
        self.loaded = 0
        self._total = total
        self._started_s = time.monotonic()

    async def report(self) -> None:
        while True:
            await asyncio.sleep(PROGRESS_INTERVAL_S)
            log.info("Loading logs", extra={"loaded": self.loaded, "total": self._total})

    def finish(self, unclean: Sequence[Path]) -> None:
        log.info(
            "Loaded logs",
            extra={
                "loaded": self.loaded,
                "total": self._total,
                "unclean": [str(path) for path in unclean],
                "duration_s": round(time.monotonic() - self._started_s, 3),
            },
        )
