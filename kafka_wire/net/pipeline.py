"""Request pipeline over one stream to one peer: responses arrive in the order of the requests.

An asyncio protocol without tasks and locks. It replaces the correlation id of every request. The first failure (a wrong correlation
id, an invalid frame size, a missing response, the end of the stream) ends the pipeline, and all waiting requests fail with that
reason. connection.py opens the stream and orders the callers.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from kafka_wire.frames import MalformedFrame
from kafka_wire.net.assembler import FrameAssembler
from kafka_wire.net.failures import ConnectionFailed, RequestTimedOut
from kafka_wire.net.peer import Frame
from kafka_wire.net.receive_buffers import buffers_of_loop

MAX_UNANSWERED_REQUESTS = 256
"""Requests of one connection without a response. A Kafka broker handles the requests of a connection one at a time,
so more of them would only wait there instead of here."""

PIECE_BYTES = 64 * 1024
"""A larger request is written in pieces of this size: a single write would copy and encrypt it as a whole."""

ITERATION_BYTES = 1024 * 1024
"""Bytes of large requests that are written in one iteration of the event loop: 2 ms with TLS."""

CORRELATION_BYTES = 4
_MIN_REQUEST_BYTES = 8
"""Key, version and correlation id, which all request headers have."""
_CORRELATION_END = 8
"""End of the correlation id in a request, which follows the 2-byte key and the 2-byte version."""
_CORRELATION_MASK = 0x7FFF_FFFF
"""Correlation ids are positive, as in Kafka's clients."""


class _Waiter:
    """A request without a response: its correlation id, its deadline, and the future of its response, a view of a large one if `takes_view`."""

    __slots__ = ("correlation", "deadline", "response", "takes_view")

    def __init__(
        self, correlation: bytes, deadline: float, response: "asyncio.Future[Any]", *, takes_view: bool
    ) -> None:
        self.correlation = correlation
        self.deadline = deadline
        self.response = response
        self.takes_view = takes_view


