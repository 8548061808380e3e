"""One open stream to one peer, as a pipeline: requests go out, and answers come back in the same order.

An asyncio protocol without a task or a lock of its own. Every request gets a correlation id here, whatever id its
frame came with. The first thing that goes wrong (a wrong correlation id, a frame out of bounds, an answer that does
not come, the end of the stream) ends the pipeline, and every waiter hears that one reason.

Left out: opening the stream, the order among callers, and what a frame holds (connection.py).
"""

import asyncio
from collections import deque
from collections.abc import Callable

from kafka_wire.frames import MalformedFrame
from kafka_wire.net.assembler import FrameAssembler
from kafka_wire.net.failures import ConnectionFailed, RequestTimedOut

MAX_UNANSWERED_REQUESTS = 256
"""Requests that one connection may have unanswered. A Kafka broker handles the requests of a connection one by one,
so more of them would only wait there instead of here."""

PIECE_BYTES = 64 * 1024
"""A larger request is written in pieces of this: one write would copy it, and encrypt it, as a whole."""

TURN_BYTES = 1024 * 1024
"""What is written of a large request in a turn of the event loop: 2 ms with TLS."""

CORRELATION_BYTES = 4
_MIN_REQUEST_BYTES = 8  # key, version, correlation id: the part that all request headers share
_CORRELATION_END = 8  # in a request the id stands behind the 2-byte key and the 2-byte version
_CORRELATION_MASK = 0x7FFF_FFFF  # ids stay positive, as Kafka's clients keep them


class _Waiter:
    """A request on its way: its id, when its time is up, and who waits for it."""

    __slots__ = ("answer", "correlation", "deadline")

    def __init__(self, correlation: bytes, deadline: float, answer: "asyncio.Future[bytes]") -> None:
        self.correlation = correlation
        self.deadline = deadline
        self.answer = answer


