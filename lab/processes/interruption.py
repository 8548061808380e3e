"""SIGTERM ends a program as Ctrl-C does: context managers exit, and the processes that they started are ended."""

from __future__ import annotations

import signal
from types import FrameType


def end_as_by_ctrl_c() -> None:
    """Have SIGTERM raise KeyboardInterrupt in the main thread from now on."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
