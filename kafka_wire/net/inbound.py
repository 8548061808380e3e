"""Server side of one connection: concurrent handlers, and responses in the order of the requests.

Reading pauses when enough requests are being handled, and handling pauses when the peer does not read its responses, so the memory for
one peer is limited. A frame is taken from the stream only when it may be handled. server.py has the limits over all connections, and
the timer.
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
from kafka_wire.net.sasl_server import MAX_RECEIVE_BYTES, SaslAuthenticator, SaslServer

log = logging.getLogger(__name__)

_LONG_RESPONSE_TIMEOUTS = 5
"""Frame timeouts within which a long response must be read, so that no peer keeps shared memory in use forever: 5 minutes
allow 40 KB/s for the response about 200,000 partitions."""

_WRITE_BATCH_BYTES = 64 * 1024
"""Responses joined into one write. Larger batches are not faster, and copy more."""


class Owner(Protocol):
    """Interface of the server for its connections."""

    limits: ServerLimits
    handler: Handler
    sasl: SaslServer | None
    principal_rules: PrincipalRules
    outflow: Outflow
    request_limit: RequestLimit | None

    def admit(self, connection: "InboundConnection") -> bool:
        """Add the connection, or return False if the server is full."""

    def hold(self, connection: "InboundConnection", byte_count: int) -> None:
        """Add `byte_count` to the connection's memory; a negative count releases memory."""

    def malformed_request_level(self, host: str) -> int:
        """Return the log level for a malformed request of a host."""

    def release(self, connection: "InboundConnection", tasks: list["asyncio.Task[None]"]) -> None:
        """Remove the connection, which has ended; `tasks` were cancelled and may still be running."""


class _Slot:
    """A request being handled. Responses are sent in the order of the slots."""

    __slots__ = ("done", "request_bytes", "response", "task")

    def __init__(self, request_bytes: int) -> None:
        self.request_bytes = request_bytes
        self.done = False
        self.response: Response | None = None
        self.task: asyncio.Task[None] | None = None


