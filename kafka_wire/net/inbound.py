"""One connection that a server accepted: frames in, handlers side by side, responses out in the order of the requests.

Reading pauses when enough requests are being handled, and handling pauses when the peer does not read: what one
peer can make this process hold is bounded either way. A frame is cut out of the stream only when it may be handled.

Left out: the bounds over all connections, and the clock (server.py).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from kafka_wire.encoded_body import PiecewiseResponse, Response
from kafka_wire.frames import SIZE_BYTES, MalformedFrame
from kafka_wire.net.assembler import FrameAssembler, RequestLimit
from kafka_wire.net.distinguished_name import subject_of
from kafka_wire.net.failures import CloseConnection, MalformedRequest
from kafka_wire.net.limits import ServerLimits
from kafka_wire.net.outflow import CHUNK_BYTES, Outflow
from kafka_wire.net.peer import Handler, Peer
from kafka_wire.net.principal_rules import PrincipalRules
from kafka_wire.net.sasl_server import MAX_RECEIVE_BYTES, SaslGate, SaslServer

_log = logging.getLogger(__name__)

_LONG_RESPONSE_TIMEOUTS = 5
"""A long response must be read within so many frame timeouts, so that no peer keeps shared memory in use for ever: 5 minutes
allow 40 KB/s for the answer about 200,000 partitions."""

_WRITE_BATCH_BYTES = 64 * 1024  # responses joined into one write; larger gains nothing and copies more


class Owner(Protocol):
    """What a connection asks of its server."""

    limits: ServerLimits
    handler: Handler
    sasl: SaslServer | None
    principal_rules: PrincipalRules
    outflow: Outflow
    request_limit: RequestLimit | None

    def admit(self, connection: "Inbound") -> bool:
        """Take the connection in, or tell that there is no room for it."""

    def hold(self, connection: "Inbound", byte_count: int) -> None:
        """Count what the connection holds in memory, more or (below 0) less."""

    def level_of_malformed(self, host: str) -> int:
        """Give the level to log a malformed request of a host with."""

    def release(self, connection: "Inbound", tasks: list["asyncio.Task[None]"]) -> None:
        """Forget the connection, which has ended; `tasks` were cancelled and may still be ending."""


class _Slot:
    """A request being handled; its place in the queue is its response's place on the wire."""

    __slots__ = ("done", "request_bytes", "response", "task")

    def __init__(self, request_bytes: int) -> None:
        self.request_bytes = request_bytes
        self.done = False
        self.response: Response | None = None
        self.task: asyncio.Task[None] | None = None