class Pipeline(asyncio.Protocol):
    """The protocol object of one connection. `name` is the peer's address, for messages.

    `on_held` hears of every change in the bytes held of a response that is not complete yet: more, or (below 0) less.
    """

    def __init__(self, name: str, *, max_frame_bytes: int, on_held: Callable[[int], None] | None = None) -> None:
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._assembler = FrameAssembler(max_frame_bytes)
        self._max_frame_bytes = max_frame_bytes
        self._on_held = on_held
        self._held_bytes = 0  # as on_held knows it
        self._waiters: deque[_Waiter] = deque()
        self._unsent: deque[memoryview] = deque()  # the rest of large requests, which are written piece by piece
        self._next_correlation = 0
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self._room: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._lost = self._loop.create_future()
        self._on_end: list[Callable[[], None]] = []
        self.failure: ConnectionFailed | None = None

    def send(self, frame: bytes, deadline: float) -> "asyncio.Future[bytes]":
        """Write a request (header and body, no size) under a correlation id of its own, now.

        The future gives the whole response frame, with that id. A waiter may cancel it: the answer is then dropped
        when it comes, and its deadline (loop time, seconds) still counts.
        """
        correlation = self._write(frame)
        answer: asyncio.Future[bytes] = self._loop.create_future()
        self._waiters.append(_Waiter(correlation, deadline, answer))
        if self._timer is None or deadline < self._timer.when():
            self._set_timer(deadline)
        return answer

    def send_one_way(self, frame: bytes) -> None:
        """Write a request that the peer answers with nothing."""
        self._write(frame)

    def has_room(self) -> bool:
        """Whether a request may be sent now: the peer reads, and not too many requests are unanswered."""
        return (
            not self._paused
            and not self._unsent
            and len(self._waiters) < MAX_UNANSWERED_REQUESTS
            and self.failure is None
        )

    async def wait_for_room(self) -> None:
        """Wait until a request may be sent; raises ConnectionFailed when the pipeline ends first. One waiter at a time."""
        while not self.has_room():
            if self.failure is not None:
                raise ConnectionFailed(self.failure.reason, sent=False)
            self._room = self._loop.create_future()
            await self._room

    def fail(self, failure: ConnectionFailed, *, flush: bool = False) -> None:
        """End the pipeline: drop the stream and tell every waiter. Only the first reason counts.

        With `flush` what was written before still goes out; else it is dropped.
        """
        if self.failure is not None:
            return
        self.failure = failure
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            if flush:
                for rest in self._unsent:
                    self._transport.write(rest)
                self._transport.close()
            else:
                self._transport.abort()
        self._unsent.clear()
        waiters, self._waiters = self._waiters, deque()
        for waiter in waiters:
            if not waiter.answer.done():
                waiter.answer.set_exception(type(failure)(failure.reason, sent=True))
        self._tell_held(0)
        self._wake()
        for callback in self._on_end:
            callback()

    def on_end(self, callback: Callable[[], None]) -> None:
        """Have `callback` called once when the pipeline ends, or now when it has ended."""
        if self.failure is None:
            self._on_end.append(callback)
        else:
            callback()

    async def wait_lost(self, timeout_s: float) -> None:
        """Wait until the socket is really gone; when what was written does not go out in time, drop it."""
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(self._lost)
        except TimeoutError:
            assert self._transport is not None
            self._transport.abort()
            await asyncio.shield(self._lost)

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the stream to write to."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Hand each whole response to its waiter."""
        self._assembler.feed(data)
        try:
            while self.failure is None and (frame := self._assembler.pop()) is not None:
                self._answer(frame)
        except MalformedFrame as why:
            self.fail(ConnectionFailed(f"{self._name} sent a malformed stream: {why}", sent=True))
        self._tell_held(self._assembler.buffered)
        self._wake()

    def pause_writing(self) -> None:
        """Hold requests back: the peer reads slower than this process writes."""
        self._paused = True

    def resume_writing(self) -> None:
        """Go on: the peer has caught up."""
        self._paused = False
        if self.failure is None:
            self._write_on()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the waiters, unless this side ended the pipeline and told them before."""
        cause = "it closed the connection" if exc is None else f"the connection broke: {exc}"
        self.fail(ConnectionFailed(f"{self._name} is gone: {cause}", sent=True))
        if not self._lost.done():
            self._lost.set_result(None)

    # How it works inside.

    def _write(self, frame: bytes) -> bytes:
        if self.failure is not None:
            raise ConnectionFailed(self.failure.reason, sent=False)
        if not _MIN_REQUEST_BYTES <= len(frame) <= self._max_frame_bytes:
            raise ValueError(
                f"a request of {len(frame)} bytes cannot be sent to {self._name}: "
                f"between {_MIN_REQUEST_BYTES} and {self._max_frame_bytes} bytes are allowed"
            )
        assert self._transport is not None
        correlation = self._next_correlation.to_bytes(CORRELATION_BYTES, "big")
        self._next_correlation = (self._next_correlation + 1) & _CORRELATION_MASK
        size = len(frame).to_bytes(4, "big")
        view = memoryview(frame)
        first = b"".join((size, view[:4], correlation, view[_CORRELATION_END:PIECE_BYTES]))
        if self._unsent:
            self._unsent.append(memoryview(first))
        else:
            self._transport.write(first)
        if len(frame) > PIECE_BYTES:
            self._unsent.append(view[PIECE_BYTES:])
            self._write_on()
        return correlation

    def _write_on(self) -> None:
        """Write what is left of large requests, as far as the peer reads, and at most so much in a turn of the loop."""
        room = TURN_BYTES
        while self._unsent and not self._paused and room > 0 and self._transport is not None:
            piece = self._unsent[0][:PIECE_BYTES]
            rest = self._unsent[0][PIECE_BYTES:]
            if rest:
                self._unsent[0] = rest
            else:
                self._unsent.popleft()
            self._transport.write(piece)
            room -= len(piece)
        if self._unsent and not self._paused:
            self._loop.call_soon(self._continue)

    def _continue(self) -> None:
        if self.failure is None:
            self._write_on()
            self._wake()

    def _answer(self, frame: bytes) -> None:
        if not self._waiters:
            self.fail(ConnectionFailed(f"{self._name} sent a response that nobody asked for", sent=True))
            return
        waiter = self._waiters[0]
        if not frame.startswith(waiter.correlation):
            found = int.from_bytes(frame[:CORRELATION_BYTES], "big", signed=True)
            expected = int.from_bytes(waiter.correlation, "big")
            reason = f"{self._name} answered correlation id {found} where {expected} was due"
            self.fail(ConnectionFailed(reason, sent=True))
            return
        self._waiters.popleft()
        if not waiter.answer.done():
            waiter.answer.set_result(frame)

    def _tell_held(self, byte_count: int) -> None:
        if self.failure is not None:
            byte_count = 0
        if self._on_held is not None and byte_count != self._held_bytes:
            change, self._held_bytes = byte_count - self._held_bytes, byte_count
            self._on_held(change)

    def _wake(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def _set_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._on_timer)

    def _on_timer(self) -> None:
        """Look for a request whose time is up; the timer stands at the earliest deadline that it knew of."""
        self._timer = None
        if not self._waiters:
            return
        earliest = min(waiter.deadline for waiter in self._waiters)
        if earliest > self._loop.time():
            self._set_timer(earliest)
            return
        self.fail(RequestTimedOut(f"{self._name} did not answer a request in time", sent=True))
