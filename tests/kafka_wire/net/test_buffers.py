"""One memory limit for all servers of a process."""

import asyncio
import struct

import pytest

from kafka_wire.net.buffers import Buffers
from kafka_wire.net.server import serve
from tests.kafka_wire.net.peers import RawPeer, echo


class Holder:
    """A connection that holds bytes until it is aborted."""

    def __init__(self, buffers: Buffers) -> None:
        self.held_bytes = 0
        self.reasons: list[str] = []
        self._buffers = buffers
        buffers.join(self)

    def abort(self, reason: str, level: int = 0) -> None:
        """Release everything."""
        self.reasons.append(f"{level} {reason}")
        self._buffers.hold(self, -self.held_bytes)


def test_above_the_limit_the_connection_that_holds_most_is_closed() -> None:
    """On any server, and for a limit exceeded by any connection."""
    buffers = Buffers(100)
    large, small = Holder(buffers), Holder(buffers)
    buffers.hold(large, 80)
    buffers.hold(small, 30)

    assert (len(large.reasons), small.reasons) == (1, [])
    assert buffers.held_bytes == 30
    buffers.leave(small)
    assert buffers.held_bytes == 0


def test_the_limit_must_be_positive() -> None:
    """With a limit of 0 no server could accept a request."""
    with pytest.raises(ValueError, match="max_bytes"):
        Buffers(0)


async def test_servers_share_buffers() -> None:
    """The memory limit of a pod applies to all listeners together."""
    buffers = Buffers(1_000_000)
    servers = [await serve(echo, "127.0.0.1", 0, buffers=buffers) for _ in range(2)]
    peers = [RawPeer(*await asyncio.open_connection("127.0.0.1", server.port)) for server in servers]
    for peer, size in zip(peers, (600_000, 500_000), strict=True):
        await peer.send(struct.pack(">ihh", 2_000_000, 0, 9) + bytes(size))

    assert await peers[0].is_closed_by_server()
    assert servers[1].held_bytes <= 1_000_000
    for peer in peers:
        await peer.close()
    for server in servers:
        await server.close(grace_ms=1)
