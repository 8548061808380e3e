"""Relay connection of one client to one broker, and the rules for repeating its requests.

It is opened at the first relayed request and closed with the client's connection.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kafka_node.acks import has_response
from kafka_wire import ApiKey
from kafka_wire.codec import RequestHeader
from kafka_wire.net import client, server


@dataclass(frozen=True, slots=True)
class BrokerEndpoint:
    """Address of a live broker on one listener."""

    broker_id: int
    host: str
    port: int
    broker_epoch: int = -1
    """Identifies the incarnation of the broker, which may return with another version of Kafka; -1 if unknown."""
    security_protocol: str = "PLAINTEXT"

    @property
    def address(self) -> str:
        """Host and port, for logs."""
        return f"{self.host}:{self.port}"


LiveBrokers = Callable[[], Sequence[BrokerEndpoint]]
"""Returns the live brokers without the controller. It is called for every request and must be cheap."""

REPEATABLE = frozenset(
    {
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_FETCH,
        ApiKey.FIND_COORDINATOR,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.LIST_GROUPS,
        ApiKey.API_VERSIONS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_TRANSACTIONS,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.LIST_CONFIG_RESOURCES,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.STREAMS_GROUP_DESCRIBE,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    }
)
"""Read-only requests: if the broker is lost, the request is sent to another one. For any other request the client's connection is
closed, and the client decides."""

BOUND = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
"""Requests that leave state in the broker's connection: afterwards both connections are closed together."""

MAX_ATTEMPTS = 3
"""Brokers that one request is sent to at most."""


class BrokerConnector(Protocol):
    """Interface of the relay, as used by its routes."""

    live_brokers: LiveBrokers

    async def connect(
        self, tried: set[int], on_held: Callable[[int], None]
    ) -> tuple[BrokerEndpoint, client.Connection]:
        """Connect to a live broker that is not in `tried`; every attempt is added to `tried`."""

    def dispose(self, connection: client.Connection) -> None:
        """Close a connection in the background."""


class Route:
    """The broker connection of one client connection.

    A route is bound when the broker's connection has state that another broker lacks (SASL), or when its loss is the only sign of
    failure for the client (acks=0). The client's connection is then closed with the broker's.
    """

    def __init__(self, brokers: BrokerConnector, peer: server.Peer) -> None:
        self._brokers = brokers
        self._peer = peer
        self._send_lock = asyncio.Lock()  # fair: requests are sent in the order of their arrival
        self._connection: client.Connection | None = None
        self._bound = False
        self._closed = False
        self.endpoint: BrokerEndpoint | None = None

    async def forward(self, header: RequestHeader, frame: bytes) -> bytes | None:
        """Send a request and return the response; None if the request has no response. Raises as Relay.forward."""
        expects_answer = has_response(header, frame)
        repeatable = header.api_key in REPEATABLE
        tried: set[int] = set()
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                answer = await self._send(header, frame, tried, expects_answer=expects_answer)
                return None if answer is None else await answer
            except client.ConnectionFailed as error:
                if self._bound or attempt == MAX_ATTEMPTS or (error.sent and not repeatable):
                    raise server.CloseConnection(f"connection to the broker was lost: {error.reason}") from error
        raise AssertionError("the last attempt returns or raises")

    def disconnect(self) -> None:
        """Close the connection to a broker that is no longer live."""
        if self._connection is not None:
            self._connection.abort("the broker is no longer live")

    def close(self) -> None:
        """Close the route with its client's connection; requests that were sent already still reach the broker."""
        self._closed = True
        if self._connection is not None and not self._connection.closed:
            self._brokers.dispose(self._connection)

    async def _send(
        self, header: RequestHeader, frame: bytes, tried: set[int], *, expects_answer: bool
    ) -> Awaitable[bytes] | None:
        async with self._send_lock:
            connection = await self._connected(tried)
            if header.api_key in BOUND or not expects_answer:
                self._bound = True
            if expects_answer:
                return await connection.start_raw(frame)
            await connection.send_raw(frame)
            return None

    async def _connected(self, tried: set[int]) -> client.Connection:
        """Return the connection to the broker, or a new one if there is none to a live broker; the caller holds the lock."""
        if self._connection is not None and not self._connection.closed:
            assert self.endpoint is not None
            if self.endpoint in self._brokers.live_brokers():
                tried.add(self.endpoint.broker_id)
                return self._connection
            self.disconnect()
        if self._bound:
            raise server.CloseConnection("connection to the broker that it was bound to was lost")
        self._connection, self.endpoint = None, None
        endpoint, connection = await self._brokers.connect(tried, self._peer.hold)
        if self._closed:
            self._brokers.dispose(connection)
            raise server.CloseConnection("client closed its connection")
        self._connection, self.endpoint = connection, endpoint
        connection.on_end(lambda: self._ended(connection))
        return connection

    def _ended(self, connection: client.Connection) -> None:
        """Release the broker; a client connection that is bound to it is closed at once."""
        if connection is self._connection:
            self.endpoint = None
            if self._bound and not self._closed:
                self._peer.close("connection to the broker that it was bound to was lost")
