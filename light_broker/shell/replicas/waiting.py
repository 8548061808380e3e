"""Requests that wait in purgatories on the event loop, with one timer for their deadlines."""

import asyncio
from collections.abc import Callable, Iterable

from kafka_wire.topic_partition import TopicPartition
from light_broker.core.purgatory import Purgatory
from light_broker.shell.replicas.delayed import DelayedDeleteRecords, DelayedFetch, DelayedProduce

Delayed = DelayedProduce | DelayedFetch | DelayedDeleteRecords


class WaitingRequests:
    """The requests that wait for partitions, in a purgatory for each API."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._purgatories: dict[type[Delayed], Purgatory[TopicPartition]] = {
            DelayedProduce: Purgatory(),
            DelayedFetch: Purgatory(),
            DelayedDeleteRecords: Purgatory(),
        }
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0

    async def wait(self, request: Delayed, partitions: Iterable[TopicPartition], timeout_ms: int) -> None:
        """Return when a request is satisfied or its time is over; at once if it is satisfied now."""
        purgatory = self._purgatories[type(request)]
        deadline_ms = self._now_ms() + max(timeout_ms, 0)
        number = purgatory.add(request, partitions, deadline_ms)
        if number is None:
            return
        self._set_timer(deadline_ms)
        request.done = asyncio.get_running_loop().create_future()
        try:
            await request.done
        finally:
            purgatory.cancel(number)

    def wake(self, partition: TopicPartition) -> None:
        """Answer the requests that a changed partition satisfies."""
        for purgatory in self._purgatories.values():
            purgatory.check(partition)

    def wake_deletions(self, partition: TopicPartition) -> None:
        """Answer the requests that the start of a follower's log satisfies."""
        self._purgatories[DelayedDeleteRecords].check(partition)

    def count(self, kind: type[Delayed]) -> int:
        """Return how many requests of an API wait."""
        return len(self._purgatories[kind])

    def close(self) -> None:
        """End the timer; the coroutines are cancelled by their connections."""
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self, deadline_ms: int) -> None:
        if self._timer is not None:
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_s = max(deadline_ms - self._now_ms(), 0) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._expire)

    def _expire(self) -> None:
        self._timer = None
        deadlines_ms = []
        for purgatory in self._purgatories.values():
            purgatory.expire(self._now_ms())
            if (deadline_ms := purgatory.next_deadline_ms) is not None:
                deadlines_ms.append(deadline_ms)
        if deadlines_ms:
            self._set_timer(min(deadlines_ms))