class Inbound(asyncio.Protocol):
    """The protocol object of one accepted connection."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._limits = owner.limits
        self._loop = asyncio.get_running_loop()
        self._assembler = FrameAssembler(owner.limits.max_frame_bytes, owner.request_limit)
        self._slots: deque[_Slot] = deque()
        self._handled_bytes = 0  # requests in slots
        self._unsent_bytes = 0  # responses that the transport could not pass on
        self._reading = True  # whether the transport is asked to read
        self._ended = False  # the peer has sent its last byte
        self._draining = False  # no more requests are started here
        self._closed = False
        self._active_at = self._loop.time()
        self._partial_since: float | None = None  # an incomplete frame is held
        self._stalled_since: float | None = None  # the peer does not read
        self._chunks: Iterator[bytes | memoryview] | None = None  # of the long response that is being written
        self._long_since = 0.0
        self._is_writing_chunks = False
        self._transport: asyncio.Transport | None = None
        self.held_bytes = 0  # kept by the owner's hold()
        self.peer = Peer("unknown", 0, self.shut, self.hold)
        self._handler = owner.handler
        self._gate: SaslGate | None = None
        self._opened_at = self._active_at
        if owner.sasl is not None:
            self._gate = SaslGate(owner.sasl, owner.handler, self.peer, opened=self._open, drain=self.drain)
            self._handler = self._gate.handle
            self._assembler.allow(min(MAX_RECEIVE_BYTES, owner.limits.max_frame_bytes))

    def drain(self) -> None:
        """Start no more requests, and close when those under way have been answered."""
        self._draining = True
        self._pump()

    def shut(self, reason: str, level: int = logging.INFO) -> None:
        """Close the connection now, and log why; only the first reason counts."""
        if self._closed:
            return
        self._owner.hold(self, -self.held_bytes)
        self._closed = True
        _log.log(
            level,
            "Closed the connection of %s: %s",
            self.peer,
            reason,
            extra={"peer": str(self.peer), "reason": reason},
        )
        if self._transport is not None:
            self._transport.abort()

    def hold(self, byte_count: int) -> None:
        """Count what is held for this connection, more or (below 0) less; over the server's limit, somebody is closed."""
        if not self._closed:
            self._owner.hold(self, byte_count)

    def check_time(self, now: float) -> None:
        """Close the connection if one of its times is up at `now` (loop time in s)."""
        frame_timeout_ms, idle_timeout_ms = self._limits.frame_timeout_ms, self._limits.idle_timeout_ms
        if self._stalled_since is not None and now - self._stalled_since > frame_timeout_ms / 1000:
            self.shut(f"it did not read its responses for {frame_timeout_ms} ms", logging.WARNING)
        elif self._chunks is not None and now - self._long_since > _LONG_RESPONSE_TIMEOUTS * frame_timeout_ms / 1000:
            self.shut(
                f"it did not read a response within {_LONG_RESPONSE_TIMEOUTS * frame_timeout_ms:g} ms", logging.WARNING
            )
        elif self._partial_since is not None and now - self._partial_since > frame_timeout_ms / 1000:
            self.shut(f"its frame was not complete within {frame_timeout_ms} ms", logging.WARNING)
        elif self._is_unknown() and now - self._opened_at > self._limits.authentication_timeout_ms / 1000:
            self.shut(f"it was not authenticated within {self._limits.authentication_timeout_ms} ms", logging.WARNING)
        elif self._waits_for_peer() and now - self._active_at > idle_timeout_ms / 1000:
            self.shut(f"it was idle for {idle_timeout_ms} ms")

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the peer's address, unless the server is full."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        address = transport.get_extra_info("peername")
        if address is not None:  # None when the peer has gone already
            self.peer.host, self.peer.port = address[0], address[1]
        self._opened_at = self._loop.time()
        if not self._owner.admit(self):
            self._closed = True
            transport.abort()
        elif self._gate is None:
            self._take_certificate(transport)

    def data_received(self, data: bytes) -> None:
        """Hold what arrived, and start what is complete."""
        if self._closed:
            return
        self._assembler.feed(data)
        self.hold(len(data))
        self._pump()

    def eof_received(self) -> bool:
        """Take that the peer has sent its last request; it may still wait for responses, except over TLS."""
        assert self._transport is not None
        self._ended = True
        self._active_at = self._loop.time()
        if self._closed or self._transport.get_extra_info("sslcontext") is not None:
            return False
        self._pump()
        return True

    def pause_writing(self) -> None:
        """Keep responses back: the peer does not read those it has."""
        assert self._transport is not None
        self._stalled_since = self._loop.time()
        self._unsent_bytes = self._transport.get_write_buffer_size()
        self.hold(self._unsent_bytes)

    def resume_writing(self) -> None:
        """Go on: the peer has read."""
        self._stalled_since = None
        self.hold(-self._unsent_bytes)
        if not self._closed:
            self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel what is under way, and tell everybody who cares."""
        if not self._closed and exc is not None:
            _log.debug("Lost the connection of %s: %s", self.peer, exc)
        self._closed = True
        self._chunks = None
        tasks = [slot.task for slot in self._slots if slot.task is not None and not slot.task.done()]
        for task in tasks:
            task.cancel()
        self._owner.release(self, tasks)
        self.peer.gone()

    # How it works inside.

    def _is_unknown(self) -> bool:
        """Tell whether the peer must say who it is, and has not yet."""
        return self._gate is not None and not self._gate.was_opened

    def _open(self) -> None:
        """Take whatever an authenticated peer may send."""
        self._assembler.allow(self._limits.max_frame_bytes)

    def _take_certificate(self, transport: asyncio.Transport) -> None:
        """Call the peer by the name of its certificate, which OpenSSL has verified, if it has shown one."""
        tls = transport.get_extra_info("ssl_object")
        certificate = None if tls is None else tls.getpeercert(binary_form=True)
        if certificate is not None:
            try:
                subject = subject_of(certificate)
            except ValueError as why:
                self.shut(f"its certificate cannot be read: {why}", logging.WARNING)
                return
            name = self._owner.principal_rules.name(subject)
            if name is None:
                self.shut(f"no rule applies to its certificate's subject {subject}", logging.WARNING)
                return
            self.peer.principal = f"User:{name}"

    def _waits_for_peer(self) -> bool:
        """Tell whether nothing is under way, or only for a peer that sends no more and may have gone for good."""
        return self._ended or (not self._slots and self._partial_since is None)

    def _pump(self) -> None:
        """Start the requests that are here, as many as may be handled at once; read on only when there is room."""
        full = False
        try:
            while not self._closed and not self._draining:
                full = (
                    len(self._slots) >= (1 if self._is_unknown() else self._limits.max_in_flight)
                    or self._handled_bytes >= self._limits.max_frame_bytes
                )
                if full or (frame := self._assembler.pop()) is None:
                    break
                self._start(frame)
        except MalformedFrame as why:
            self.shut(f"malformed stream: {why}", self._owner.level_of_malformed(self.peer.host))
        if self._closed:
            return
        if not self._ended:
            self._read(wanted=not full and not self._draining)
        if full or not self._assembler.buffered:
            self._partial_since = None
        elif self._partial_since is None:
            self._partial_since = self._loop.time()
        if (self._ended or self._draining) and not self._slots and not full:
            self._finish()

    def _start(self, frame: bytes) -> None:
        slot = _Slot(SIZE_BYTES + len(frame))
        self._slots.append(slot)
        self._handled_bytes += slot.request_bytes
        self._partial_since = None  # what follows is another frame, with a time of its own
        slot.task = self._loop.create_task(self._answer(slot, frame))

    async def _answer(self, slot: _Slot, frame: bytes) -> None:
        try:
            slot.response = await self._handler(self.peer, frame)
        except MalformedRequest as why:
            self.shut(f"malformed request: {why.reason}", self._owner.level_of_malformed(self.peer.host))
        except CloseConnection as why:
            self.shut(why.reason)
        except asyncio.CancelledError:
            self.shut("its request was cancelled")
            raise
        except Exception:  # noqa: BLE001  whatever a handler does, it costs one connection and never the process
            _log.exception("A handler failed on a request of %s", self.peer, extra={"peer": str(self.peer)})
            self.shut("its request could not be handled", logging.ERROR)
        slot.done = True
        if not self._closed:
            if slot.response is not None:
                self.hold(_own_bytes(slot.response))
            self._flush()

    def _flush(self) -> None:
        """Write the responses whose turn it is, unless the peer does not read, and start requests in their place."""
        assert self._transport is not None
        while not self._closed and self._stalled_since is None and self._slots and self._slots[0].done:
            response = self._slots[0].response
            if isinstance(response, PiecewiseResponse):
                self._begin_chunks(response)
                break
            parts: list[bytes] = []
            size = freed = 0  # bytes of responses that go out, and of their requests
            while self._slots and self._slots[0].done and size < _WRITE_BATCH_BYTES:
                response = self._slots[0].response
                if isinstance(response, PiecewiseResponse):
                    break
                slot = self._slots.popleft()
                self._handled_bytes -= slot.request_bytes
                freed += slot.request_bytes
                if response is not None:
                    parts += (len(response).to_bytes(SIZE_BYTES, "big"), response)
                    size += SIZE_BYTES + len(response)
            self._transport.write(b"".join(parts))
            self._active_at = self._loop.time()
            self.hold(-(freed + size))
        if not self._closed:
            self._pump()

    def _begin_chunks(self, response: PiecewiseResponse) -> None:
        """Have a long response written chunk by chunk; its slot stays in its place until the last one is written."""
        assert self._transport is not None
        if self._chunks is None:
            self._chunks = response.chunks(CHUNK_BYTES)
            self._long_since = self._loop.time()
            self._transport.write(len(response).to_bytes(SIZE_BYTES, "big"))
        if self._is_writing_chunks:
            return
        self._is_writing_chunks = True
        self._owner.outflow.add(self._write_chunk)

    def _write_chunk(self) -> bool:
        """Write one chunk of a long response; False when there are no more, or when the peer has to read first."""
        if self._closed or self._stalled_since is not None or self._chunks is None:
            self._is_writing_chunks = False
            return False
        assert self._transport is not None
        chunk = next(self._chunks, None)
        if chunk is not None:
            self._transport.write(chunk)
            self._active_at = self._loop.time()
            return True
        self._chunks = None
        self._is_writing_chunks = False
        slot = self._slots.popleft()
        assert slot.response is not None
        self._handled_bytes -= slot.request_bytes
        self.hold(-(slot.request_bytes + _own_bytes(slot.response)))
        self._flush()
        return False

    def _read(self, *, wanted: bool) -> None:
        assert self._transport is not None
        if wanted != self._reading:
            self._reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _finish(self) -> None:
        """Close after the last response has gone out."""
        assert self._transport is not None
        if self._assembler.buffered and not self._draining:
            self.shut("it ended within a frame")
        else:
            self._transport.close()


def _own_bytes(response: Response) -> int:
    """Count what a response takes up for its connection only: the pieces of a long one are shared."""
    return SIZE_BYTES + len(response.header if isinstance(response, PiecewiseResponse) else response)
