"""A disk that becomes slow while a Python process runs: each call for its files then takes a random time.

Python imports `sitecustomize` of this folder before the program (`SlowDisk.environment`); it wraps the calls of `os` that read, write, cut and flush
files. Writing the longest time to the control file makes them slow, and deleting it ends that.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
CONTROL = "STEWARD_LAB_SLOW_DISK"
"""Environment variable with the path of the control file."""
MARK = "the lab's disk is slow"
"""The process writes this line to its standard error when the first call is delayed."""


class SlowDisk:
    """Makes the disk of one process slow. Raises OSError."""

    def __init__(self, control: Path) -> None:
        self._control = control

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return the variables `base` of the process, with which its disk can become slow."""
        return {**base, "PYTHONPATH": f"{FOLDER}:{base['PYTHONPATH']}", CONTROL: str(self._control)}

    def begin(self, longest_s: float) -> None:
        """Delay each call from now on by up to this time."""
        temporary = self._control.with_suffix(".new")
        temporary.write_text(str(longest_s), encoding="ascii")
        temporary.replace(self._control)

    def end(self) -> None:
        """Delay no further call."""
        self._control.unlink(missing_ok=True)
