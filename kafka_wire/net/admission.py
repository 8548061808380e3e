"""Admission of connections at one listener: the rate at which they are accepted, their limits, and the TLS handshake.

A connection counts from its acceptance, so that peers that never finish a handshake are limited too.
"""

import asyncio
import logging
import socket
import ssl as tls
from collections.abc import Callable

from kafka_wire.net.connection_quotas import ConnectionQuotas, CreationRate
from kafka_wire.net.host_warnings import HostWarnings
from kafka_wire.net.inbound import InboundConnection
from kafka_wire.net.limits import ServerLimits

log = logging.getLogger(__name__)


class Admission:
    """Decides on accepted sockets, and opens their connections. `create` returns the protocol object of a connection."""

    def __init__(
        self,
        limits: ServerLimits,
        quotas: ConnectionQuotas,
        ssl: tls.SSLContext | None,
        create: Callable[[], InboundConnection],
        *,
        is_protected: bool,
    ) -> None:
        self._limits = limits
        self._quotas = quotas
        self._ssl = ssl
        self._create = create
        self._is_protected = is_protected
        self._loop = asyncio.get_running_loop()
        self._warnings = HostWarnings()
        self._count = 0
        """Admitted connections of this listener that have not ended."""
        self._is_full = False
        self._opening: set[asyncio.Task[None]] = set()
        self._delayed: dict[socket.socket, asyncio.TimerHandle] = {}
        """Accepted sockets that wait because of the rate."""
        self.creation_rate = CreationRate(limits.max_connection_creation_rate)
        self.throttled = 0
        """Connections that had to wait because of the rate."""
        self.throttled_s = 0.0
        """Sum of their waiting times; Kafka's connection-accept-throttle-time is the average."""
        self.rejected = 0
        """Connections that were closed because of a limit."""

    def accept(self, accepted: socket.socket, host: str) -> float:
        """Receive an accepted socket; return the seconds for which no further one may be accepted, and after which this one is served.

        The broker's rate does not apply to a protected listener, the listener's own does (Kafka's ConnectionQuotas).
        """
        now_s = self._loop.time()
        pause_s = self.creation_rate.record(now_s)
        if not self._is_protected:
            pause_s = max(pause_s, self._quotas.creation_rate.record(now_s))
        if pause_s > 0:
            self.throttled += 1
            self.throttled_s += pause_s
            self._delayed[accepted] = self._loop.call_later(pause_s, self._admit, accepted, host)
        else:
            self._admit(accepted, host)
        return pause_s

    def change_limits(self, limits: ServerLimits) -> None:
        """Apply other limits to the connections that are accepted from now on."""
        self._limits = limits
        self.creation_rate.limit = limits.max_connection_creation_rate
        self._is_full = False

    def release(self, host: str) -> None:
        """Note the end of an admitted connection."""
        self._quotas.release(host)
        self._count -= 1
        self._is_full = False

    async def close(self) -> None:
        """Close the sockets of connections that are not open yet."""
        for accepted, timer in self._delayed.items():
            timer.cancel()
            accepted.close()
        self._delayed.clear()
        for task in self._opening:
            task.cancel()
        if self._opening:
            await asyncio.wait(self._opening)

    def _admit(self, accepted: socket.socket, host: str) -> None:
        self._delayed.pop(accepted, None)
        if self._count >= self._limits.max_connections:
            if not self._is_full:  # once until a connection is closed, so that a flood does not fill the log
                self._is_full = True
                extra = {"peer": host, "max_connections": self._limits.max_connections}
                log.warning("Connection limit reached; rejecting new connections", extra=extra)
            self._reject(accepted)
            return
        reason = self._quotas.admit(host, is_protected=self._is_protected)
        if reason is not None:
            level = self._warnings.level(host, self._loop.time())
            log.log(level, "Rejected connection", extra={"peer": host, "reason": reason})
            self._reject(accepted)
            return
        self._count += 1
        task = self._loop.create_task(self._open(accepted, host))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    def _reject(self, accepted: socket.socket) -> None:
        self.rejected += 1
        accepted.close()

    async def _open(self, accepted: socket.socket, host: str) -> None:
        connection = self._create()
        connection.admitted_host = host
        timeout_s = None if self._ssl is None else self._limits.tls_handshake_timeout_ms / 1000
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=self._ssl, ssl_handshake_timeout=timeout_s
            )
        except OSError as error:  # TLS errors and timeouts are OSErrors
            log.debug("Failed to open a connection", extra={"peer": host, "error": str(error)})
        finally:
            if not connection.is_made:  # otherwise the connection releases its place when it ends
                connection.admitted_host = None
                self.release(host)
