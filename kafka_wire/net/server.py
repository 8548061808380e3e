"""Server: one listening socket and its connections.

Invalid input from a peer only closes its own connection. inbound.py enforces the limits of one connection, this module those of all
connections. sasl_server.py authenticates peers.
"""

import asyncio
import logging
import ssl as tls
from collections.abc import Callable
from typing import Self

from kafka_wire.net.acceptor import Acceptor, listening_sockets
from kafka_wire.net.admission import Admission
from kafka_wire.net.assembler import RequestLimit
from kafka_wire.net.buffers import Buffers
from kafka_wire.net.connection_quotas import ConnectionQuotas
from kafka_wire.net.failures import CloseConnection, MalformedRequest
from kafka_wire.net.host_warnings import HostWarnings
from kafka_wire.net.inbound import InboundConnection
from kafka_wire.net.limits import ServerLimits
from kafka_wire.net.outflow import Outflow, never
from kafka_wire.net.peer import Handler, LargeHandler, Peer, StartsAtOnce, starts_in_task
from kafka_wire.net.principal_rules import DEFAULT_RULES, PrincipalRules
from kafka_wire.net.receive_buffers import buffers_of_loop
from kafka_wire.net.request_channel import RequestChannel
from kafka_wire.net.sasl_server import SaslServer

__all__ = [
    "Buffers",
    "CloseConnection",
    "ConnectionQuotas",
    "Handler",
    "LargeHandler",
    "MalformedRequest",
    "Peer",
    "RequestChannel",
    "SaslServer",
    "Server",
    "ServerLimits",
    "never",
    "serve",
]

log = logging.getLogger(__name__)

_CHECKS_PER_TIMEOUT = 4
"""A timeout is detected at most a quarter of it too late."""
_CANCEL_TIMEOUT_S = 1.0
"""Time for cancelled handlers to end; those that do not are logged and abandoned."""


class Server:
    """A listening socket and its accepted connections. Created by `serve`, ended by `close`."""

    def __init__(
        self,
        handler: Handler,
        limits: ServerLimits,
        *,
        large_handler: LargeHandler | None,
        starts_at_once: StartsAtOnce,
        ssl: tls.SSLContext | None,
        sasl: SaslServer | None,
        principal_rules: PrincipalRules,
        is_urgent: Callable[[], bool],
        request_limit: RequestLimit | None,
        memory: Buffers | None,
        channel: RequestChannel | None,
        quotas: ConnectionQuotas | None,
        is_protected: bool,
    ) -> None:
        self.outflow = Outflow(is_urgent)
        self.handler = handler
        self.large_handler = large_handler
        self.starts_at_once = starts_at_once
        self.request_limit = request_limit
        self.limits = limits
        self.sasl = sasl
        self.principal_rules = principal_rules
        self.channel = channel or RequestChannel()
        self.buffers = buffers_of_loop()
        self.port = 0
        """The port that the server listens on, also if 0 was requested."""
        self.expired_connections = 0
        """Connections that were closed because they were idle; Kafka's ExpiredConnectionsKilledCount."""
        self._quotas = quotas or ConnectionQuotas()
        self._is_protected = is_protected
        self.admission = Admission(
            limits, self._quotas, ssl, lambda: InboundConnection(self), is_protected=is_protected
        )
        self._connections: set[InboundConnection] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._memory = memory or Buffers(limits.max_buffered_bytes)
        self._warnings = HostWarnings()
        self._closing = False
        self._empty = asyncio.Event()
        self._empty.set()
        self._acceptor: Acceptor | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int) -> Self:
        """Listen. Raises OSError if the address cannot be bound."""
        sockets = await listening_sockets(host, port)
        self._acceptor = Acceptor(sockets, self.admission.accept)
        self.port = sockets[0].getsockname()[1]
        self._check_times()
        return self

    def change_limits(self, limits: ServerLimits) -> None:
        """Apply other limits while the server runs; connections that exceed them stay."""
        self.limits = limits
        self.admission.change_limits(limits)

    @property
    def connection_count(self) -> int:
        """Count of open connections."""
        return len(self._connections)

    @property
    def blocked_s(self) -> float:
        """Time in which no connection was accepted because of a rate; Kafka's AcceptorBlockedPercent is its share."""
        return 0.0 if self._acceptor is None else self._acceptor.blocked_s

    @property
    def held_bytes(self) -> int:
        """Bytes of requests and responses that are held, including those of other servers with the same buffers."""
        return self._memory.held_bytes

    async def close(self, grace_ms: int | None = None) -> None:
        """Stop accepting connections, wait for running requests up to `grace_ms`, then close all connections."""
        assert self._acceptor is not None
        self._closing = True
        self._acceptor.close()
        await self.admission.close()
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
        """Add the connection, or return False if the server is closing."""
        if self._closing:
            return False
        self._connections.add(connection)
        self._memory.join(connection)
        if not self._is_protected:
            self._quotas.join(connection)
        self._empty.clear()
        return True

    def hold(self, connection: InboundConnection, byte_count: int) -> None:
        """Add `byte_count` to a connection's memory; above the limit, the connection that holds most is closed."""
        self._memory.hold(connection, byte_count)

    def malformed_request_level(self, host: str) -> int:
        """Return the log level for a malformed request of a host."""
        return self._warnings.level(host, asyncio.get_running_loop().time())

    def expired(self) -> None:
        """Count a connection that is closed because it was idle."""
        self.expired_connections += 1

    def release(self, connection: InboundConnection, tasks: list["asyncio.Task[None]"]) -> None:
        """Remove a connection that has ended; its tasks were cancelled."""
        self._memory.leave(connection)
        self._quotas.leave(connection)
        if connection.admitted_host is not None:
            self.admission.release(connection.admitted_host)
        self._connections.discard(connection)
        for task in tasks:
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
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
    large_handler: LargeHandler | None = None,
    starts_at_once: StartsAtOnce = starts_in_task,
    ssl: tls.SSLContext | None = None,
    sasl: SaslServer | None = None,
    principal_rules: PrincipalRules = DEFAULT_RULES,
    is_urgent: Callable[[], bool] = never,
    request_limit: RequestLimit | None = None,
    buffers: Buffers | None = None,
    channel: RequestChannel | None = None,
    quotas: ConnectionQuotas | None = None,
    is_protected: bool = False,
) -> Server:
    """Listen on `host`:`port` (0: any free port) and handle every request by `handler`, with TLS if a context is given.

    `large_handler` gets large frames as views of reused buffers; without it they are copied for `handler`. `starts_at_once` names the requests
    whose handlers need no task unless they wait. With `sasl`, a peer must authenticate before its requests, except ApiVersions, reach the
    handler. `principal_rules` map the subject of a client certificate to the principal's name; a peer without a matching rule is
    disconnected. `is_urgent` returns whether other work has priority over writing long responses. `request_limit` returns the largest frame of an API, within the limit of all frames: a larger one closes its connection before
    it is read. Raises OSError if the address cannot be bound.

    The servers of one process may share `buffers` (memory), `channel` (queued requests) and `quotas` (connections); by default a server has
    its own, with the memory limit `max_buffered_bytes`. The limit of connections in all does not apply to a protected server, which brokers
    use.
    """
    server = Server(
        handler,
        limits or ServerLimits(),
        large_handler=large_handler,
        starts_at_once=starts_at_once,
        ssl=ssl,
        sasl=sasl,
        principal_rules=principal_rules,
        is_urgent=is_urgent,
        request_limit=request_limit,
        memory=buffers,
        channel=channel,
        quotas=quotas,
        is_protected=is_protected,
    )
    return await server.start(host, port)
