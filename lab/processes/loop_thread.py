"""Event loop in its own thread, for servers that a synchronous test or benchmark needs.

When it ends, no task is pending: the garbage collector would finish such a task at any moment in any thread, and Python 3.11 crashes when
that traceback is printed in the middle of another one (CPython issue 106905).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine
from typing import Any, TypeVar

WAIT_TIMEOUT_S = 10.0
"""Milliseconds on an idle machine."""

_T = TypeVar("_T")


class LoopThread:
    """`start` it, have coroutines run in it, `close` it."""

    def __init__(self, name: str) -> None:
        self.ended = False
        """Whether it has ended without errors."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine in it and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_TIMEOUT_S)

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function in it, soon."""
        self._loop.call_soon_threadsafe(function, *arguments)

    def close(self) -> None:
        """Cancel the tasks, wait until they have ended, and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_TIMEOUT_S)

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(_end(asyncio.all_tasks(self._loop)))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()
        self.ended = True


async def _end(tasks: Collection[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
