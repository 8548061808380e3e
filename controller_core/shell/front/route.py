"""The way of one client connection to one broker: opened at the first request, ended with either of its ends.

Left out: which broker (relay.py).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from controller_core.shell.front.endpoints import BrokerEndpoint, LiveBrokers
from controller_core.shell.front.policy import BOUND, REPEATABLE
from kafka_node.acks import has_response
from kafka_wire.codec import RequestHeader
from kafka_wire.net.client import Connection, ConnectionFailed
from kafka_wire.net.server import CloseConnection, Peer

MAX_ATTEMPTS = 3
"""Brokers that one request is sent to at most: with two of them lost within one request the cluster has other worries."""


class Brokers(Protocol):
    """What a route asks of its relay."""

    live_brokers: LiveBrokers

    async def connect(self, tried: set[int], on_held: Callable[[int], None]) -> tuple[BrokerEndpoint, Connection]:
        """Connect to a live broker that is not in `tried`, and add all that were tried to it."""

    def dispose(self, connection: Connection) -> None:
        """Close a connection in the background."""


class Route:
    """One client connection's connection to a broker.

    `bound` means that the broker's end has state that another broker lacks (SASL), or owes the client a sign of failure
    that has no other way (acks=0): the client's connection then ends with the broker's.
    """

    def __init__(self, brokers: Brokers, peer: Peer) -> None:
        self._brokers = brokers
        self._peer = peer
        self._turn = asyncio.Lock()  # fair: the client's requests go out in the order they came
        self._connection: Connection | None = None
        self._bound = False
        self._closed = False
        self.endpoint: BrokerEndpoint | None = None

    async def forward(self, header: RequestHeader, frame: bytes) -> bytes | None:
        """Send a request on its way, and give its answer; None when it has none. Raises as Relay.forward."""
        expects_answer = has_response(header, frame)
        repeatable = header.api_key in REPEATABLE
        tried: set[int] = set()
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                answer = await self._send(header, frame, tried, expects_answer=expects_answer)
                return None if answer is None else await answer
            except ConnectionFailed as why:
                if self._bound or attempt == MAX_ATTEMPTS or (why.sent and not repeatable):
                    raise CloseConnection(f"the broker behind it is lost: {why.reason}") from why
        raise AssertionError("the last attempt returns or raises")

    def broker_gone(self) -> None:
        """End the connection to the broker: it is no longer live."""
        if self._connection is not None:
            self._connection.abort("the broker is no longer live")

    def close(self) -> None:
        """End the route with its client; what the client sent last still goes out."""
        self._closed = True
        if self._connection is not None and not self._connection.closed:
            self._brokers.dispose(self._connection)

    async def _send(
        self, header: RequestHeader, frame: bytes, tried: set[int], *, expects_answer: bool
    ) -> Awaitable[bytes] | None:
        async with self._turn:
            connection = await self._connected(tried)
            if header.api_key in BOUND or not expects_answer:
                self._bound = True
            if expects_answer:
                return await connection.start_raw(frame)
            await connection.send_raw(frame)
            return None

    async def _connected(self, tried: set[int]) -> Connection:
        """Give the connection to the broker, or a new one when there is none to a live broker; the caller has the turn."""
        if self._connection is not None and not self._connection.closed:
            assert self.endpoint is not None
            if self.endpoint in self._brokers.live_brokers():
                tried.add(self.endpoint.broker_id)
                return self._connection
            self.broker_gone()
        if self._bound:
            raise CloseConnection("the broker that it was bound to is lost")
        self._connection, self.endpoint = None, None
        endpoint, connection = await self._brokers.connect(tried, self._peer.hold)
        if self._closed:
            self._brokers.dispose(connection)
            raise CloseConnection("its client is gone")
        self._connection, self.endpoint = connection, endpoint
        connection.on_end(lambda: self._ended(connection))
        return connection

    def _ended(self, connection: Connection) -> None:
        """Free the broker's place; a client that was bound to it hears of it at once."""
        if connection is self._connection:
            self.endpoint = None
            if self._bound and not self._closed:
                self._peer.close("the broker that it was bound to is lost")
