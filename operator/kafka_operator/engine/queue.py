"""Work queue of names, partitioned by kind and cluster, so that a slow cluster does not delay others.

A name is queued at most once: the queue is bounded by the number of resources, and when it is full, `put` waits; names are never dropped.
A name that is put while its resource is being reconciled waits for the next batch of its lane.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from itertools import islice

from kafka_operator.names import Key

CAPACITY = 20_000
"""Capacity: twice the number of resources that one process is meant for; some 4 MB."""

Lane = Hashable


class WorkQueue:
    """Names by lane (queue partition), with timers; `woken` is called with a lane that has work again."""

    def __init__(
        self, lane_of: Callable[[Key], Lane | None], woken: Callable[[Lane], None], *, capacity: int = CAPACITY
    ) -> None:
        """`lane_of` returns None for a name whose resource no longer exists; the name is removed."""
        self._lane_of = lane_of
        self._woken = woken
        self._capacity = capacity
        self._lanes: dict[Lane, dict[Key, None]] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._size = 0
        self._room = asyncio.Event()
        self._room.set()

    def __len__(self) -> int:
        return self._size

    async def put(self, key: Key) -> None:
        """Put a name; wait while the queue is full."""
        while self._size >= self._capacity and not self._waits(key):
            self._room.clear()
            await self._room.wait()
        self.put_now(key)

    def put_now(self, key: Key) -> None:
        """Put a name even if the queue is full: for names that were in it a moment ago."""
        self._cancel_timer(key)
        lane = self._lane_of(key)
        if lane is None:
            return
        waiting = self._lanes.setdefault(lane, {})
        if key not in waiting:
            waiting[key] = None
            self._size += 1
        self._woken(lane)

    def put_after(self, key: Key, delay_s: float) -> None:
        """Put a name after a delay; the last call for a name counts, and an immediate put cancels it."""
        self._cancel_timer(key)
        self._timers[key] = asyncio.get_running_loop().call_later(delay_s, self._due, key)

    def take(self, lane: Lane, limit: int) -> list[Key]:
        """Take the oldest names of a lane."""
        waiting = self._lanes.get(lane, {})
        taken = list(islice(waiting, limit))
        for key in taken:
            del waiting[key]
            self._cancel_timer(key)
        if not waiting:
            self._lanes.pop(lane, None)
        self._size -= len(taken)
        if self._size < self._capacity:
            self._room.set()
        return taken

    def waiting(self, lane: Lane) -> int:
        """Return how many names wait in a lane."""
        return len(self._lanes.get(lane, ()))

    def close(self) -> None:
        """Stop all timers."""
        for key in list(self._timers):
            self._cancel_timer(key)

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.put_now(key)

    def _waits(self, key: Key) -> bool:
        return key in self._lanes.get(self._lane_of(key), ())

    def _cancel_timer(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
