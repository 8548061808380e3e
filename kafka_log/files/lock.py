"""Lock of a data folder, so that two processes never use it at the same time.

The lock is of the kind that Java takes (POSIX record locks), so that Kafka and Steward exclude each other too. The system releases it when the
process ends, however it ends.
"""

import fcntl
import os
import threading
from pathlib import Path
from typing import Self

from kafka_log.errors import FolderLockedError
from kafka_log.format.names import LOCK

_held: set[tuple[int, int]] = set()
"""Device and inode of the locks that this process holds: the system grants a process its own lock a second time."""
_guard = threading.Lock()


class FolderLock:
    """The lock of one data folder, held from its creation until `release`. Source: Kafka's FileLock and LogManager."""

    def __init__(self, data_folder: Path) -> None:
        """Take the lock; raises FolderLockedError while any process holds it."""
        self._path = data_folder / LOCK
        locked = FolderLockedError(f"Failed to acquire the lock on {self._path}: another process uses this folder.")
        with _guard:
            # Closing any descriptor of the file would release the lock that this process already holds.
            if self._path.exists() and _identity(self._path.stat()) in _held:
                raise locked
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(self._descriptor)
                raise locked from None
            self._key = _identity(os.fstat(self._descriptor))
            _held.add(self._key)

    def release(self) -> None:
        """Release the lock; the file stays."""
        with _guard:
            _held.discard(self._key)
            os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