class InboundConnection(asyncio.Protocol):
    """Protocol object of one accepted connection."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._limits = owner.limits
        self._loop = asyncio.get_running_loop()
        self._assembler = FrameAssembler(owner.limits.max_frame_bytes, owner.request_limit)
        self._slots: deque[_Slot] = deque()
        self._handled_bytes = 0
        """Bytes of the requests in slots."""
        self._unsent_bytes = 0
        """Bytes of responses that the transport could not send."""
        self._reading = True
        """Whether the transport reads."""
        self._ended = False
        """The peer has ended its stream."""
        self._draining = False
        """Further requests are not started."""
        self._closed = False
        self._closing_since: float | None = None
        """Time of `close()`, which over TLS may wait for the peer."""
        self._active_at = self._loop.time()
        self._partial_since: float | None = None
        """Time since which the buffer contains an incomplete frame."""
        self._stalled_since: float | None = None
        """Time since which the peer has not read its responses."""
        self._chunks: Iterator[bytes | memoryview] | None = None
        """Remaining chunks of the long response that is being written."""
        self._long_since = 0.0
        self._is_writing_chunks = False
        self._transport: asyncio.Transport | None = None
        self.held_bytes = 0
        """Maintained by the owner's hold()."""
        self.peer = Peer("unknown", 0, self.abort, self.hold)
        self._handler = owner.handler
        self._authenticator: SaslAuthenticator | None = None
        self._opened_at = self._active_at
        if owner.sasl is not None:
            self._authenticator = SaslAuthenticator(
                owner.sasl, owner.handler, self.peer, on_authenticated=self._allow_full_frames, drain=self.drain
            )
            self._handler = self._authenticator.handle
            self._assembler.allow(min(MAX_RECEIVE_BYTES, owner.limits.max_frame_bytes))

    def drain(self) -> None:
        """Start no further requests, and close the connection after the responses to the running ones."""
        self._draining = True
        self._process_frames()

    def abort(self, reason: str, level: int = logging.INFO) -> None:
        """Close the connection now, and log the reason. Later calls have no effect."""
        if self._closed:
            return
        self._owner.hold(self, -self.held_bytes)
        self._closed = True
        log.log(level, "Closed connection", extra={"peer": str(self.peer), "reason": reason})
        if self._transport is not None:
            self._transport.abort()

    def hold(self, byte_count: int) -> None:
        """Add `byte_count` to this connection's memory; above the server's limit, the connection that holds most is closed."""
        if not self._closed:
            self._owner.hold(self, byte_count)

    def check_time(self, now: float) -> None:
        """Close the connection if one of its timeouts has passed at `now` (loop time in s)."""
        frame_timeout_ms, idle_timeout_ms = self._limits.frame_timeout_ms, self._limits.idle_timeout_ms
        if self._stalled_since is not None and now - self._stalled_since > frame_timeout_ms / 1000:
            self.abort(f"the peer did not read its responses for {frame_timeout_ms} ms", logging.WARNING)
        elif self._chunks is not None and now - self._long_since > _LONG_RESPONSE_TIMEOUTS * frame_timeout_ms / 1000:
            timeout_ms = _LONG_RESPONSE_TIMEOUTS * frame_timeout_ms
            self.abort(f"the peer did not read a response within {timeout_ms:g} ms", logging.WARNING)
        elif self._closing_since is not None and now - self._closing_since > frame_timeout_ms / 1000:
            self.abort(f"the connection was not closed by the peer within {frame_timeout_ms} ms")
        elif self._partial_since is not None and now - self._partial_since > frame_timeout_ms / 1000:
            self.abort(f"a frame was incomplete after {frame_timeout_ms} ms", logging.WARNING)
        elif self._is_unauthenticated() and now - self._opened_at > self._limits.authentication_timeout_ms / 1000:
            timeout_ms = self._limits.authentication_timeout_ms
            self.abort(f"the peer did not authenticate within {timeout_ms} ms", logging.WARNING)
        elif self._waits_for_peer() and now - self._active_at > idle_timeout_ms / 1000:
            self.abort(f"the connection was idle for {idle_timeout_ms} ms")

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the peer's address, unless the server is full."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        address = transport.get_extra_info("peername")
        if address is not None:  # None if the peer has already closed the connection
            self.peer.host, self.peer.port = address[0], address[1]
        self._opened_at = self._loop.time()
        if not self._owner.admit(self):
            self._closed = True
            transport.abort()
        elif self._authenticator is None:
            self._read_principal(transport)

    def data_received(self, data: bytes) -> None:
        """Buffer the bytes, and start the requests that are complete."""
        if self._closed:
            return
        self._assembler.feed(data)
        self.hold(len(data))
        self._process_frames()

    def eof_received(self) -> bool:
        """Note that the peer has ended its stream; it may still wait for responses, except over TLS."""
        assert self._transport is not None
        self._ended = True
        self._active_at = self._loop.time()
        if self._closed or self._transport.get_extra_info("sslcontext") is not None:
            return False
        self._process_frames()
        return True

    def pause_writing(self) -> None:
        """Stop writing: the peer does not read its responses."""
        assert self._transport is not None
        self._stalled_since = self._loop.time()
        self._unsent_bytes = self._transport.get_write_buffer_size()
        self.hold(self._unsent_bytes)

    def resume_writing(self) -> None:
        """Continue writing: the peer has read its responses."""
        self._stalled_since = None
        self.hold(-self._unsent_bytes)
        if not self._closed:
            self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the running handlers, and run the peer's close callbacks."""
        if not self._closed and exc is not None:
            log.debug("Connection lost", extra={"peer": str(self.peer), "error": str(exc)})
        self._closed = True
        self._chunks = None
        tasks = [slot.task for slot in self._slots if slot.task is not None and not slot.task.done()]
        for task in tasks:
            task.cancel()
        self._owner.release(self, tasks)
        self.peer.mark_closed()

    # Internals.

    def _is_unauthenticated(self) -> bool:
        """Return whether the peer must authenticate and has not done so yet."""
        return self._authenticator is not None and not self._authenticator.has_authenticated

    def _allow_full_frames(self) -> None:
        """Accept frames of full size, after authentication."""
        self._assembler.allow(self._limits.max_frame_bytes)

    def _read_principal(self, transport: asyncio.Transport) -> None:
        """Set the peer's principal from its certificate, which OpenSSL has verified, if it presented one."""
        tls = transport.get_extra_info("ssl_object")
        certificate = None if tls is None else tls.getpeercert(binary_form=True)
        if certificate is not None:
            try:
                subject = subject_of(certificate)
            except ValueError as error:
                self.abort(f"the subject of the client certificate cannot be read: {error}", logging.WARNING)
                return
            name = self._owner.principal_rules.name(subject)
            if name is None:
                self.abort(f"no principal mapping rule matches the certificate's subject {subject}", logging.WARNING)
                return
            self.peer.principal = f"User:{name}"

    def _waits_for_peer(self) -> bool:
        """Return whether no request is running, or the peer has ended its stream and may never read the responses."""
        return self._ended or (not self._slots and self._partial_since is None)

    def _process_frames(self) -> None:
        """Start complete requests up to the limit of concurrent ones; pause reading at the limit."""
        full = False
        try:
            while not self._closed and not self._draining:
                full = (
                    len(self._slots) >= (1 if self._is_unauthenticated() else self._limits.max_in_flight)
                    or self._handled_bytes >= self._limits.max_frame_bytes
                )
                if full or (frame := self._assembler.pop()) is None:
                    break
                self._start(frame)
        except MalformedFrame as error:
            self.abort(f"malformed stream: {error}", self._owner.malformed_request_level(self.peer.host))
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
        self._partial_since = None  # the timeout of the next frame starts when it arrives
        slot.task = self._loop.create_task(self._handle(slot, frame))

    async def _handle(self, slot: _Slot, frame: bytes) -> None:
        try:
            slot.response = await self._handler(self.peer, frame)
        except MalformedRequest as error:
            self.abort(f"malformed request: {error.reason}", self._owner.malformed_request_level(self.peer.host))
        except CloseConnection as close:
            self.abort(close.reason)
        except asyncio.CancelledError:
            self.abort("the handler of a request was cancelled")
            raise
        except Exception:
            log.exception("Request handler failed", extra={"peer": str(self.peer)})
            self.abort("the handler of a request failed", logging.ERROR)
        slot.done = True
        if not self._closed:
            if slot.response is not None:
                self.hold(_own_bytes(slot.response))
            self._flush()

    def _flush(self) -> None:
        """Write the responses that are next in order, unless the peer does not read, and start further requests."""
        assert self._transport is not None
        while not self._closed and self._stalled_since is None and self._slots and self._slots[0].done:
            response = self._slots[0].response
            if isinstance(response, PiecewiseResponse):
                self._begin_chunks(response)
                break
            parts: list[bytes] = []
            size = freed = 0  # bytes of the responses to write, and of their requests
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
            self._process_frames()

    def _begin_chunks(self, response: PiecewiseResponse) -> None:
        """Start writing a long response in chunks; its slot is kept until the last chunk is written."""
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
        """Write one chunk of a long response; False after the last one, or if the peer must read first."""
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
        """Close the connection after the last response was sent.

        Python 3.11's TLS transport must be closed once: after a second `close()`, `abort()` has no effect. And it waits for the peer without a
        timeout if the peer's stream ended while reading was paused.
        """
        assert self._transport is not None
        if self._closing_since is not None:
            return
        if self._assembler.buffered and not self._draining:
            self.abort("the stream ended within a frame")
        else:
            self._closing_since = self._loop.time()
            self._transport.close()


def _own_bytes(response: Response) -> int:
    """Return the memory of a response that only its connection uses: the pieces of a long one are shared."""
    return SIZE_BYTES + len(response.header if isinstance(response, PiecewiseResponse) else response)
