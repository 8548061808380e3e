"""One queue of events in simulated time, and the one source of chance: with an equal seed everything happens again."""

import hashlib
import heapq
from collections.abc import Callable
from random import Random

AT_ONCE_MAX = 2000
"""More events at one time than any burst has: a node that does something without end is found at once."""


class Scheduler:
    """Events by time; events of one time run in the order in which they were scheduled. Times are in milliseconds."""

    def __init__(self, seed: int) -> None:
        self.now_ms = 0
        self.random = Random(seed)
        self.events = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._scheduled = 0
        self._at_once = 0
        self._trace = hashlib.blake2b(digest_size=16)

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Run an action later."""
        self._scheduled += 1
        heapq.heappush(self._queue, (self.now_ms + max(0, delay_ms), self._scheduled, action))

    def every(self, interval_ms: int, action: Callable[[], None]) -> None:
        """Run an action again and again, with up to half an interval of jitter."""

        def repeat() -> None:
            action()
            self.after(interval_ms + self.random.randrange(interval_ms // 2 + 1), repeat)

        self.after(interval_ms, repeat)

    def chance(self, probability: float) -> bool:
        """Draw whether something rare happens."""
        return probability > 0 and self.random.random() < probability

    def run_until(self, end_ms: int, *, done: Callable[[], bool] = lambda: False) -> bool:
        """Run events up to a time, or until a condition holds at the end of a millisecond; return whether it does."""
        while self._queue and self._queue[0][0] <= end_ms:
            before_ms = self.now_ms
            if self._queue[0][0] > before_ms and done():
                return True
            self.now_ms, _, action = heapq.heappop(self._queue)
            self.events += 1
            if self.now_ms > before_ms:
                self._at_once = 0
            self.step()
            action()
        if not done():
            self.now_ms = max(self.now_ms, end_ms)
        return done()

    def step(self) -> None:
        """Count an event, or a step of one that has many, and fail if there are too many at this time."""
        self._at_once += 1
        assert self._at_once <= AT_ONCE_MAX, "livelock: simulated time does not advance"

    def trace(self, *facts: object) -> None:
        """Add facts to the trace, whose hash is equal for equal runs."""
        self._trace.update(f"{self.now_ms} {' '.join(map(str, facts))}\n".encode())

    def trace_hash(self) -> str:
        """Return the hash of the trace and of the random state."""
        trace = self._trace.copy()
        trace.update(repr(self.random.getstate()).encode())
        return trace.hexdigest()
