"""The way of one client connection to one broker: opened at the first request, ended with either of its ends.

Left out: which broker (relay.py).
"""

# MERGED controller_core.shell.front.route: """Live brokers, as the front needs to know them: where each is reached on one listener.
# MERGED controller_core.shell.front.route:
# MERGED controller_core.shell.front.route: Left out: how one learns who is alive.
# MERGED controller_core.shell.front.route: """
# MERGED controller_core.shell.front.route: """What may be done with a request that the controller does not own, as tables over Kafka's API keys.
# MERGED controller_core.shell.front.route:
# MERGED controller_core.shell.front.route: Left out: doing it (relay.py).
# MERGED controller_core.shell.front.route: """
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kafka_node.acks import has_response
from kafka_wire.api import ApiKey
from kafka_wire.codec import RequestHeader
from kafka_wire.net.client import Connection, ConnectionFailed
from kafka_wire.net.server import CloseConnection, Peer


@dataclass(frozen=True, slots=True)
class BrokerEndpoint:
    """A live broker's address on the listener in question."""

    broker_id: int
    host: str
    port: int
    broker_epoch: int = -1
    """Differs between two lives of a broker (it may have come back with another version of Kafka); -1 if unknown."""
    security_protocol: str = "PLAINTEXT"
    """What it speaks there."""

    def __str__(self) -> str:
        return f"broker {self.broker_id} ({self.host}:{self.port})"


LiveBrokers = Callable[[], Sequence[BrokerEndpoint]]
"""Gives the brokers that are alive now; asked at every request, so it must be cheap. Never the controller itself."""


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
"""Requests that only read: when a broker dies over one, another broker may be asked. For any other the client has to
decide, who knows what it is doing and learns of it by its connection's end."""

BOUND = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
"""Requests that leave state in the broker's end of the connection: from then on both connections end together."""


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
