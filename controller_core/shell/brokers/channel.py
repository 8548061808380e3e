"""One broker's channel: requests in order, each sent until it is answered, all of them dropped when the broker is another.

Kafka's brokers rely on the order (a StopReplica after the LeaderAndIsr that took a partition away), so the next request
waits for the answer to the one before; a broker that does not answer holds up nobody else. A registration with another
epoch is another life of the broker: its channel begins empty, since it is told everything anew (C13).

Leaves out what the requests say, and what answers mean.
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
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.failures import CodecError
from kafka_wire.net.backoff import Backoff
from kafka_wire.net.failures import ConnectionFailed, UnsupportedVersion
from kafka_wire.net.node import Node

log = logging.getLogger(__name__)

MAX_QUEUED = 10_000
"""Requests that may wait for one broker. A broker that lets so many pile up is told everything anew instead. What cannot be told
anew stays; where that alone is more, the limit is twice as much."""
REQUEST_TIMEOUT_MS = 30_000
"""Kafka's own time-out of a controller's requests (request.timeout.ms); a broker that stops a large partition may need it."""
PAUSE_S = 0.1
"""Pause before a failed request is sent again; Node's own backoff comes on top."""

REFUSAL_PAUSES = Backoff(initial_ms=100, cap_ms=5_000, jitter=0)
"""Pauses before a request that a broker refused is sent to it again. No jitter: it is one caller, and waits for nobody."""

Answered = Callable[["Request", Body, int], bool]
"""Takes in an answer, and how often it was answered before; True: the request is to be sent again."""


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One request that waits for its answer."""

    broker: int
    key: ApiKey
    body: Body | StatesBody
    settled: asyncio.Event
    """Set when it was answered, given up or dropped."""


class Channel:
    """The queue of one life of one broker. Needs a running event loop."""

    def __init__(
        self, broker: int, node: Node, answered: Answered, pace: Pace, waiting: Iterable[Request] = ()
    ) -> None:
        """Begin with `waiting`, requests of another channel that go on by this one."""
        self.broker = broker
        self._node = node
        self._pace = pace
        self._answered = answered
        self._queue: deque[Request] = deque(waiting)
        self._limit = MAX_QUEUED
        self._wake = asyncio.Event()
        self._given_up: set[ApiKey] = set()
        self._first_since = asyncio.get_running_loop().time()
        """Since when the request at the head of the queue has been under way, loop time in s."""
        self._worker = asyncio.create_task(self._work(), name=f"channel to broker {broker}")

    @property
    def queued(self) -> int:
        """Requests that wait, the one under way included."""
        return len(self._queue)

    @property
    def is_full(self) -> bool:
        """Whether the broker is to be told everything anew instead of one thing more."""
        return len(self._queue) >= self._limit

    def put(self, key: ApiKey, body: Body | StatesBody) -> None:
        """Add a request behind the others."""
        if not self._queue:
            self._first_since = asyncio.get_running_loop().time()
        self._queue.append(Request(self.broker, key, body, asyncio.Event()))
        self._wake.set()

    def keep_only(self, is_kept: Callable[[Request], bool]) -> None:
        """Drop what waits, but for the request under way and those that are to be kept."""
        waiting, self._queue = self._queue, deque()
        for place, request in enumerate(waiting):
            if place == 0 or is_kept(request):
                self._queue.append(request)
            else:
                request.settled.set()
        self._limit = max(MAX_QUEUED, 2 * len(self._queue))

    @property
    def waiting(self) -> tuple[Request, ...]:
        """What waits, in order."""
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
        """Send nothing more, and return what waits; the one under way may have been taken, and has to be sent again."""
        self._worker.cancel()
        waiting, self._queue = tuple(self._queue), deque()
        return waiting

    async def close(self) -> None:
        """Drop what waits."""
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
                await self._carry_through(request)
            except Exception as error:
                # What is wrong with one request must not end a broker's channel.
                extra = {"broker": self.broker, "api": request.key.name}
                log.error("unexpected failure on a request to broker", exc_info=error, extra=extra)
            self._queue.popleft()
            self._first_since = asyncio.get_running_loop().time()
            request.settled.set()

    async def _carry_through(self, request: Request) -> None:
        """Send one request until it has an answer that ends it, or none that will ever be understood."""
        for refusals in itertools.count():
            answer = await self._send(request)
            if answer is None or not self._answered(request, answer, refusals):
                return
            await asyncio.sleep(REFUSAL_PAUSES.delay_ms(refusals + 1, 0) / 1000)

    async def _send(self, request: Request) -> Body | None:
        """Send one request until it is answered. None: no answer will ever be understood."""
        complained = False
        while True:
            try:
                return await self._call(request)
            except ConnectionFailed as error:
                if not complained:
                    complained = True
                    log.info(
                        "request to broker is sent again until it is answered",
                        extra={"broker": self.broker, "api": request.key.name, "why": str(error)},
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

        return await self._node.call(request.key, encode, timeout_ms=REQUEST_TIMEOUT_MS, decode=decode)

    def _give_up(self, request: Request, error: Exception) -> None:
        """Say once for each kind of request that this broker cannot be told: it is too old, or we are wrong."""
        level = logging.DEBUG if request.key in self._given_up else logging.ERROR
        self._given_up.add(request.key)
        extra = {"broker": self.broker, "api": request.key.name, "why": str(error)}
        log.log(level, "request to broker given up, as will be others of its kind", extra=extra)
