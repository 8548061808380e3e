"""Server side of one connection: concurrent handlers, and responses in the order of the requests.

Reading pauses when enough requests are being handled, and handling pauses when the peer does not read its responses, so the memory for
one peer is limited. A frame is taken from the stream only when it may be handled. request_channel.py and server.py have the limits over all
connections, response_writer.py writes the responses.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Protocol

from kafka_wire.api import ApiKey
from kafka_wire.encoded_body import Response
from kafka_wire.frames import SIZE_BYTES, MalformedFrame
from kafka_wire.net.assembler import FrameAssembler, RequestLimit
from kafka_wire.net.distinguished_name import subject_of
from kafka_wire.net.eager_start import run_to_first_wait
from kafka_wire.net.failures import CloseConnection, MalformedRequest
from kafka_wire.net.limits import ServerLimits
from kafka_wire.net.outflow import Outflow
from kafka_wire.net.peer import Frame, Handler, LargeHandler, Peer, StartsAtOnce
from kafka_wire.net.principal_rules import PrincipalRules
from kafka_wire.net.receive_buffers import ReceiveBuffers
from kafka_wire.net.request_channel import RequestChannel
from kafka_wire.net.response_writer import ResponseWriter, Slot
from kafka_wire.net.sasl_server import MAX_RECEIVE_BYTES, SaslAuthenticator, SaslServer

log = logging.getLogger(__name__)

_LONG_RESPONSE_TIMEOUTS = 5
"""Frame timeouts within which a long response must be read, so that no peer keeps shared memory in use forever: 5 minutes
allow 40 KB/s for the response about 200,000 partitions."""

_PRODUCE = ApiKey.PRODUCE.to_bytes(2, "big")


class Owner(Protocol):
    """Interface of the server for its connections."""

    limits: ServerLimits
    handler: Handler
    large_handler: LargeHandler | None
    starts_at_once: StartsAtOnce
    sasl: SaslServer | None
    principal_rules: PrincipalRules
    outflow: Outflow
    request_limit: RequestLimit | None
    channel: RequestChannel
    buffers: ReceiveBuffers

    def admit(self, connection: "InboundConnection") -> bool:
        """Add the connection, or return False if the server is closing."""

    def hold(self, connection: "InboundConnection", byte_count: int) -> None:
        """Add `byte_count` to the connection's memory; a negative count releases memory."""

    def malformed_request_level(self, host: str) -> int:
        """Return the log level for a malformed request of a host."""

    def expired(self) -> None:
        """Count a connection that is closed because it was idle."""

    def release(self, connection: "InboundConnection", tasks: list["asyncio.Task[None]"]) -> None:
        """Remove the connection, which has ended; `tasks` were cancelled and may still be running."""


