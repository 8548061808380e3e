"""Writes that survive a crash of the machine: fsync of files and folders, new folders, and whole-file replacement.

A failed fsync is a FlushFailedError and is never repeated (see there); any other failed write is a LogWriteError.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from kafka_log.errors import FlushFailedError, LogWriteError

TEMPORARY_SUFFIX = ".tmp"


def flush_file(descriptor: int, path: Path) -> None:
    """Write a file's data, and the metadata needed to read it, to the disk."""
    try:
        os.fdatasync(descriptor)
    except OSError as error:
        raise FlushFailedError(
            f"Failed to flush {path}: {error.strerror}. The process must exit and recover."
        ) from error


def make_folder(folder: Path) -> None:
    """Create a folder with its parents where they are missing, and flush the entry of each. Raises LogWriteError."""
    try:
        missing = [directory for directory in (folder, *folder.parents) if not directory.exists()]
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LogWriteError(f"Failed to create folder {folder}: {error.strerror}") from error
    for directory in missing:
        flush_folder(directory.parent)


def flush_folder(folder: Path) -> None:
    """Write a folder's entries to the disk: files that were created, renamed or deleted in it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise LogWriteError(f"Failed to open folder {folder}: {error.strerror}") from error
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise FlushFailedError(
            f"Failed to flush folder {folder}: {error.strerror}. The process must exit and recover."
        ) from error
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file's content in one step: after a crash it has the old content or the new one.

    When it returns, the new content is on the disk. After a LogWriteError the file has its old content.
    """
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            flush_file(file.fileno(), temporary)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise LogWriteError(f"Failed to write {path}: {error.strerror}") from error
    flush_folder(path.parent)


def write_at(descriptor: int, pieces: Sequence[bytes | memoryview], position: int, path: Path) -> None:
    """Write all bytes of the pieces at the end of a file. When that fails, the file is cut to its previous size.

    Raises LogWriteError, after which the write may be repeated, and FlushFailedError when the file cannot be cut.
    """
    size_bytes = sum(map(len, pieces))
    try:
        written = os.pwritev(descriptor, pieces, position)
        while written < size_bytes:  # such as on a disk that is nearly full: the next write reports it
            left = memoryview(b"".join(pieces))[written:]
            written += os.pwritev(descriptor, [left], position + written)
    except OSError as error:
        try:
            os.ftruncate(descriptor, position)
        except OSError as cut:
            raise FlushFailedError(
                f"Failed to cut {path} to {position} bytes after a failed write: {cut.strerror}"
            ) from cut
        raise LogWriteError(f"Failed to write {size_bytes} bytes to {path}: {error.strerror}") from error
