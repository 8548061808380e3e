"""Per-broker request queue: requests are sent in order, each one until it is answered.

Brokers rely on the order (a StopReplica follows the LeaderAndIsr that removed the replica), so a request is sent after the previous one
was answered. A broker that does not answer delays no other broker. A registration with another broker epoch is another incarnation
of the broker: its queue starts empty, since it gets the full state (C13).
"""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from controller_core.shell.brokers.requests import StatesBody, decode_answer
from controller_core.shell.pace import Pace
from kafka_wire import ApiKey, Body
from kafka_wire.codec import CodecError
from kafka_wire.net.client import Backoff, ConnectionFailed, Node, UnsupportedVersion

log = logging.getLogger(__name__)

MAX_QUEUED = 10_000
"""Requests in one queue. When it is full, they are replaced by the full current state. Requests that the full state does not cover
are kept; the limit is then at least twice their number."""
REQUEST_TIMEOUT_MS = 30_000
"""Kafka's timeout of a controller's requests (request.timeout.ms); a broker that deletes a large partition may need it."""
PAUSE_S = 0.1
"""Pause before a failed request is sent again, in addition to the backoff of Node."""

REFUSAL_PAUSES = Backoff(initial_ms=100, cap_ms=5_000, jitter=0)
"""Pauses before a refused request is sent to the broker again. No jitter: there is one sender for each broker."""

Answered = Callable[["Request", Body, int], bool]
"""Processes an answer, given the number of earlier refusals; True: the request is to be sent again."""


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One request in the queue."""

    broker: int
    key: ApiKey
    body: Body | StatesBody
    settled: asyncio.Event
    """Set when the request was answered, given up or dropped."""


class Channel:
    """The queue of one incarnation of a broker. Needs a running event loop."""

    def __init__(
        self, broker: int, node: Node, answered: Answered, pace: Pace, waiting: Iterable[Request] = ()
    ) -> None:
        """Start with `waiting`, the requests of another channel that this one continues."""
        self.broker = broker
        self._node = node
        self._pace = pace
        self._answered = answered
        self._queue: deque[Request] = deque(waiting)
        self._limit = MAX_QUEUED
        self._wake = asyncio.Event()
        self._given_up: set[ApiKey] = set()
        self._first_since = asyncio.get_running_loop().time()
        """Since when the request at the head of the queue has been in flight, loop time in s."""
        self._worker = asyncio.create_task(self._work(), name=f"channel to broker {broker}")

    @property
    def queued(self) -> int:
        """Number of requests, including the one in flight."""
        return len(self._queue)

    @property
    def is_full(self) -> bool:
        """Whether the queued requests are to be replaced by the full state before another one is added."""
        return len(self._queue) >= self._limit

    def put(self, key: ApiKey, body: Body | StatesBody) -> None:
        """Append a request."""
        if not self._queue:
            self._first_since = asyncio.get_running_loop().time()
        self._queue.append(Request(self.broker, key, body, asyncio.Event()))
        self._wake.set()

    def keep_only(self, is_kept: Callable[[Request], bool]) -> None:
        """Drop the queued requests, except for the one in flight and those for which `is_kept` is true."""
        waiting, self._queue = self._queue, deque()
        for place, request in enumerate(waiting):
            if place == 0 or is_kept(request):
                self._queue.append(request)
            else:
                request.settled.set()
        self._limit = max(MAX_QUEUED, 2 * len(self._queue))

    @property
    def waiting(self) -> tuple[Request, ...]:
        """The queued requests, in order."""
        return tuple(self._queue)

    async def settled(self, requests: Iterable[Request], deadline: float, silence_s: float) -> bool:
        """Wait until requests are answered or dropped; False at `deadline` (loop time in s) or when the broker is silent.

        A broker is silent when one request has been without its final answer for `silence_s`.
        """
        loop = asyncio.get_running_loop()
        for request in requests:
            while not request.settled.is_set():
                until = min(deadline, self._first_since + silence_s)
                if until <= loop.time():
                    return False
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(until):
                        await request.settled.wait()
        return True

    def detach(self) -> tuple[Request, ...]:
        """Stop sending, and return the queued requests. The one in flight may have reached the broker and has to be sent again."""
        self._worker.cancel()
        waiting, self._queue = tuple(self._queue), deque()
        return waiting

    async def close(self) -> None:
        """Drop the queued requests and close the connection."""
        for request in self.detach():
            request.settled.set()
        await asyncio.gather(self._worker, return_exceptions=True)
        await self._node.close()

    async def _work(self) -> None:
        while True:
            while not self._queue:
                self._wake.clear()
                await self._wake.wait()
            request = self._queue[0]
            try:
                await self._complete(request)
            except Exception as error:
                # A defect in one request must not end the broker's channel.
                extra = {"broker": self.broker, "api": request.key.name}
                log.error("Unexpected failure of a request to a broker", exc_info=error, extra=extra)
            self._queue.popleft()
            self._first_since = asyncio.get_running_loop().time()
            request.settled.set()

    async def _complete(self, request: Request) -> None:
        """Send one request until its answer is final, or until it is given up."""
        for refusals in itertools.count():
            answer = await self._send(request)
            if answer is None or not self._answered(request, answer, refusals):
                return
            await asyncio.sleep(REFUSAL_PAUSES.delay_ms(refusals + 1, 0) / 1000)

    async def _send(self, request: Request) -> Body | None:
        """Send one request until it is answered. None: the request is given up."""
        is_logged = False
        while True:
            try:
                return await self._call(request)
            except ConnectionFailed as error:
                if not is_logged:
                    is_logged = True
                    log.info(
                        "Failed to send request to broker; retrying until it is answered",
                        extra={"broker": self.broker, "api": request.key.name, "error": str(error)},
                    )
                await asyncio.sleep(PAUSE_S)
            except (CodecError, UnsupportedVersion) as error:
                self._give_up(request, error)
                return None

    async def _call(self, request: Request) -> Body:
        states = request.body
        if not isinstance(states, StatesBody):
            return await self._node.call(request.key, states, timeout_ms=REQUEST_TIMEOUT_MS)

        async def encode(version: int) -> bytes:
            parts: list[bytes] = []
            encoding = states.parts(version)
            while True:
                async with self._pace.step(states.partitions):
                    if (part := next(encoding, None)) is None:
                        return b"".join(parts)
                    parts.append(part)

        async def decode(version: int, frame: bytes) -> Body:
            async with self._pace.step(states.partitions):
                return decode_answer(request.key, version, frame)

        return await self._node.request(request.key, encode, decode, timeout_ms=REQUEST_TIMEOUT_MS)

    def _give_up(self, request: Request, error: Exception) -> None:
        """Log, once for each API, that requests cannot be exchanged with this broker: it is too old, or there is a defect."""
        level = logging.DEBUG if request.key in self._given_up else logging.ERROR
        self._given_up.add(request.key)
        extra = {"broker": self.broker, "api": request.key.name, "error": str(error)}
        log.log(level, "Gave up request to broker; requests of the same API fail in the same way", extra=extra)
