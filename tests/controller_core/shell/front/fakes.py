"""Fake brokers and a client with real sockets and frames; the answers identify the broker."""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping

from controller_core.shell.front.route import BrokerEndpoint
from kafka_wire import ApiKey, Body, codec
from kafka_wire.net.server import Handler, Peer
from tests.kafka_wire.net.loopback import LoopbackServer
from tests.kafka_wire.net.peers import RawPeer

BROKER_RANGES: dict[int, tuple[int, int]] = {
    ApiKey.PRODUCE: (0, 11),
    ApiKey.FETCH: (0, 17),
    ApiKey.UPDATE_METADATA: (0, 8),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.SASL_HANDSHAKE: (0, 1),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.CREATE_TOPICS: (0, 7),
}


class FakeBroker(LoopbackServer):
    """A broker that answers ApiVersions correctly and any other request with its id and the request.

    `react`, if set, handles requests other than ApiVersions: it may hang, raise or answer.
    """

    def __init__(self, broker_id: int, ranges: Mapping[int, tuple[int, int]] = BROKER_RANGES) -> None:
        super().__init__()
        self.broker_id = broker_id
        self.ranges = ranges
        self.features: Body = {}
        self.frames: list[bytes] = []
        self.peers: set[Peer] = set()
        self.react: Handler | None = None
        self.arrived = asyncio.Event()

    @property
    def endpoint(self) -> BrokerEndpoint:
        """Endpoint of the broker."""
        return BrokerEndpoint(self.broker_id, "127.0.0.1", self.port)

    @property
    def relayed(self) -> list[bytes]:
        """Received requests other than ApiVersions, without the correlation ids, which the relay replaces."""
        return [frame[:4] + frame[8:] for frame in self.frames if frame[:2] != struct.pack(">h", ApiKey.API_VERSIONS)]

    async def _handle(self, peer: Peer, frame: bytes) -> bytes | None:
        self.frames.append(frame)
        self.peers.add(peer)
        self.arrived.set()
        header = codec.peek_header(frame)
        if header.api_key == ApiKey.API_VERSIONS:
            api_keys = [
                {"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in self.ranges.items()
            ]
            body = {"api_keys": api_keys, **self.features}
            return codec.encode_response(ApiKey.API_VERSIONS, header.api_version, header.correlation_id, body)
        if self.react is not None:
            return await self.react(peer, frame)
        return frame[4:8] + self.answer(frame)

    def answer(self, frame: bytes) -> bytes:
        """Return the default answer after the correlation id."""
        return bytes([self.broker_id]) + frame[:4] + frame[8:]


class Client(RawPeer):
    """A client that exchanges requests and responses."""

    async def exchange(self, frame: bytes) -> bytes:
        """Write a frame and read the next one."""
        await self.send_frame(frame)
        return await self.read_frame()

    async def call(self, key: ApiKey, version: int, body: Body) -> Body:
        """Send a request and read its response."""
        frame = await self.exchange(codec.encode_request(key, version, 7, "tests", body))
        correlation_id, answer = codec.decode_response(key, version, frame)
        assert correlation_id == 7
        return answer

    async def close(self) -> None:
        """Close the socket after the bytes that were sent."""
        self.writer.close()
        await asyncio.sleep(0)


def request(key: int, version: int = 0, correlation_id: int = 1, payload: bytes = b"") -> bytes:
    """Build a request with a client id and any bytes as its body (header version 1)."""
    return struct.pack(">hhih", key, version, correlation_id, 5) + b"tests" + payload


def once(react: Callable[[], Awaitable[None]], broker: FakeBroker) -> Handler:
    """Return a handler that calls `react` for the first request only."""

    async def handle(_peer: Peer, frame: bytes) -> bytes:
        broker.react = None
        await react()
        return frame[4:8] + broker.answer(frame)

    return handle
