"""Timers of the groups of a coordinator, by key. Times are in milliseconds of any clock that never goes back."""

import heapq
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

SPARE_ENTRIES = 1_000
"""Entries of stopped timers that may stay until their time, in addition to one for each timer."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class Timers(Generic[Key]):
    """Due times by key. A timer that is moved back costs nothing until its former time, so that heartbeats are cheap."""

    _due: dict[Key, int] = field(default_factory=dict)
    _queue: list[tuple[int, int, Key]] = field(default_factory=list)
    """Times at which a key is looked up: one entry for each key, or more for keys that were moved forward."""
    _queued: dict[Key, int] = field(default_factory=dict)
    """Earliest entry of each key."""
    _count: int = 0

    def start(self, key: Key, due_ms: int) -> None:
        """Start a timer, or move it to another time."""
        self._due[key] = due_ms
        if key not in self._queued or due_ms < self._queued[key]:
            self._push(key, due_ms)

    def stop(self, key: Key) -> None:
        """Stop a timer, if it runs."""
        self._due.pop(key, None)

    def pop_due(self, now_ms: int) -> Key | None:
        """Remove one timer whose time has come, and return its key; None: there is none."""
        while self._queue and self._queue[0][0] <= now_ms:
            queued_ms, _, key = heapq.heappop(self._queue)
            if self._queued.get(key) != queued_ms:
                continue  # Replaced by an earlier entry.
            del self._queued[key]
            due_ms = self._due.get(key)
            if due_ms is None:
                continue
            if due_ms <= queued_ms:
                del self._due[key]
                return key
            self._push(key, due_ms)  # It was moved back.
        return None

    @property
    def next_ms(self) -> int | None:
        """Time before which no timer is due; None: there are no timers."""
        return self._queue[0][0] if self._queue else None

    def __len__(self) -> int:
        return len(self._due)

    def _push(self, key: Key, due_ms: int) -> None:
        self._queued[key] = due_ms
        self._count += 1
        heapq.heappush(self._queue, (due_ms, self._count, key))
        if len(self._queue) > 2 * len(self._due) + SPARE_ENTRIES:
            self._drop_stopped()

    def _drop_stopped(self) -> None:
        self._queued = dict(self._due)
        self._queue = [(due_ms, number, key) for number, (key, due_ms) in enumerate(self._due.items())]
        self._count = len(self._queue)
        heapq.heapify(self._queue)
