"""Writing of long responses in chunks, one connection after the other.

A hundred clients may ask for the same 12 MB at once. Were each response given to its transport whole, the transports would copy
all of it, and the event loop would do nothing else meanwhile. Here a connection writes one chunk per turn, and only while its peer
reads; the turns of all connections of a server take a bounded time before the event loop goes on.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

CHUNK_BYTES = 64 * 1024
"""Written per turn: as much as a transport takes before it asks its writer to pause."""
STEP_S = 0.002
"""Time of writing before other callbacks of the event loop run: 25 of them fit into the longest permitted stall of 50 ms."""
URGENT_SHARE = 20
"""While the process has urgent work, one part in so many of the loop's time goes to writing long responses."""


def never() -> bool:
    """Report that nothing is urgent."""
    return False


class Outflow:
    """The connections of one server that have chunks to write. `is_urgent` reports whether other work goes first."""

    def __init__(self, is_urgent: Callable[[], bool] = never) -> None:
        self._is_urgent = is_urgent
        self._writers: deque[Callable[[], bool]] = deque()
        self._is_scheduled = False

    def add(self, write: Callable[[], bool]) -> None:
        """Have `write` called in its turns for as long as it returns True."""
        self._writers.append(write)
        self._schedule(0.0)

    def _schedule(self, pause_s: float) -> None:
        if self._is_scheduled:
            return
        self._is_scheduled = True
        loop = asyncio.get_running_loop()
        if pause_s:
            loop.call_later(pause_s, self._run)
        else:
            loop.call_soon(self._run)

    def _run(self) -> None:
        self._is_scheduled = False
        began_s = time.perf_counter()
        spent_s = 0.0
        while self._writers and spent_s < STEP_S:
            write = self._writers.popleft()
            if write():
                self._writers.append(write)
            spent_s = time.perf_counter() - began_s
        if self._writers:
            self._schedule(spent_s * (URGENT_SHARE - 1) if self._is_urgent() else 0.0)