class Pipeline(asyncio.BufferedProtocol):
    """Protocol object of one connection. `name` is the peer's address, for messages.

    `on_held` is called with each change in the bytes held for an incomplete response, which may be negative.
    """

    def __init__(self, name: str, *, max_frame_bytes: int, on_held: Callable[[int], None] | None = None) -> None:
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._buffers = buffers_of_loop()
        self._assembler = FrameAssembler(max_frame_bytes, self._buffers)
        self._max_frame_bytes = max_frame_bytes
        self._on_held = on_held
        self._held_bytes = 0
        """Sum of the changes reported to on_held."""
        self._waiters: deque[_Waiter] = deque()
        self._unsent: deque[memoryview] = deque()
        """Unwritten parts of large requests."""
        self._next_correlation = 0
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self._writable: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._lost = self._loop.create_future()
        self._on_end: list[Callable[[], None]] = []
        self.failure: ConnectionFailed | None = None

    def send(self, frame: bytes, deadline: float, *, takes_view: bool = False) -> "asyncio.Future[Any]":
        """Write a request (header and body, no size) with a new correlation id now.

        The future returns the whole response frame, with that id: bytes, or with `takes_view` perhaps a view, whose buffer is reused when
        nothing views it. It may be cancelled: the response is then dropped when it arrives, and the deadline (loop time, seconds) still
        applies.
        """
        correlation = self._write(frame)
        response: asyncio.Future[Any] = self._loop.create_future()
        self._waiters.append(_Waiter(correlation, deadline, response, takes_view=takes_view))
        if self._timer is None or deadline < self._timer.when():
            self._set_timer(deadline)
        return response

    def send_one_way(self, frame: bytes) -> None:
        """Write a request that has no response."""
        self._write(frame)

    def is_writable(self) -> bool:
        """Return whether a request may be sent now: the peer reads, and not too many requests are without a response."""
        return (
            not self._paused
            and not self._unsent
            and len(self._waiters) < MAX_UNANSWERED_REQUESTS
            and self.failure is None
        )

    async def wait_until_writable(self) -> None:
        """Wait until a request may be sent; raises ConnectionFailed if the pipeline ends first. Only one caller may wait."""
        while not self.is_writable():
            if self.failure is not None:
                raise self.failure.of_request(sent=False)
            self._writable = self._loop.create_future()
            await self._writable

    def fail(self, failure: ConnectionFailed, *, flush: bool = False) -> None:
        """End the pipeline: close the stream and fail all waiting requests. Later calls have no effect.

        With `flush`, written requests are still sent; otherwise they are dropped.
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
            if not waiter.response.done():
                waiter.response.set_exception(failure.of_request(sent=True))
        self._report_held(0)
        self._wake()
        for callback in self._on_end:
            callback()

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the pipeline ends, or now if it has ended."""
        if self.failure is None:
            self._on_end.append(callback)
        else:
            callback()

    async def wait_lost(self, timeout_s: float) -> None:
        """Wait until the socket is closed; drop written requests that are not sent in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(self._lost)
        except TimeoutError:
            assert self._transport is not None
            self._transport.abort()
            await asyncio.shield(self._lost)

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Return where the next bytes go."""
        return self._assembler.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Complete the futures of the whole responses that have arrived."""
        self._assembler.received(nbytes)
        try:
            while self.failure is None and (frame := self._assembler.pop()) is not None:
                self._complete(frame)
        except MalformedFrame as error:
            self.fail(ConnectionFailed(f"{self._name} sent a malformed stream: {error}", sent=True))
        self._assembler.keep()
        self._report_held(self._assembler.buffered)
        self._wake()

    def pause_writing(self) -> None:
        """Stop writing requests: the peer reads slower than this process writes."""
        self._paused = True

    def resume_writing(self) -> None:
        """Continue writing: the peer has read."""
        self._paused = False
        if self.failure is None:
            self._write_on()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the waiting requests, unless the pipeline was ended locally before."""
        reason = (
            f"{self._name} closed the connection" if exc is None else f"the connection to {self._name} was lost: {exc}"
        )
        failure = ConnectionFailed(reason, sent=True)
        failure.__cause__ = exc
        self.fail(failure)
        self._assembler.close()
        if not self._lost.done():
            self._lost.set_result(None)

    # Internals.

    def _write(self, frame: bytes) -> bytes:
        if self.failure is not None:
            raise self.failure.of_request(sent=False)
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
        """Write the rest of large requests while the peer reads, at most ITERATION_BYTES in one iteration of the event loop."""
        left_bytes = ITERATION_BYTES
        while self._unsent and not self._paused and left_bytes > 0 and self._transport is not None:
            piece = self._unsent[0][:PIECE_BYTES]
            rest = self._unsent[0][PIECE_BYTES:]
            if rest:
                self._unsent[0] = rest
            else:
                self._unsent.popleft()
            self._transport.write(piece)
            left_bytes -= len(piece)
        if self._unsent and not self._paused:
            self._loop.call_soon(self._continue)

    def _continue(self) -> None:
        if self.failure is None:
            self._write_on()
            self._wake()

    def _complete(self, frame: Frame) -> None:
        if isinstance(frame, memoryview):
            self._buffers.give_back(frame)
        if not self._waiters:
            self.fail(ConnectionFailed(f"{self._name} sent a response without a request", sent=True))
            return
        waiter = self._waiters[0]
        if frame[:CORRELATION_BYTES] != waiter.correlation:
            found = int.from_bytes(frame[:CORRELATION_BYTES], "big", signed=True)
            expected = int.from_bytes(waiter.correlation, "big")
            reason = f"{self._name} sent a response with correlation id {found}, expected {expected}"
            self.fail(ConnectionFailed(reason, sent=True))
            return
        self._waiters.popleft()
        if not waiter.response.done():
            waiter.response.set_result(frame if waiter.takes_view else bytes(frame))

    def _report_held(self, byte_count: int) -> None:
        if self.failure is not None:
            byte_count = 0
        if self._on_held is not None and byte_count != self._held_bytes:
            change, self._held_bytes = byte_count - self._held_bytes, byte_count
            self._on_held(change)

    def _wake(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    def _set_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._on_timer)

    def _on_timer(self) -> None:
        """Fail if the deadline of a request has passed; the timer was set to the earliest deadline known then."""
        self._timer = None
        if not self._waiters:
            return
        earliest = min(waiter.deadline for waiter in self._waiters)
        if earliest > self._loop.time():
            self._set_timer(earliest)
            return
        self.fail(RequestTimedOut(f"{self._name} did not respond to a request in time", sent=True))