class InboundConnection(asyncio.BufferedProtocol):
    """Protocol object of one accepted connection."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._limits = owner.limits
        self._loop = asyncio.get_running_loop()
        self._assembler = FrameAssembler(owner.limits.max_frame_bytes, owner.buffers, owner.request_limit)
        self._writer = ResponseWriter(self, owner.outflow, owner.buffers)
        self._reading = True
        """Whether the transport reads."""
        self._waits = False
        """Whether the connection waits for the request channel, and does not read."""
        self._waits_to_read = False
        """Whether it waits to begin a request, whose first bytes do not count in the channel yet."""
        self._used_bytes = 0
        """Bytes of its requests that count in the request channel."""
        self._is_starting = False
        """Whether `start_requests` is running: it writes the responses of the handlers that end within it."""
        self._ended = False
        """The peer has ended its stream."""
        self._draining = False
        """Further requests are not started."""
        self._is_lost = False
        self.is_closed = False
        self.is_made = False
        """Whether the connection is open, after the TLS handshake."""
        self.admitted_host: str | None = None
        """Address under which it counts; set by the admission."""
        self._closing_since: float | None = None
        """Time of `close()`, which over TLS may wait for the peer."""
        self.active_at = self._loop.time()
        """Time of the last traffic; loop time in s."""
        self._partial_since: float | None = None
        """Time since which the buffer contains an incomplete frame."""
        self._transport: asyncio.Transport | None = None
        self.held_bytes = 0
        """Maintained by the owner's hold()."""
        self.peer = Peer("unknown", 0, self.abort, self.hold)
        self._authenticator: SaslAuthenticator | None = None
        self._opened_at = self.active_at
        if owner.sasl is not None:
            self._authenticator = SaslAuthenticator(
                owner.sasl, self._pass_on, self.peer, on_authenticated=self._allow_full_frames, drain=self.drain
            )
            self._assembler.allow(min(MAX_RECEIVE_BYTES, owner.limits.max_frame_bytes))

    def drain(self) -> None:
        """Start no further requests, and close the connection after the responses to the running ones."""
        self._draining = True
        self.start_requests()

    def abort(self, reason: str, level: int = logging.INFO) -> None:
        """Close the connection now, and log the reason. Later calls have no effect."""
        if self.is_closed:
            return
        self._owner.hold(self, -self.held_bytes)
        self.is_closed = True
        log.log(level, "Closed connection", extra={"peer": str(self.peer), "reason": reason})
        if self._transport is not None:
            self._transport.abort()

    def hold(self, byte_count: int) -> None:
        """Add `byte_count` to this connection's memory; above the server's limit, the connection that holds most is closed."""
        if not self.is_closed:
            self._owner.hold(self, byte_count)

    def check_time(self, now: float) -> None:
        """Close the connection if one of its timeouts has passed at `now` (loop time in s)."""
        frame_timeout_ms, idle_timeout_ms = self._limits.frame_timeout_ms, self._limits.idle_timeout_ms
        stalled_since, shared_since = self._writer.stalled_since, self._writer.shared_since
        if stalled_since is not None and now - stalled_since > frame_timeout_ms / 1000:
            self.abort(f"the peer did not read its responses for {frame_timeout_ms} ms", logging.WARNING)
        elif shared_since is not None and now - shared_since > _LONG_RESPONSE_TIMEOUTS * frame_timeout_ms / 1000:
            timeout_ms = _LONG_RESPONSE_TIMEOUTS * frame_timeout_ms
            self.abort(f"the peer did not read a response within {timeout_ms:g} ms", logging.WARNING)
        elif self._closing_since is not None and now - self._closing_since > frame_timeout_ms / 1000:
            self.abort(f"the connection was not closed by the peer within {frame_timeout_ms} ms")
        elif self._partial_since is not None and now - self._partial_since > frame_timeout_ms / 1000:
            self.abort(f"a frame was incomplete after {frame_timeout_ms} ms", logging.WARNING)
        elif self._is_unauthenticated() and now - self._opened_at > self._limits.authentication_timeout_ms / 1000:
            timeout_ms = self._limits.authentication_timeout_ms
            self.abort(f"the peer did not authenticate within {timeout_ms} ms", logging.WARNING)
        elif self._waits_for_peer() and now - self.active_at > idle_timeout_ms / 1000:
            self._owner.expired()
            self.abort(f"the connection was idle for {idle_timeout_ms} ms")

    def resume(self) -> None:
        """Continue to read: the request channel has room."""
        self._waits = False
        if self.is_closed:
            return
        if self._waits_to_read:
            self._waits_to_read = False
            self._use(self._assembler.buffered)
        self.start_requests()

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the peer's address, unless the server is closing."""
        assert isinstance(transport, asyncio.Transport)
        self.is_made = True
        self._transport = transport
        self._writer.connect(transport)
        address = transport.get_extra_info("peername")
        if address is not None:  # None if the peer has already closed the connection
            self.peer.host, self.peer.port = address[0], address[1]
        self._opened_at = self._loop.time()
        if not self._owner.admit(self):
            self.is_closed = True
            transport.abort()
        elif self._authenticator is None:
            self._read_principal(transport)

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Return where the next bytes go: while the request channel is full, only the size of a request that begins."""
        if self._owner.channel.is_full and not self._assembler.buffered and not self.is_closed:
            self._waits_to_read = self._waits = True
            self._read(wanted=False)
            self._owner.channel.wait_to_read(self)
            return self._owner.buffers.scratch[:SIZE_BYTES]
        return self._assembler.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Take note of received bytes, and start the requests that are complete."""
        if self.is_closed:
            return
        self._assembler.received(nbytes)
        self.hold(nbytes)
        if not self._waits_to_read:
            self._use(nbytes)
        self.start_requests()
        self._assembler.keep()

    def eof_received(self) -> bool:
        """Note that the peer has ended its stream; it may still wait for responses, except over TLS."""
        assert self._transport is not None
        self._ended = True
        self.active_at = self._loop.time()
        if self.is_closed or self._transport.get_extra_info("sslcontext") is not None:
            return False
        self.start_requests()
        return True

    def pause_writing(self) -> None:
        """Stop writing: the peer does not read its responses."""
        self._writer.pause()

    def resume_writing(self) -> None:
        """Continue writing: the peer has read its responses."""
        self._writer.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the running handlers, and run the peer's close callbacks."""
        if not self.is_closed and exc is not None:
            log.debug("Connection lost", extra={"peer": str(self.peer), "error": str(exc)})
        self.is_closed = True
        tasks = self._writer.close()
        self._leave_channel()
        self._assembler.close()
        self._owner.release(self, tasks)
        self.peer.mark_closed()

    # Requests.

    def start_requests(self) -> None:
        """Start complete requests up to the limit of concurrent ones; pause reading at the limit."""
        if self._is_starting:
            return
        self._is_starting = True
        try:
            while self._start_some() and self._writer.write_ready():
                pass
        finally:
            self._is_starting = False

    def _start_some(self) -> bool:
        """Start requests up to a limit, and return whether handlers have ended, whose responses may be written."""
        full = False
        channel, writer = self._owner.channel, self._writer
        most, most_bytes = self._limits.max_in_flight, self._limits.max_frame_bytes
        if self._is_unauthenticated():
            most = 1
        try:
            while not self.is_closed and not self._draining:
                full = len(writer.slots) >= most or writer.handled_bytes >= most_bytes
                if full:
                    break
                if channel.is_queue_full and self._assembler.buffered:
                    if not self._waits:
                        self._waits = True
                        channel.wait_to_start(self)
                    break
                if (frame := self._assembler.pop()) is None:
                    break
                self._start(frame)
        except MalformedFrame as error:
            self.abort(f"malformed stream: {error}", self._owner.malformed_request_level(self.peer.host))
        if self.is_closed:
            return False
        if self._writer.is_ready:
            return True
        if not self._ended:
            self._read(wanted=not full and not self._waits and not self._draining)
        if full or self._waits or not self._assembler.buffered:
            self._partial_since = None
        elif self._partial_since is None:
            self._partial_since = self._loop.time()
        if (self._ended or self._draining) and not self._writer.slots and not full:
            self._finish()
        return False

    def _start(self, frame: Frame) -> None:
        writer = self._writer
        starts_at_once = not (writer.slots and writer.slots[-1].is_queued) and self._owner.starts_at_once(frame)
        slot = writer.begin(SIZE_BYTES + len(frame), is_queued=not starts_at_once)
        self._partial_since = None  # the timeout of the next frame starts when it arrives
        if isinstance(frame, memoryview) and self._owner.large_handler is None:
            frame = self._owner.buffers.copied(frame)
        if not starts_at_once:
            self._owner.channel.enqueue()
            slot.task = self._loop.create_task(self._handle(slot, frame))
        elif (rest := run_to_first_wait(self._handle(slot, frame))) is not None:
            slot.task = self._loop.create_task(rest)

    async def _handle(self, slot: Slot, frame: Frame) -> None:
        if slot.is_queued:
            slot.is_queued = False
            self._owner.channel.dequeue()
        retains_bytes = isinstance(frame, memoryview) or frame.startswith(_PRODUCE)
        if not retains_bytes:
            self._use(-slot.request_bytes)
        response: Response | None = None
        try:
            if self._authenticator is not None:
                response = await self._authenticator.handle(self.peer, frame)
            else:
                response = await self._pass_on(self.peer, frame)
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
        finally:
            if isinstance(frame, memoryview):
                self._owner.buffers.give_back(frame)
        if retains_bytes:
            self._use(-slot.request_bytes)
        if not self.is_closed:
            self._writer.complete(slot, response)
            if not self._is_starting:
                self._writer.flush()

    def _pass_on(self, peer: Peer, frame: Frame) -> Awaitable[Response | None]:
        """Call the server's handler."""
        if isinstance(frame, bytes):
            return self._owner.handler(peer, frame)
        assert self._owner.large_handler is not None
        return self._owner.large_handler(peer, frame)

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
        return self._ended or (not self._writer.slots and self._partial_since is None and not self._waits)

    def _use(self, byte_count: int) -> None:
        """Add bytes of requests to the request channel; a negative count releases them."""
        if not self._is_lost:
            self._used_bytes += byte_count
            self._owner.channel.use(byte_count)

    def _leave_channel(self) -> None:
        """Release what the connection occupies in the request channel."""
        self._use(-self._used_bytes)
        self._is_lost = True
        self._owner.channel.leave(self)
        for slot in self._writer.slots:
            if slot.is_queued:
                self._owner.channel.dequeue()

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
