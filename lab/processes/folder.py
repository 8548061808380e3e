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

LOG_LINES = 20
LINE_CHARACTERS = 240
"""With the number of lines above: the logs of five processes fit a few screens."""

LAST_BYTES = 64 * 1024
"""More than so many lines of that length; the rest of a log is not read."""


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
    """Yield `given`, which is kept, or a new folder, which is deleted at the end.

    The error that ends the block gets the ends of the folder's logs as notes, since they are deleted when it is reported.
    """
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    folder = LabFolder()
    try:
        yield folder.path
    except Exception as error:
        for path in sorted(folder.path.glob("*.log")):
            error.add_note(log_end(path))
        raise
    finally:
        folder.remove()


def log_end(path: Path) -> str:
    """Return the last lines of a log, under its name."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LAST_BYTES))
        lines = file.read().decode("utf-8", errors="replace").splitlines()[-LOG_LINES:]
    return "\n".join([f"--- end of {path.name}", *(line[:LINE_CHARACTERS] for line in lines)])


def _sweep() -> None:
    if os.environ.get("KAFKA_STEWARD_KEEP"):
        return
    for lock_path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*{LOCK_SUFFIX}"):
        with contextlib.suppress(OSError), lock_path.open("rb") as lock:  # another user's, or already deleted
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock_path.with_suffix(""), ignore_errors=True)
            lock_path.unlink(missing_ok=True)
