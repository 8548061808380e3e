"""An asyncio loop whose clock jumps to the next timer whenever nothing else is left to do: minutes pass in milliseconds.

For code that waits on timers and tasks alone; no thread and no socket may be waited for in it.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Never sleeps: it moves the clock instead."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0:  # callbacks wait already; sockets only wake the loop for them
            return []
        events = super().select(0)
        if events:
            return events
        assert timeout is not None, "nothing is left that could ever happen"
        self.now_s += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop; its time begins at 0."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s


def run_virtually(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop of virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)


def in_virtual_time(test: Callable[[], Coroutine[Any, Any, T]]) -> Callable[[], T]:
    """Make a test of a coroutine that runs on virtual time."""

    def run() -> T:
        return run_virtually(test())

    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    return run
