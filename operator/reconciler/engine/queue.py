"""Work queue of names, partitioned by kind and queue (of Topics: their Cluster), so that a slow cluster does not delay others.

A name is queued at most once: the queue is bounded by the number of resources, and when it is full, `put` waits; names are never dropped.
A name that is put while its resource is being reconciled waits for the next batch of its partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from itertools import islice

from reconciler.names import Key

CAPACITY = 20_000
"""Capacity: twice the number of resources that one process is meant for; some 4 MB."""

QueuePartition = Hashable


class WorkQueue:
    """Names by queue partition, with timers; `woken` is called with a partition that has work again."""

    def __init__(
        self,
        partition_of: Callable[[Key], QueuePartition | None],
        woken: Callable[[QueuePartition], None],
        *,
        capacity: int = CAPACITY,
    ) -> None:
        """`partition_of` returns None for a name whose resource no longer exists; the name is removed."""
        self._partition_of = partition_of
        self._woken = woken
        self._capacity = capacity
        self._partitions: dict[QueuePartition, dict[Key, None]] = {}
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
        partition = self._partition_of(key)
        if partition is None:
            return
        waiting = self._partitions.setdefault(partition, {})
        if key not in waiting:
            waiting[key] = None
            self._size += 1
        self._woken(partition)

    def put_after(self, key: Key, delay_s: float) -> None:
        """Put a name after a delay; the last call for a name counts, and an immediate put cancels it."""
        self._cancel_timer(key)
        self._timers[key] = asyncio.get_running_loop().call_later(delay_s, self._due, key)

    def take(self, partition: QueuePartition, limit: int) -> list[Key]:
        """Take the oldest names of a partition."""
        waiting = self._partitions.get(partition, {})
        taken = list(islice(waiting, limit))
        for key in taken:
            del waiting[key]
            self._cancel_timer(key)
        if not waiting:
            self._partitions.pop(partition, None)
        self._size -= len(taken)
        if self._size < self._capacity:
            self._room.set()
        return taken

    def waiting(self, partition: QueuePartition) -> int:
        """Return how many names wait in a partition."""
        return len(self._partitions.get(partition, ()))

    def close(self) -> None:
        """Stop all timers."""
        for key in list(self._timers):
            self._cancel_timer(key)

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.put_now(key)

    def _waits(self, key: Key) -> bool:
        return key in self._partitions.get(self._partition_of(key), ())

    def _cancel_timer(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
