"""The server's side, for everybody who answers other nodes and clients: one listening socket and its connections.

A peer can close its own connection by what it sends, and nothing else: bounds per connection are kept in inbound.py,
the bounds over all connections here.

Left out: what the requests mean (the handler), TLS settings (the caller's context), who is let in (sasl_server.py).
"""

import asyncio
import logging
import ssl as tls
from collections.abc import Callable
from typing import Self

from kafka_wire.net.assembler import RequestLimit
from kafka_wire.net.buffers import Buffers
from kafka_wire.net.failures import CloseConnection, MalformedRequest
from kafka_wire.net.inbound import Inbound
from kafka_wire.net.limits import ServerLimits
from kafka_wire.net.outflow import Outflow, never
from kafka_wire.net.peer import Handler, Peer
from kafka_wire.net.principal_rules import AS_IT_IS, PrincipalRules
from kafka_wire.net.sasl_server import SaslServer

__all__ = ["CloseConnection", "Handler", "MalformedRequest", "Peer", "SaslServer", "Server", "ServerLimits", "serve"]

_log = logging.getLogger(__name__)

BACKLOG = 128  # connections that the kernel keeps until they are accepted; a burst of reconnecting clients fits in
_CHECKS_PER_TIMEOUT = 4  # a time-out is noticed at most a quarter of it too late
_CANCEL_TIMEOUT_S = 1.0  # a handler that does not end when it is cancelled is named in the log and left behind
WARN_AGAIN_S = 10.0  # one warning a peer's host in this time about malformed requests, however many it sends
MAX_WARNED_HOSTS = 1_000  # hosts whose last warning is remembered; with more, the oldest is forgotten


class Server:
    """A listening socket and the connections that it accepted. Made by `serve`, ended by `close`."""

    def __init__(
        self,
        handler: Handler,
        limits: ServerLimits,
        sasl: SaslServer | None = None,
        principal_rules: PrincipalRules = AS_IT_IS,
        is_urgent: Callable[[], bool] = never,
        request_limit: RequestLimit | None = None,
        buffers: Buffers | None = None,
    ) -> None:
        self.outflow = Outflow(is_urgent)
        self.handler = handler
        self.request_limit = request_limit
        self.limits = limits
        self.sasl = sasl
        self.principal_rules = principal_rules
        self.port = 0  # the port that it listens on, also when 0 was asked for
        self._connections: set[Inbound] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._buffers = buffers or Buffers(limits.max_buffered_bytes)
        self._warned: dict[str, float] = {}  # when a malformed request of a host was logged last, loop time in s
        self._full = False
        self._closing = False
        self._empty = asyncio.Event()
        self._empty.set()
        self._listener: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int, ssl: tls.SSLContext | None) -> Self:
        """Listen; OSError when the address cannot be had."""
        loop = asyncio.get_running_loop()
        handshake_s = self.limits.tls_handshake_timeout_ms / 1000 if ssl is not None else None
        self._listener = await loop.create_server(
            lambda: Inbound(self), host, port, ssl=ssl, backlog=BACKLOG, ssl_handshake_timeout=handshake_s
        )
        self.port = self._listener.sockets[0].getsockname()[1]
        self._check_times()
        return self

    @property
    def connection_count(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    @property
    def held_bytes(self) -> int:
        """How many bytes of requests and responses are held, for the connections of other servers with the same buffers too."""
        return self._buffers.held_bytes

    async def close(self, grace_ms: int | None = None) -> None:
        """Accept no more, let the requests under way end within the grace, then close everything."""
        assert self._listener is not None
        self._closing = True
        self._listener.close()
        for connection in list(self._connections):
            connection.drain()
        try:
            async with asyncio.timeout((self.limits.grace_ms if grace_ms is None else grace_ms) / 1000):
                await self._empty.wait()
        except TimeoutError:
            for connection in list(self._connections):
                connection.shut("the server closes, and its requests took longer than the grace")
            await self._empty.wait()
        if self._timer is not None:
            self._timer.cancel()
        if self._ending:
            _, stuck = await asyncio.wait(self._ending, timeout=_CANCEL_TIMEOUT_S)
            for task in stuck:
                _log.error("A handler goes on although it was cancelled: %s", task.get_coro())

    # What connections ask of their server (inbound.Owner).

    def admit(self, connection: Inbound) -> bool:
        """Take the connection in, or tell that there is no room for it."""
        if self._closing:
            return False
        if len(self._connections) >= self.limits.max_connections:
            if not self._full:  # once, until there is room again: a flood must not fill the log either
                self._full = True
                reason = f"{self.limits.max_connections} connections are open, the limit"
                extra = {"peer": str(connection.peer), "reason": reason}
                _log.warning("Refused the connection of %s and more to come: %s", connection.peer, reason, extra=extra)
            return False
        self._connections.add(connection)
        self._buffers.join(connection)
        self._empty.clear()
        return True

    def hold(self, connection: Inbound, byte_count: int) -> None:
        """Count what a connection holds; over the limit, the one that holds most is closed."""
        self._buffers.hold(connection, byte_count)

    def level_of_malformed(self, host: str) -> int:
        """Give the level to log a malformed request with: a warning for the first one of a host in a while, so that no peer floods the log."""
        now = asyncio.get_running_loop().time()
        if now - self._warned.get(host, -WARN_AGAIN_S) < WARN_AGAIN_S:
            return logging.DEBUG
        self._warned.pop(host, None)  # so that the oldest one is first
        if len(self._warned) >= MAX_WARNED_HOSTS:
            del self._warned[next(iter(self._warned))]
        self._warned[host] = now
        return logging.WARNING

    def release(self, connection: Inbound, tasks: list["asyncio.Task[None]"]) -> None:
        """Forget a connection that has ended; its tasks were cancelled."""
        self._buffers.leave(connection)
        self._connections.discard(connection)
        for task in tasks:
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        if len(self._connections) < self.limits.max_connections:
            self._full = False
        if not self._connections:
            self._empty.set()

    def _check_times(self) -> None:
        """Look at every connection's times, over and over; one timer for all of them."""
        loop = asyncio.get_running_loop()
        for connection in list(self._connections):
            connection.check_time(loop.time())
        limits = self.limits
        shortest_ms = min(limits.idle_timeout_ms, limits.frame_timeout_ms, limits.authentication_timeout_ms)
        self._timer = loop.call_later(shortest_ms / 1000 / _CHECKS_PER_TIMEOUT, self._check_times)


async def serve(
    handler: Handler,
    host: str,
    port: int,
    *,
    limits: ServerLimits | None = None,
    ssl: tls.SSLContext | None = None,
    sasl: SaslServer | None = None,
    principal_rules: PrincipalRules = AS_IT_IS,
    is_urgent: Callable[[], bool] = never,
    request_limit: RequestLimit | None = None,
    buffers: Buffers | None = None,
) -> Server:
    """Listen on `host`:`port` (0: any free port) and answer every request by `handler`, by TLS when a context is given.

    With `sasl` every peer must authenticate before its requests reach the handler, but for ApiVersions. `principal_rules` tell what a peer
    that shows a certificate is called; one that no rule fits is cut off. `is_urgent` reports whether other work goes before the
    writing of long responses. `request_limit` gives the largest frame of an API, up to the limit of all frames: a larger one closes
    its connection before it is read. Servers of one process share their `buffers`; without them a server has its own, of
    `max_buffered_bytes`. Raises OSError when the address cannot be had.
    """
    server = Server(handler, limits or ServerLimits(), sasl, principal_rules, is_urgent, request_limit, buffers)
    return await server.start(host, port, ssl)
