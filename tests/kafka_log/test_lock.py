"""The lock of a data folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kafka_log.errors import FolderLockedError
from kafka_log.files.lock import FolderLock

OTHER_PROCESS = """
import sys
from pathlib import Path
from kafka_log.errors import FolderLockedError
from kafka_log.files.lock import FolderLock
try:
    FolderLock(Path(sys.argv[1]))
    print("locked")
except FolderLockedError as error:
    print(error)
"""


def test_a_folder_is_locked_for_every_other_process_until_it_is_released(tmp_path: Path) -> None:
    """Two processes with one folder would overwrite each other's log; Kafka's FileLock."""

    def ask() -> str:
        return subprocess.run(
            [sys.executable, "-c", OTHER_PROCESS, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
        ).stdout

    with FolderLock(tmp_path):
        assert ask() == f"Failed to acquire the lock on {tmp_path / '.lock'}: another process uses this folder.\n"
    assert ask() == "locked\n"


def test_a_process_gets_its_own_lock_only_once(tmp_path: Path) -> None:
    """The system would grant it again, and release both with the first descriptor that is closed."""
    with FolderLock(tmp_path), pytest.raises(FolderLockedError):
        FolderLock(tmp_path)
    FolderLock(tmp_path).release()
