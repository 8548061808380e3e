"""Snapshots in a log's folder: written as a partial file, renamed when whole, read by position.

Which snapshots may be deleted is the log's owner's decision. Source: Kafka's FileRawSnapshotWriter, FileRawSnapshotReader and Snapshots.
"""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from kafka_log.errors import CorruptLogError, LogWriteError
from kafka_log.files.durable import flush_file, flush_folder, make_folder, write_at
from kafka_log.format.names import (
    CHECKPOINT_SUFFIX,
    DELETED_CHECKPOINT_SUFFIX,
    PARTIAL_CHECKPOINT_SUFFIX,
    SnapshotId,
    snapshot_name,
    snapshot_of,
)
from kafka_log.format.snapshot_check import SnapshotCheck

CHUNK_BYTES = 1024 * 1024
"""Read at once: large enough for the disk's full speed, small enough for the processor's cache."""

READ_ONLY = 0o400
"""A whole snapshot never changes; Kafka's has this mode."""


class SnapshotWriter:
    """A snapshot that is written or fetched. Without `freeze` it leaves nothing."""

    def __init__(self, folder: Path, snapshot: SnapshotId) -> None:
        """Create the partial file. Raises LogWriteError."""
        self.snapshot = snapshot
        self.size_bytes = 0
        """Where the next fetched part begins."""
        self._folder = folder
        make_folder(folder)
        try:
            self._descriptor, name = tempfile.mkstemp(PARTIAL_CHECKPOINT_SUFFIX, snapshot_name(snapshot, "-"), folder)
        except OSError as error:
            raise LogWriteError(f"Failed to create a snapshot in {folder}: {error.strerror}") from error
        self.path = Path(name)
        """Of the partial file, then of the whole one."""
        self._is_open = True

    def append(self, data: bytes) -> None:
        """Add bytes: whole batches, or any part that was fetched. Raises LogWriteError and has none of them then."""
        self._check_open()
        write_at(self._descriptor, [data], self.size_bytes, self.path)
        self.size_bytes += len(data)

    def flush(self) -> None:
        """Write everything to the disk, in any thread, so that `freeze` has little left to write. Raises FlushFailedError."""
        flush_file(self._descriptor, self.path)

    def freeze(self) -> Path:
        """Write everything to the disk, give the file its name, and return its path. Raises FlushFailedError and LogWriteError."""
        self._check_open()
        path = self._folder / snapshot_name(self.snapshot)
        flush_file(self._descriptor, self.path)
        try:
            os.fchmod(self._descriptor, READ_ONLY)
            self.path.replace(path)
        except OSError as error:
            raise LogWriteError(f"Failed to rename snapshot {self.path}: {error.strerror}") from error
        self.path = path
        self._is_open = False
        os.close(self._descriptor)
        flush_folder(self._folder)
        return path

    def close(self) -> None:
        """Delete the partial file, unless the snapshot is whole."""
        if self._is_open:
            self._is_open = False
            os.close(self._descriptor)
            self.path.unlink(missing_ok=True)

    def _check_open(self) -> None:
        if not self._is_open:
            raise ValueError(f"Snapshot {self.snapshot} is whole or closed.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SnapshotReader:
    """A whole snapshot, open for reading; it can be deleted in the meantime."""

    def __init__(self, folder: Path, snapshot: SnapshotId) -> None:
        """Open it; raises FileNotFoundError."""
        self.snapshot = snapshot
        self.path = folder / snapshot_name(snapshot)
        self._descriptor = os.open(self.path, os.O_RDONLY)
        self.size_bytes = os.fstat(self._descriptor).st_size

    def read(self, position: int, max_bytes: int) -> bytes:
        """Return the bytes from a position on (FetchSnapshot): fewer at the end, which need not be whole batches."""
        return os.pread(self._descriptor, max_bytes, position)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_snapshot(reader: SnapshotReader, chunk_bytes: int = CHUNK_BYTES) -> bytes:
    """Read a whole snapshot, and return its first batch, which has its header. Raises CorruptLogError if it is damaged or cut short."""
    check = SnapshotCheck()
    while data := reader.read(check.size_bytes, chunk_bytes):
        check.feed(data)
    expect_whole(check, reader.path)
    return check.first_batch


def expect_whole(check: SnapshotCheck, path: Path) -> None:
    """Raise CorruptLogError unless what was checked is a whole snapshot."""
    if (error := check.error()) is not None:
        raise CorruptLogError(f"Snapshot {path} {error}.")


def write_snapshot(folder: Path, snapshot: SnapshotId, batches: Iterable[bytes]) -> Path:
    """Write a whole snapshot (`format.control_records.snapshot_batches`) and return its path."""
    with SnapshotWriter(folder, snapshot) as writer:
        for batch in batches:
            writer.append(batch)
        return writer.freeze()


def list_snapshots(folder: Path) -> list[SnapshotId]:
    """Return the whole snapshots in a folder, in order of their offsets."""
    found = (snapshot_of(path.name) for path in folder.iterdir())
    return sorted(snapshot[0] for snapshot in found if snapshot and snapshot[1] == CHECKPOINT_SUFFIX)


def delete_unneeded_snapshots(folder: Path, log_start_offset: int) -> list[Path]:
    """Delete what is not whole, what was being deleted, and what ends below the log's start. Return their paths."""
    deleted = []
    for path in folder.iterdir():
        found = snapshot_of(path.name)
        if found and (found[1] != CHECKPOINT_SUFFIX or found[0].offset < log_start_offset):
            path.unlink(missing_ok=True)
            deleted.append(path)
    return deleted


def delete_snapshot(folder: Path, snapshot: SnapshotId) -> None:
    """Delete a snapshot; it is renamed first, so that a crash leaves none that is whole and none that is needed."""
    path = folder / snapshot_name(snapshot)
    deleted = folder / snapshot_name(snapshot, DELETED_CHECKPOINT_SUFFIX)
    try:
        path.replace(deleted)
        deleted.unlink()
    except FileNotFoundError:
        return
    except OSError as error:
        raise LogWriteError(f"Failed to delete snapshot {path}: {error.strerror}") from error
