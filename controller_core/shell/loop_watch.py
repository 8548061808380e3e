"""Watchdog of the event loop: measures its stalls, and gives up the ZooKeeper session when it is blocked for too long.

kazoo keeps the session alive from a thread of its own. A controller whose event loop hangs would therefore hold `/controller`
for as long as it hangs. The watchdog's thread closes the session instead, without help of the event loop, so that another controller
takes over. When the event loop runs again it finds the session lost and opens a new one. Until then its writes are refused by the
fence (`/controller_epoch`), and its requests by the brokers.

Time during which the whole process was stopped does not count: neither thread ran then, kazoo sent no pings, and ZooKeeper
ends the session by itself.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable

log = logging.getLogger(__name__)

BEAT_S = 0.01
"""Interval of the event loop's heartbeats: stalls are measured to this precision."""
CHECKS_PER_LIMIT = 8
"""Checks of the thread within the limit. A block is detected one check after the limit at the latest."""
STACK_FRAMES = 8
"""Innermost frames of the blocked event loop's stack that are logged."""


class Stillness:
    """Counts checks between which no heartbeat came. Counted, not timed: a thread that was stopped itself counts one check."""

    def __init__(self, checks: int) -> None:
        self._checks = checks
        self._beats = -1
        self._missed = 0

    def is_reached(self, beats: int) -> bool:
        """Take the number of heartbeats so far; True once for each block that lasts for the permitted checks.

        >>> stillness = Stillness(checks=2)
        >>> [stillness.is_reached(beats) for beats in (5, 5, 5, 5, 6, 6, 6)]
        [False, False, True, False, False, False, True]
        """
        if beats != self._beats:
            self._beats, self._missed = beats, 0
            return False
        self._missed += 1
        return self._missed == self._checks


class LoopWatch:
    """Watches the event loop in which it is started; to be stopped there."""

    def __init__(self, limit_s: float, give_up: Callable[[], bool]) -> None:
        """`give_up` is called in another thread when the loop has been blocked for the limit; it returns whether it closed a session."""
        self._limit_s = limit_s
        self._give_up = give_up
        self._beats = 0
        self._longest_s = 0.0
        self._longest_cpu_s = 0.0
        self._beat_s = 0.0
        self._beat_cpu_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watch the event loop", daemon=True)
        self._loop_thread = 0
        self.given_up = 0
        """Number of sessions given up."""

    def start(self) -> None:
        """Start watching the running loop."""
        self._loop_thread = threading.get_ident()
        self._beat_s = time.monotonic()
        self._beat_cpu_s = time.thread_time()
        self._plan()
        self._thread.start()

    def stop(self) -> None:
        """Stop watching; the thread ends by itself, after a call of `give_up` that may be running."""
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()

    def take_longest_stall_s(self) -> float:
        """Return the longest stall since the last call."""
        longest_s, self._longest_s = self._longest_s, 0.0
        return longest_s

    def take_longest_cpu_s(self) -> float:
        """Return the most CPU time that the loop's thread used between two heartbeats since the last call.

        Well below the longest stall, it shows that the machine, and not the controller, was busy.
        """
        longest_s, self._longest_cpu_s = self._longest_cpu_s, 0.0
        return longest_s

    def _plan(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(BEAT_S, self._beat)

    def _beat(self) -> None:
        self._beats += 1
        now_s = time.monotonic()
        self._longest_s = max(self._longest_s, now_s - self._beat_s - BEAT_S)
        self._beat_s = now_s
        cpu_s = time.thread_time()
        self._longest_cpu_s = max(self._longest_cpu_s, cpu_s - self._beat_cpu_s)
        self._beat_cpu_s = cpu_s
        self._plan()

    def _watch(self) -> None:
        stillness = Stillness(CHECKS_PER_LIMIT)
        while not self._stopped.wait(self._limit_s / CHECKS_PER_LIMIT):
            if stillness.is_reached(self._beats):
                self._on_blocked()

    def _on_blocked(self) -> None:
        where = self._stack()
        try:
            if not self._give_up():
                return
        except Exception:  # the watchdog must continue, whatever kazoo raises
            log.exception("Failed to close the ZooKeeper session although the event loop is blocked")
            return
        self.given_up += 1
        log.error(
            "The event loop is blocked: closed the ZooKeeper session, so that another controller takes over",
            extra={"blocked_for_s": round(self._limit_s, 3), "where": where},
        )

    def _stack(self) -> str:
        """Describe the current calls of the loop's thread, innermost first."""
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - no other way to another thread's stack
        calls = traceback.extract_stack(frame)[-STACK_FRAMES:] if frame is not None else []
        return " < ".join(f"{call.name} ({call.filename.rpartition('/')[2]}:{call.lineno})" for call in reversed(calls))
