"""The cache in the user's folder: what is downloaded or built once and used by all later runs.

An entry appears complete or not at all (it is built in a folder of another name, then renamed). One process builds it while others
wait. An entry never changes: its name contains the versions that it was built from.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_folder() -> Path:
    """Return the project's folder under `XDG_CACHE_HOME`, or under `~/.cache`; the folder is created when it is missing."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "kafka-steward"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cached(name: str, build: Callable[[Path], None]) -> Path:
    """Return the folder `name` of the cache, after `build(new_folder)` filled it if it was missing."""
    entry = cache_folder() / name
    if entry.is_dir():
        return entry
    entry.parent.mkdir(parents=True, exist_ok=True)
    with entry.with_name(f"{entry.name}.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if entry.is_dir():  # another process built it while this one waited
            return entry
        for stale in entry.parent.glob(f"{entry.name}.partial-*"):  # its builder was killed, or the lock would be taken
            shutil.rmtree(stale, ignore_errors=True)
        partial = Path(tempfile.mkdtemp(prefix=f"{entry.name}.partial-", dir=entry.parent))
        try:
            build(partial)
            partial.rename(entry)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return entry
