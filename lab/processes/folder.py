"""Temporary folder of one lab: data, settings and logs of its processes, deleted when the lab ends.

A killed process cannot clean up. So each new folder first deletes those of dead owners: an owner holds a lock on a file next to its
folder while it lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "kafka-steward-lab-"
LOCK_SUFFIX = ".lock"


class LabFolder:
    """A new folder under the system's temporary one; `path` is its address until `remove()`.

    `KAFKA_STEWARD_KEEP=1` in the environment keeps it, with the logs.
    """

    def __init__(self) -> None:
        _sweep()
        # The lock comes first: a folder without a locked file may be deleted by another process.
        self._descriptor, lock_path = tempfile.mkstemp(prefix=PREFIX, suffix=LOCK_SUFFIX)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        self._lock_path = Path(lock_path)
        self.path = self._lock_path.with_suffix("")
        self.path.mkdir(mode=0o700)

    def remove(self) -> None:
        """Delete the folder and what is in it; a second call does nothing."""
        if self._descriptor < 0:
            return
        if not os.environ.get("KAFKA_STEWARD_KEEP"):
            shutil.rmtree(self.path, ignore_errors=True)
            self._lock_path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = -1


@contextlib.contextmanager
def lab_folder(given: Path | None = None) -> Iterator[Path]:
    """Yield `given`, which is kept, or a new folder, which is deleted at the end."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    folder = LabFolder()
    try:
        yield folder.path
    finally:
        folder.remove()


def _sweep() -> None:
    if os.environ.get("KAFKA_STEWARD_KEEP"):
        return
    for lock_path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*{LOCK_SUFFIX}"):
        with contextlib.suppress(OSError), lock_path.open("rb") as lock:  # another user's, or already deleted
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock_path.with_suffix(""), ignore_errors=True)
            lock_path.unlink(missing_ok=True)
