"""Server on loopback, as a base of fake brokers."""

from abc import ABC, abstractmethod
from typing import Self

from kafka_wire.net.server import Peer, Server, ServerLimits, serve


class LoopbackServer(ABC):
    """Listens on loopback; subclasses define how a frame is answered."""

    def __init__(self) -> None:
        self._server: Server | None = None

    @abstractmethod
    async def _handle(self, peer: Peer, frame: bytes) -> bytes | None:
        """Return the answer to a frame; None for no answer."""

    @property
    def port(self) -> int:
        """Port of the listening socket."""
        assert self._server is not None
        return self._server.port

    @property
    def connection_count(self) -> int:
        """Number of open connections."""
        assert self._server is not None
        return self._server.connection_count

    async def start(self, port: int = 0) -> Self:
        """Listen."""
        self._server = await serve(self._handle, "127.0.0.1", port, limits=ServerLimits(grace_ms=1))
        return self

    async def close(self) -> None:
        """Stop listening and close all connections."""
        if self._server is not None:
            await self._server.close(grace_ms=1)
