"""One log directory of a broker: its lock, its identity, the logs in it and their checkpoints.

Methods that block have no await; the log manager runs them on the directory's threads. Source: Kafka's LogManager.
"""

import asyncio
import logging
import os
import shutil
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from kafka_log.errors import LogWriteError
from kafka_log.files.data_folder import (
    mark_clean_shutdown,
    read_cleaned_offsets,
    read_high_watermarks,
    read_log_start_offsets,
    read_recovery_points,
    take_clean_shutdown,
)
from kafka_log.files.durable import flush_folder, make_folder
from kafka_log.files.lock import FolderLock
from kafka_log.files.partition_log import PartitionLog
from kafka_log.files.partition_settings import Checkpoints
from kafka_log.files.text_files import draw_directory_id, read_meta_properties, write_meta_properties
from kafka_log.format.folder_names import FolderKind, folder_of, removed_folder_name
from kafka_log.format.names import CLUSTER_METADATA_FOLDER
from kafka_log.format.text_files import META_PROPERTIES_VERSION, MetaProperties
from kafka_wire.topic_partition import TopicPartition
from light_broker.shell.logs.errors import OfflineLogError, WrongFolderError

log = logging.getLogger(__name__)

Result = TypeVar("Result")


@dataclass(slots=True)
class StoredOffsets:
    """Offsets of the partitions in the checkpoint files."""

    recovery_points: dict[TopicPartition, int] = field(default_factory=dict)
    log_starts: dict[TopicPartition, int] = field(default_factory=dict)
    high_watermarks: dict[TopicPartition, int] = field(default_factory=dict)
    cleaned: dict[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DirectorySpace:
    """Size of the file system of a directory."""

    total_bytes: int
    usable_bytes: int


@dataclass(frozen=True, slots=True)
class FailedDirectory:
    """A log directory that went offline."""

    path: Path
    directory_id: uuid.UUID | None
    """`directory.id` in its meta.properties; None if that could not be read."""
    error: str
    partitions: tuple[TopicPartition, ...]
    """Partitions whose logs are in it; none if its folders could not be listed."""


class LogDirectory:
    """A log directory. `error` is set once it has failed; nothing is read or written from then on."""

    def __init__(self, path: Path, *, io_threads: int) -> None:
        self.path = path.absolute()
        self.directory_id: uuid.UUID | None = None
        self.error: str | None = None
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.topic_ids: dict[TopicPartition, uuid.UUID | None] = {}
        self.unreadable: dict[TopicPartition, str] = {}
        """Logs that cannot be opened, with the reasons."""
        self.loading: set[TopicPartition] = set()
        """Logs that are not opened yet."""
        self.is_listed = False
        """Whether its logs are known, which stay known when it fails."""
        self.creating: set[TopicPartition] = set()
        self.stored = StoredOffsets()
        """As read at the start; `cleaned` is kept up to date."""
        self.was_clean = False
        self.broker_epoch: int | None = None
        """Of the last clean shutdown."""
        self._removed: deque[tuple[int, Path, PartitionLog | None]] = deque()
        """Folders that are deleted at a time in milliseconds, with their logs, whose files may still be read."""
        self._lock: FolderLock | None = None
        self._threads = ThreadPoolExecutor(io_threads, thread_name_prefix=f"disk-{path.name}")

    def is_online(self) -> bool:
        """Whether it has not failed."""
        return self.error is None

    @property
    def log_count(self) -> int:
        """Number of logs in it, for the placement of new ones."""
        return len(self.logs) + len(self.unreadable) + len(self.loading) + len(self.creating)

    def check_online(self) -> None:
        """Raise OfflineLogError if it has failed."""
        if self.error is not None:
            raise OfflineLogError(self.error)

    async def run(self, function: Callable[[], Result]) -> Result:
        """Return the result of a function that blocks. Raises what it raises, and OfflineLogError."""
        self.check_online()
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    # Start

    def claim(self) -> MetaProperties | None:
        """Create the folder if it is missing, lock it, and return its meta.properties; None if it is not formatted.

        Raises FolderLockedError, UnreadableFileError, LogWriteError and OSError.
        """
        make_folder(self.path)
        self._lock = FolderLock(self.path)
        properties = read_meta_properties(self.path)
        self.directory_id = properties.directory_id if properties else None
        return properties

    def format(self, cluster_id: str, node_id: int, version: int = META_PROPERTIES_VERSION) -> None:
        """Write meta.properties, which marks the folder as the node's; version 0 is that of ZooKeeper mode. Raises LogWriteError."""
        self.directory_id = draw_directory_id() if version else None
        write_meta_properties(self.path, MetaProperties(cluster_id, node_id, self.directory_id, version))

    def read(self, now_ms: int) -> dict[TopicPartition, Path]:
        """Read the checkpoints, take the mark of a clean shutdown, and return the folders of logs.

        Folders that were being deleted are deleted at `now_ms`. Raises LogWriteError and OSError.
        """
        self.stored = StoredOffsets(
            read_recovery_points(self.path),
            read_log_start_offsets(self.path),
            read_high_watermarks(self.path),
            read_cleaned_offsets(self.path),
        )
        found = {}
        for path in sorted(folder for folder in self.path.iterdir() if folder.is_dir()):
            folder = folder_of(path.name)
            if path.name == CLUSTER_METADATA_FOLDER:
                continue
            if folder is None:
                log.warning("Ignoring folder that is no partition's", extra={"path": str(path)})
            elif folder.kind is FolderKind.DELETED:
                self._removed.append((now_ms, path, None))
            elif folder.kind is not FolderKind.LOG:
                log.warning(
                    "Ignoring a replica that is not in use; delete the folder if it is not needed",
                    extra={"path": str(path)},
                )
            else:
                found[folder.partition] = path
        self.broker_epoch = take_clean_shutdown(self.path)
        self.was_clean = self.broker_epoch is not None
        self.loading = set(found)
        self.is_listed = True
        return found

    def checkpoints(self, partition: TopicPartition) -> Checkpoints:
        """Return the checkpoints with which a log is opened."""
        return Checkpoints(
            self.stored.recovery_points.get(partition, 0),
            self.stored.log_starts.get(partition, 0),
            is_clean=self.was_clean,
        )

    # Removal

    def folder(self, partition: TopicPartition) -> Path:
        """Return the folder of a partition's log."""
        return self.path / str(partition)

    def rename(self, partition: TopicPartition, kind: FolderKind) -> Path:
        """Rename a log's folder, on the disk, and return its new path. Raises LogWriteError and FlushFailedError."""
        old = self.folder(partition)
        new = self.path / removed_folder_name(partition, kind, uuid.uuid4().hex)
        try:
            old.rename(new)
        except OSError as error:
            raise LogWriteError(f"Failed to rename {old} to {new.name}: {error.strerror}") from error
        flush_folder(self.path)
        return new

    def forget(self, partition: TopicPartition) -> None:
        """Remove the offsets of a log that is deleted."""
        self.topic_ids.pop(partition, None)
        for offsets in (
            self.stored.recovery_points,
            self.stored.log_starts,
            self.stored.high_watermarks,
            self.stored.cleaned,
        ):
            offsets.pop(partition, None)

    def remove_at(self, at_ms: int, folder: Path, removed: PartitionLog | None) -> None:
        """Note that a renamed folder is deleted at a time."""
        self._removed.append((at_ms, folder, removed))

    def delete_removed(self, now_ms: int) -> int:
        """Delete the folders whose time has come; return how many. One that cannot be deleted is deleted at the next start."""
        # A copy, since the event loop may add one at the same time.
        due = [removal for removal in tuple(self._removed) if removal[0] <= now_ms]
        for removal in due:
            self._removed.remove(removal)
            _, folder, removed = removal
            if removed is not None:
                removed.close_files()
            try:
                shutil.rmtree(folder)
            except OSError as error:
                log.warning("Failed to delete folder", extra={"path": str(folder), "error": str(error)})
        return len(due)

    @property
    def has_removed(self) -> bool:
        """Whether folders wait for their deletion."""
        return bool(self._removed)

    # End

    def space(self) -> DirectorySpace:
        """Return the size of its file system. Raises OSError."""
        found = os.statvfs(self.path)
        return DirectorySpace(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def mark_clean(self, broker_epoch: int) -> None:
        """Write the mark of a clean shutdown, unless a log may need a recovery at the next start. Raises LogWriteError."""
        if self.was_clean or not self.unreadable:
            mark_clean_shutdown(self.path, broker_epoch)

    def release(self) -> None:
        """Wait for the threads, close what is open, and release the lock. Nothing is written."""
        self._threads.shutdown()
        for open_log in (*self.logs.values(), *(removed for _, _, removed in self._removed if removed is not None)):
            open_log.close_files()
        self._removed.clear()
        self.release_lock()

    def release_lock(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def check_identity(directories: Mapping[Path, MetaProperties | None], *, cluster_id: str, node_id: int) -> None:
    """Raise WrongFolderError unless formatted directories are of this cluster and node. Source: Kafka's MetaPropertiesEnsemble."""
    owners: dict[uuid.UUID, Path] = {}
    for path, properties in directories.items():
        if properties is None:
            continue
        if properties.cluster_id is not None and properties.cluster_id != cluster_id:
            raise WrongFolderError(
                f"Log directory {path} belongs to cluster {properties.cluster_id}, and this node to cluster {cluster_id}. "
                "Use another directory, or connect the node to the cluster of this one."
            )
        if properties.node_id is not None and properties.node_id != node_id:
            raise WrongFolderError(
                f"Log directory {path} belongs to node {properties.node_id}, and this is node {node_id}. "
                f"Use another directory, or set node.id to {properties.node_id}."
            )
        directory_id = properties.directory_id
        if directory_id is not None and owners.setdefault(directory_id, path) != path:
            raise WrongFolderError(
                f"Log directories {owners[directory_id]} and {path} have the same directory.id {directory_id}. "
                "One of them is a copy; remove it."
            )
