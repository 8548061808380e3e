"""Ordered callbacks from ZooKeeper's thread to the event loop, with one wake-up for many callbacks.

`call_soon_threadsafe` writes a byte to wake the loop, which is most of the work at thousands of responses a second. The mailbox collects
callbacks and wakes the loop once for all of them.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

log = logging.getLogger(__name__)

MAX_CALLBACKS_PER_ITERATION = 1_000
"""Callbacks that are called in one iteration of the event loop: about a millisecond's work."""


class Mailbox:
    """Callbacks that any thread posts, and that are called in the event loop's thread in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._callbacks: deque[Callable[[], object]] = deque()
        self._is_scheduled = False
        """A delivery is scheduled. Cleared before callbacks are taken: a callback that is posted in the meantime may wake the
        loop unnecessarily, but is never missed."""

    def post(self, callback: Callable[[], object]) -> None:
        """Call `callback` in the event loop's thread; no effect if the loop is closed."""
        self._callbacks.append(callback)
        if self._is_scheduled:
            return
        self._is_scheduled = True
        try:
            self._loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:
            log.debug("Dropped event: event loop is closed")

    def _deliver(self) -> None:
        self._is_scheduled = False
        try:
            for _ in range(min(len(self._callbacks), MAX_CALLBACKS_PER_ITERATION)):
                self._callbacks.popleft()()
        finally:  # the loop reports a callback that raises; the callbacks after it are still delivered
            if self._callbacks and not self._is_scheduled:
                self._is_scheduled = True
                self._loop.call_soon(self._deliver)
