"""One broker's channel: requests in order, each sent until it is answered, all of them dropped when the broker is another.

Kafka's brokers rely on the order (a StopReplica after the LeaderAndIsr that took a partition away), so the next request
waits for the answer to the one before; a broker that does not answer holds up nobody else. A registration with another
epoch is another life of the broker: its channel begins empty, since it is told everything anew (C13).

Leaves out what the requests say, and what answers mean.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.failures import CodecError
from kafka_wire.net.failures import ConnectionFailed
from kafka_wire.net.node import Node

log = logging.getLogger(__name__)

MAX_QUEUED = 10_000
"""Requests that may wait for one broker. A broker that lets so many pile up is told everything anew instead."""
REQUEST_TIMEOUT_MS = 30_000
"""Kafka's own time-out of a controller's requests (request.timeout.ms); a broker that stops a large partition may need it."""
PAUSE_S = 0.1
"""Pause before a failed request is sent again; Node's own backoff comes on top."""

Answered = Callable[["Request", Body], None]


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One request that waits for its answer."""

    broker: int
    key: ApiKey
    body: Body


class Channel:
    """The queue of one life of one broker. Needs a running event loop."""

    def __init__(self, broker: int, node: Node, answered: Answered) -> None:
        self.broker = broker
        self._node = node
        self._answered = answered
        self._queue: deque[Request] = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._worker = asyncio.create_task(self._work(), name=f"channel to broker {broker}")

    @property
    def queued(self) -> int:
        """Requests that wait, the one under way included."""
        return len(self._queue)

    @property
    def is_full(self) -> bool:
        """Whether the broker is to be told everything anew instead of one thing more."""
        return len(self._queue) >= MAX_QUEUED

    def put(self, key: ApiKey, body: Body) -> None:
        """Add a request behind the others."""
        self._queue.append(Request(self.broker, key, body))
        self._idle.clear()
        self._wake.set()

    def keep_only(self, key: ApiKey) -> None:
        """Drop what waits, but for the request under way and those of one kind."""
        kept = [request for place, request in enumerate(self._queue) if place == 0 or request.key is key]
        self._queue.clear()
        self._queue.extend(kept)

    async def idle(self) -> None:
        """Wait until nothing waits."""
        await self._idle.wait()

    async def close(self) -> None:
        """Drop what waits."""
        self._worker.cancel()
        await asyncio.gather(self._worker, return_exceptions=True)
        self._queue.clear()
        self._idle.set()
        await self._node.close()

    async def _work(self) -> None:
        while True:
            while not self._queue:
                self._idle.set()
                self._wake.clear()
                await self._wake.wait()
            request = self._queue[0]
            answer = await self._send(request)
            self._queue.popleft()
            if answer is not None:
                self._answered(request, answer)

    async def _send(self, request: Request) -> Body | None:
        """Send one request until it is answered. None: no answer will ever be understood."""
        complained = False
        while True:
            try:
                return await self._node.call(request.key, request.body, timeout_ms=REQUEST_TIMEOUT_MS)
            except ConnectionFailed as error:
                if not complained:
                    complained = True
                    log.info(
                        "request to broker is sent again until it is answered",
                        extra={"broker": self.broker, "api": request.key.name, "why": str(error)},
                    )
                await asyncio.sleep(PAUSE_S)
            except CodecError as error:
                log.error(
                    "request to broker given up",
                    extra={"broker": self.broker, "api": request.key.name, "why": str(error)},
                )
                return None
