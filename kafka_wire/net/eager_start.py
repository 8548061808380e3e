"""Start of a coroutine without a task, which only a coroutine that waits needs.

A task costs an iteration of the event loop before its coroutine starts. Python 3.12 has `Task(eager_start=True)` for it; here the current task
is not set before the first wait.
"""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any


def run_to_first_wait(coroutine: Coroutine[Any, Any, None]) -> "StartedCoroutine | None":
    """Run a coroutine until it waits, and return the rest of it, for a task; None if it has ended.

    An exception that it raises is raised here, except for CancelledError, with which a task would end.
    """
    try:
        waited_for = coroutine.send(None)
    except (StopIteration, asyncio.CancelledError):
        return None
    return StartedCoroutine(coroutine, waited_for)


class StartedCoroutine(Coroutine[Any, Any, None]):
    """A coroutine that waits for the first time."""

    def __init__(self, coroutine: Coroutine[Any, Any, None], waited_for: object) -> None:
        """Take the coroutine and what it has yielded, such as a future; None if it only lets others run."""
        self._coroutine = coroutine
        self._waited_for = waited_for
        self._has_yielded = False

    def send(self, value: Any) -> Any:
        """Yield what the coroutine waits for, then continue it."""
        if not self._has_yielded:
            self._has_yielded = True
            return self._waited_for
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an exception where the coroutine waits."""
        self._has_yielded = True
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """End the coroutine."""
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, None]:
        """Not supported: a task runs it."""
        raise TypeError("a started coroutine is run by a task")
