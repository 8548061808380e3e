"""The user's cache: what is fetched or built once and used by every run after.

An entry appears whole or not at all (built in a folder of another name, then renamed), and one process builds while the others
wait for it. An entry is never changed: its name carries the versions it was made of.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_folder() -> Path:
    """Return the project's folder under `XDG_CACHE_HOME`, or under `~/.cache`; it is made when it is not there."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "kafka-steward"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cached(name: str, build: Callable[[Path], None]) -> Path:
    """Return the folder `name` of the cache, after `build(new_folder)` filled it if it was not there."""
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
