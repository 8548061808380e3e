"""Scheduler of chunked writes of long responses.

A hundred clients may request the same 12 MB at once. If each response were passed to its transport as a whole, the transports would
copy all of them and block the event loop. Here the connections take turns in writing one chunk each, only while their peers read, and
for a limited time before the event loop continues.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

CHUNK_BYTES = 64 * 1024
"""Size of a chunk: the amount that a transport buffers before it pauses its writer."""
STEP_S = 0.002
"""Time of writing before other callbacks of the event loop run: 25 of these steps fit into the longest allowed stall of 50 ms."""
URGENT_SHARE = 20
"""While the process has urgent work, writing long responses takes one part in this many of the event loop's time."""


def never() -> bool:
    """Report that nothing is urgent."""
    return False


class Outflow:
    """Connections of one server that have chunks to write. `is_urgent` returns whether other work has priority."""

    def __init__(self, is_urgent: Callable[[], bool] = never) -> None:
        self._is_urgent = is_urgent
        self._writers: deque[Callable[[], bool]] = deque()
        self._is_scheduled = False

    def add(self, write: Callable[[], bool]) -> None:
        """Call `write` in turn with the others for as long as it returns True."""
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
