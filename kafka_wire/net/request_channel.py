"""Bounded request channel between the connections of a process and the handlers of their requests.

A request is queued from the moment it is taken from its stream until its handler starts, in the next iteration of the event loop. The bytes
of a request count from their arrival until its handler starts; those of a Produce request until it is answered, as Kafka keeps their
memory (ApiKeys.requiresDelayedAllocation). At a limit no connection begins to read a request; those that have begun to arrive are completed,
as otherwise they would wait for each other. Source: Kafka's RequestChannel and SimpleMemoryPool.
"""

import asyncio
from typing import Protocol

MAX_QUEUED_REQUESTS = 500
"""Kafka's default of queued.max.requests."""


class Waiting(Protocol):
    """A connection that waits until it may read again."""

    def resume(self) -> None:
        """Continue, or wait again if the channel is full."""


class RequestChannel:
    """Queued requests and their bytes. `max_bytes` is queued.max.request.bytes; None: no limit, Kafka's default."""

    def __init__(self, max_requests: int = MAX_QUEUED_REQUESTS, max_bytes: int | None = None) -> None:
        if max_requests <= 0 or (max_bytes is not None and max_bytes <= 0):
            raise ValueError(f"limits must be greater than 0, found {max_requests} requests and {max_bytes} bytes")
        self.max_requests = max_requests
        self.max_bytes = max_bytes
        self.queued_requests = 0
        """Kafka's RequestQueueSize."""
        self.used_bytes = 0
        """Kafka's MemoryPoolUsed."""
        self.waits = 0
        """How often a connection had to wait for the channel."""
        self._to_start: dict[Waiting, None] = {}
        """Connections with a request that waits for room in the queue, in the order in which they began to wait."""
        self._to_read: dict[Waiting, None] = {}
        """Connections that wait until they may begin to read a request."""
        self._is_scheduled = False

    @property
    def is_queue_full(self) -> bool:
        """Whether no request may be taken from its stream."""
        return self.queued_requests >= self.max_requests

    @property
    def is_full(self) -> bool:
        """Whether no connection may begin to read a request."""
        return self.is_queue_full or (self.max_bytes is not None and self.used_bytes >= self.max_bytes)

    @property
    def available_bytes(self) -> int | None:
        """Kafka's MemoryPoolAvailable: negative if the last requests exceeded the limit; None without a limit."""
        return None if self.max_bytes is None else self.max_bytes - self.used_bytes

    def use(self, byte_count: int) -> None:
        """Add bytes of requests; a negative count releases bytes."""
        self.used_bytes += byte_count
        if byte_count < 0:
            self._wake()

    def enqueue(self) -> None:
        """Count a request whose handler will start."""
        self.queued_requests += 1

    def dequeue(self) -> None:
        """Note that the handler of a request has started, or never will."""
        self.queued_requests -= 1
        self._wake()

    def wait_to_start(self, connection: Waiting) -> None:
        """Resume a connection when the queue has room, whatever the bytes: its request may be what exceeds their limit."""
        self._wait(connection, self._to_start)

    def wait_to_read(self, connection: Waiting) -> None:
        """Resume a connection when the channel is not full."""
        self._wait(connection, self._to_read)

    def leave(self, connection: Waiting) -> None:
        """Forget a connection that has ended."""
        self._to_start.pop(connection, None)
        self._to_read.pop(connection, None)

    def _wait(self, connection: Waiting, waiting: dict[Waiting, None]) -> None:
        self.waits += 1
        waiting[connection] = None
        self._wake()

    def _may_go_on(self) -> dict[Waiting, None]:
        """Return the waiting connections of which the first may go on; empty if none may."""
        if self._to_start and not self.is_queue_full:
            return self._to_start
        return {} if self.is_full else self._to_read

    def _wake(self) -> None:
        if not self._is_scheduled and self._may_go_on():
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        """Resume connections until the channel is full again; each once, so that the event loop goes on."""
        self._is_scheduled = False
        for _ in range(len(self._to_start) + len(self._to_read)):
            waiting = self._may_go_on()
            if not waiting:
                return
            connection = next(iter(waiting))
            del waiting[connection]
            connection.resume()
        self._wake()
