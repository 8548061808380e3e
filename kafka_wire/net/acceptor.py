"""Acceptor: listening sockets that accept connections at a limited rate.

asyncio's own server accepts without a limit. Above the rate this one stops accepting for a moment, so that further connections wait in
the kernel's queue, as those of Kafka's Acceptor do.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)

BACKLOG = 128
"""Connections that the kernel keeps until they are accepted; enough for a burst of reconnecting clients."""

ACCEPTED_AT_ONCE = 32
"""Connections accepted in one iteration of the event loop, 50 µs each: a flood of connections does not stall the others."""

PAUSE_S = 1.0
"""Pause after a failed accept, when the process has no free descriptors or memory."""

_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

OnAccepted = Callable[[socket.socket, str], float]
"""Receives an accepted socket and the address of its peer; returns the seconds for which no further one is accepted."""


async def listening_sockets(host: str, port: int, backlog: int = BACKLOG) -> list[socket.socket]:
    """Return sockets that listen on every address of `host`; "" is every address of this machine. Raises OSError, and leaves none open."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            if family == socket.AF_INET6 and not socket.has_dualstack_ipv6() and len(found) > 1:
                continue  # this machine has no IPv6
            sockets.append(_listening_socket(family, kind, protocol, address, backlog))
    except OSError as error:
        for listener in sockets:
            listener.close()
        raise OSError(error.errno, f"Failed to listen on {host or '*'}:{port}: {error.strerror}") from error
    return sockets


def _listening_socket(family: int, kind: int, protocol: int, address: tuple[Any, ...], backlog: int) -> socket.socket:
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listener.family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(backlog)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


class Acceptor:
    """Accepts the connections of listening sockets until it is closed."""

    def __init__(self, sockets: list[socket.socket], on_accepted: OnAccepted) -> None:
        self._sockets = sockets
        self._on_accepted = on_accepted
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self.blocked_s = 0.0
        """Time in which no connection was accepted because of a rate."""
        self._start()

    def close(self) -> None:
        """Stop listening."""
        self._stop()
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        for listener in self._sockets:
            listener.close()
        self._sockets = []

    def _start(self) -> None:
        self._pause = None
        for listener in self._sockets:
            self._loop.add_reader(listener, self._accept, listener)

    def _stop(self) -> None:
        for listener in self._sockets:
            self._loop.remove_reader(listener)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    log.warning("Failed to accept a connection", extra={"error": str(error)})
                    return
                log.error("Failed to accept connections; retrying", extra={"error": str(error), "retry_s": PAUSE_S})
                self._pause_for(PAUSE_S)
                return
            accepted.setblocking(False)
            pause_s = self._on_accepted(accepted, address[0])
            if pause_s > 0:
                self.blocked_s += pause_s
                self._pause_for(pause_s)
            if self._pause is not None or not self._sockets:
                return

    def _pause_for(self, pause_s: float) -> None:
        self._stop()
        self._pause = self._loop.call_later(pause_s, self._start)
