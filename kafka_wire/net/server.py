"""Server: one listening socket and its connections.

Invalid input from a peer only closes its own connection. inbound.py enforces the limits of one connection, this module those of all
connections. sasl_server.py authenticates peers.
"""

import asyncio
import logging
import ssl as tls
from collections.abc import Callable
from typing import Self

from kafka_wire.net.assembler import RequestLimit
from kafka_wire.net.buffers import Buffers
from kafka_wire.net.failures import CloseConnection, MalformedRequest
from kafka_wire.net.inbound import InboundConnection
from kafka_wire.net.limits import ServerLimits
from kafka_wire.net.outflow import Outflow, never
from kafka_wire.net.peer import Handler, Peer
from kafka_wire.net.principal_rules import DEFAULT_RULES, PrincipalRules
from kafka_wire.net.sasl_server import SaslServer

__all__ = [
    "Buffers",
    "CloseConnection",
    "Handler",
    "MalformedRequest",
    "Peer",
    "SaslServer",
    "Server",
    "ServerLimits",
    "never",
    "serve",
]

log = logging.getLogger(__name__)

BACKLOG = 128
"""Connections that the kernel keeps until they are accepted; enough for a burst of reconnecting clients."""
_CHECKS_PER_TIMEOUT = 4
"""A timeout is detected at most a quarter of it too late."""
_CANCEL_TIMEOUT_S = 1.0
"""Time for cancelled handlers to end; those that do not are logged and abandoned."""
WARNING_INTERVAL_S = 10.0
"""Interval between warnings about malformed requests of a host."""
MAX_WARNED_HOSTS = 1_000
"""Hosts whose last warning is stored; the oldest is removed for a new one."""


class Server:
    """A listening socket and its accepted connections. Created by `serve`, ended by `close`."""

    def __init__(
        self,
        handler: Handler,
        limits: ServerLimits,
        sasl: SaslServer | None = None,
        principal_rules: PrincipalRules = DEFAULT_RULES,
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
        self.port = 0
        """The port that the server listens on, also if 0 was requested."""
        self._connections: set[InboundConnection] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._buffers = buffers or Buffers(limits.max_buffered_bytes)
        self._warned: dict[str, float] = {}
        """Time of the last warning about a malformed request, by host; loop time in s."""
        self._full = False
        self._closing = False
        self._empty = asyncio.Event()
        self._empty.set()
        self._listener: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int, ssl: tls.SSLContext | None) -> Self:
        """Listen. Raises OSError if the address cannot be bound."""
        loop = asyncio.get_running_loop()
        handshake_s = self.limits.tls_handshake_timeout_ms / 1000 if ssl is not None else None
        self._listener = await loop.create_server(
            lambda: InboundConnection(self), host, port, ssl=ssl, backlog=BACKLOG, ssl_handshake_timeout=handshake_s
        )
        self.port = self._listener.sockets[0].getsockname()[1]
        self._check_times()
        return self

    @property
    def connection_count(self) -> int:
        """Count of open connections."""
        return len(self._connections)

    @property
    def held_bytes(self) -> int:
        """Bytes of requests and responses that are held, including those of other servers with the same buffers."""
        return self._buffers.held_bytes

    async def close(self, grace_ms: int | None = None) -> None:
        """Stop accepting connections, wait for running requests up to `grace_ms`, then close all connections."""
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
                connection.abort("the server shut down before the requests of this connection ended")
            await self._empty.wait()
        if self._timer is not None:
            self._timer.cancel()
        if self._ending:
            _, stuck = await asyncio.wait(self._ending, timeout=_CANCEL_TIMEOUT_S)
            for task in stuck:
                log.error("Request handler did not end after its cancellation", extra={"handler": str(task.get_coro())})

    # Interface for connections (inbound.Owner).

    def admit(self, connection: InboundConnection) -> bool:
        """Add the connection, or return False if the server is full."""
        if self._closing:
            return False
        if len(self._connections) >= self.limits.max_connections:
            if not self._full:  # once until a connection is closed, so that a flood does not fill the log
                self._full = True
                extra = {"peer": str(connection.peer), "max_connections": self.limits.max_connections}
                log.warning("Connection limit reached; rejecting new connections", extra=extra)
            return False
        self._connections.add(connection)
        self._buffers.join(connection)
        self._empty.clear()
        return True

    def hold(self, connection: InboundConnection, byte_count: int) -> None:
        """Add `byte_count` to a connection's memory; above the limit, the connection that holds most is closed."""
        self._buffers.hold(connection, byte_count)

    def malformed_request_level(self, host: str) -> int:
        """Return the log level for a malformed request: one warning per host and WARNING_INTERVAL_S, so that no peer floods the log."""
        now = asyncio.get_running_loop().time()
        if now - self._warned.get(host, -WARNING_INTERVAL_S) < WARNING_INTERVAL_S:
            return logging.DEBUG
        self._warned.pop(host, None)  # keeps the dict in the order of the times
        if len(self._warned) >= MAX_WARNED_HOSTS:
            del self._warned[next(iter(self._warned))]
        self._warned[host] = now
        return logging.WARNING

    def release(self, connection: InboundConnection, tasks: list["asyncio.Task[None]"]) -> None:
        """Remove a connection that has ended; its tasks were cancelled."""
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
        """Check the timeouts of all connections periodically, with one timer."""
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
    principal_rules: PrincipalRules = DEFAULT_RULES,
    is_urgent: Callable[[], bool] = never,
    request_limit: RequestLimit | None = None,
    buffers: Buffers | None = None,
) -> Server:
    """Listen on `host`:`port` (0: any free port) and handle every request by `handler`, with TLS if a context is given.

    With `sasl`, a peer must authenticate before its requests, except ApiVersions, reach the handler. `principal_rules` map the subject of
    a client certificate to the principal's name; a peer without a matching rule is disconnected. `is_urgent` returns whether other work
    has priority over writing long responses. `request_limit` returns the largest frame of an API, within the limit of all frames: a larger
    one closes its connection before it is read. Servers of one process may share `buffers`; by default a server has its own, of
    `max_buffered_bytes`. Raises OSError if the address cannot be bound.
    """
    server = Server(handler, limits or ServerLimits(), sasl, principal_rules, is_urgent, request_limit, buffers)
    return await server.start(host, port, ssl)
