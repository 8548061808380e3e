"""A fake broker on a real socket: it records a controller's requests and answers as configured."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from kafka_wire import ApiKey, Body, codec
from kafka_wire.net.server import CloseConnection, Peer
from tests.kafka_wire.net.loopback import LoopbackServer

RANGES: Mapping[ApiKey, tuple[int, int]] = {
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.LEADER_AND_ISR: (0, 7),
    ApiKey.STOP_REPLICA: (0, 4),
    ApiKey.UPDATE_METADATA: (0, 8),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
}
"""Version ranges of Kafka 3.9."""

React = Callable[[ApiKey, Body], Awaitable[Body | None]]


class FakeBroker(LoopbackServer):
    """Answers all requests without error, unless `react` does something else.

    `react` may return a body, hang, raise CloseConnection, or return None for the usual answer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ranges = dict(RANGES)
        self.taken: list[tuple[ApiKey, Body]] = []
        self.versions: dict[ApiKey, int] = {}
        self.react: React | None = None
        self.connections: set[Peer] = set()
        self._arrived = asyncio.Condition()

    @property
    def keys(self) -> list[ApiKey]:
        """The API keys of the requests that it received, in order."""
        return [key for key, _ in self.taken]

    async def until(self, count: int) -> list[ApiKey]:
        """Wait until it has received `count` requests."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.taken) >= count)
        return self.keys

    async def _handle(self, peer: Peer, frame: bytes) -> bytes | None:
        header, body = codec.decode_request(frame)
        key, version = ApiKey(header.api_key), header.api_version
        self.connections.add(peer)
        if key is ApiKey.API_VERSIONS:
            ranges = [
                {"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in self.ranges.items()
            ]
            answer: Body = {"api_keys": ranges}
        else:
            self.versions[key] = version
            async with self._arrived:
                self.taken.append((key, body))
                self._arrived.notify_all()
            answer = (await self.react(key, body) if self.react else None) or {}
        return codec.encode_response(key, version, header.correlation_id, answer)


async def hang(_key: ApiKey, _body: Body) -> Body | None:
    """Never answer."""
    await asyncio.Event().wait()
    return None


async def hang_up(_key: ApiKey, _body: Body) -> Body | None:
    """Receive the request and close the connection."""
    raise CloseConnection("closed by the test")


def refuse_once(error_code: int) -> React:
    """Refuse the first request as a whole."""
    left = [error_code]

    async def react(_key: ApiKey, _body: Body) -> Body | None:
        return {"error_code": left.pop()} if left else None

    return react
