"""Opening of a log: at the start, or a new one. A large log that was not closed cleanly is recovered in a child process.

Source: Kafka's LogManager.loadLog.
"""

import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from kafka_log.files.partition_log import PartitionLog
from kafka_log.files.partition_settings import Checkpoints, PartitionSettings
from kafka_log.files.text_files import read_topic_id, write_topic_id
from kafka_log.format.names import LOG_SUFFIX, segment_of
from light_broker.shell.logs.child_process import run_in_child

LARGE_LOG_BYTES = 64 * 1024 * 1024
"""Bytes to check from which on a child process is worth its start of 0.1 s: a thread would take the processor from all other logs."""


@dataclass(frozen=True, slots=True)
class LogToOpen:
    """A log with what it is opened with."""

    folder: Path
    settings: PartitionSettings
    checkpoints: Checkpoints


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """An open log, and the id of its topic."""

    log: PartitionLog
    topic_id: uuid.UUID | None


def open_log(log: LogToOpen, clock: Callable[[], float]) -> OpenedLog:
    """Open a log. Raises LogError and OSError."""
    topic_id = read_topic_id(log.folder)
    return OpenedLog(PartitionLog(log.folder, log.settings, log.checkpoints, clock=clock), topic_id)


def create_log(
    folder: Path, settings: PartitionSettings, topic_id: uuid.UUID | None, clock: Callable[[], float]
) -> OpenedLog:
    """Create an empty log. Raises LogError and OSError; a folder that is left would be a second log of the partition after a restart."""
    try:
        opened = PartitionLog(folder, settings, Checkpoints(is_clean=True), clock=clock)
    except Exception:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    try:
        if topic_id is not None:
            write_topic_id(folder, topic_id)
    except Exception:
        opened.close_files()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return OpenedLog(opened, topic_id)


def bytes_to_check(log: LogToOpen) -> int:
    """Return the size of the segments that opening the log reads. Raises OSError."""
    if log.checkpoints.is_clean:
        return 0
    found = (
        (segment[0], path)
        for path in log.folder.iterdir()
        if (segment := segment_of(path.name)) and segment[1] == LOG_SUFFIX
    )
    segments = sorted(found)
    ends = [base_offset for base_offset, _ in segments[1:]]
    flushed = sum(end <= log.checkpoints.recovery_point for end in ends)
    return sum(path.stat().st_size for _, path in segments[flushed:])


async def recover_in_child(log: LogToOpen) -> LogToOpen:
    """Check a log in a child process and close it; return what it is opened with then. Raises LogError, OSError and ChildFailedError."""
    await run_in_child(_recover, log, what=f"the recovery of {log.folder}")
    return replace(log, checkpoints=replace(log.checkpoints, is_clean=True))


def _recover(log: LogToOpen) -> None:
    PartitionLog(log.folder, log.settings, log.checkpoints).close()
