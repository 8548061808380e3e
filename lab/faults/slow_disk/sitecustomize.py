"""Delays of disk calls in the process that loads this (lab.faults.slow_disk), by this name and with this folder in PYTHONPATH."""

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.faults.slow_disk import CONTROL, MARK

SLOWED = ("pread", "pwrite", "pwritev", "ftruncate", "fdatasync", "fsync")

_control = Path(os.environ[CONTROL])
_source = random.Random()  # noqa: S311 - delays
_said: list[str] = []


def _longest_s() -> float:
    """Return the longest delay now, 0 for none."""
    try:
        return float(_control.read_text(encoding="ascii"))
    except FileNotFoundError:
        return 0.0


def _slowed(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call that takes longer while the control file requires it."""

    def delayed(*arguments: Any) -> Any:
        if longest_s := _longest_s():
            if not _said:
                _said.append(MARK)
                sys.stderr.write(f"{MARK}\n")
            time.sleep(_source.uniform(0, longest_s))
        return call(*arguments)

    return delayed


for name in SLOWED:
    setattr(os, name, _slowed(getattr(os, name)))
