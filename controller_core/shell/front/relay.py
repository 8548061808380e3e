"""Every request that the controller does not own goes on to a live broker, byte for byte, and its answer comes back so.

Each client connection has a connection of its own to one broker, for as long as both live: the client's requests keep
their order, and a long poll of one client holds up no other. When the broker goes, requests that only read are asked
of another broker; after any other the client's connection is closed, and the client, who knows what it wanted, retries.

Left out: which requests are relayed (front.py), and what may be repeated (policy.py).
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from controller_core.shell.front.route import BrokerEndpoint, LiveBrokers, Route
from kafka_node.security.brokers import UNPROTECTED, BrokerSecurity
from kafka_wire.codec import RequestHeader
from kafka_wire.frames import MAX_FRAME_BYTES
from kafka_wire.net.client import Connection, ConnectionFailed
from kafka_wire.net.server import CloseConnection, Peer

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayLimits:
    """Bounds of one listener's relay."""

    max_upstreams: int = 1_000
    """Client connections that are relayed; as many as the server accepts by default."""

    connect_timeout_ms: int = 2_000
    """A live broker accepts within milliseconds; after this another one is tried."""

    request_timeout_ms: int = 1_800_000
    """The client itself decides how long it waits (a JoinGroup may take group.max.session.timeout.ms, 30 minutes), by
    closing its connection; this ends what everybody has forgotten."""

    max_frame_bytes: int = MAX_FRAME_BYTES
    """A larger request ends the client's connection, a larger answer the broker's."""

    avoid_ms: int = 5_000
    """A broker that could not be reached is tried after all others for so long: it may be dead and still count as live
    until its session with ZooKeeper ends."""


DEFAULT_LIMITS = RelayLimits()


class Relay:
    """The relay of one listener. `live_brokers` gives the brokers' endpoints on that listener."""

    def __init__(
        self,
        live_brokers: LiveBrokers,
        *,
        limits: RelayLimits = DEFAULT_LIMITS,
        security: BrokerSecurity = UNPROTECTED,
    ) -> None:
        self.live_brokers = live_brokers
        self._limits = limits
        self._security = security
        self._routes: dict[Peer, Route] = {}
        self._avoid: dict[BrokerEndpoint, float] = {}  # until when, loop time in s
        self._closing: set[asyncio.Task[None]] = set()

    async def forward(self, peer: Peer, header: RequestHeader, frame: bytes) -> bytes | None:
        """Pass a request of a client's connection on, and give the broker's answer (None: there is none).

        Raises CloseConnection when the client's connection must end: no broker can be reached, or the broker went
        away over a request that may not be repeated.
        """
        if len(frame) > self._limits.max_frame_bytes:
            raise CloseConnection(f"a request of {len(frame)} bytes is too large to be relayed")
        route = self._routes.get(peer)
        if route is None:
            if len(self._routes) >= self._limits.max_upstreams:
                raise CloseConnection(f"{self._limits.max_upstreams} client connections are relayed, the limit")
            route = self._routes[peer] = Route(self, peer)
            peer.on_close(lambda: self._drop(peer))
        return await route.forward(header, frame)

    def broker_gone(self, broker_id: int) -> None:
        """End the connections to a broker that is no longer live: a frozen one would hold its clients for ever."""
        for route in list(self._routes.values()):
            if route.endpoint is not None and route.endpoint.broker_id == broker_id:
                route.broker_gone()

    async def close(self) -> None:
        """End all connections to brokers."""
        for peer in list(self._routes):
            self._drop(peer)
        if self._closing:
            await asyncio.wait(self._closing)

    # What routes ask of their relay.

    async def connect(self, tried: set[int], on_held: Callable[[int], None]) -> tuple[BrokerEndpoint, Connection]:
        """Connect to the live broker with the fewest relayed connections; one in `tried` (which grows) is not asked."""
        while True:
            endpoint = self._choose(tried)
            tried.add(endpoint.broker_id)
            ssl, sasl = self._security.of(endpoint.security_protocol)
            try:
                connection = await Connection.open(
                    endpoint.host,
                    endpoint.port,
                    client_id=None,  # the client's own stands in its frames
                    ssl=ssl,
                    sasl=sasl,
                    connect_timeout_ms=self._limits.connect_timeout_ms,
                    request_timeout_ms=self._limits.request_timeout_ms,
                    max_frame_bytes=self._limits.max_frame_bytes,
                    on_held=on_held,
                )
            except ConnectionFailed as why:
                self._avoid[endpoint] = asyncio.get_running_loop().time() + self._limits.avoid_ms / 1000
                extra = {"broker_id": endpoint.broker_id, "reason": why.reason}
                _log.warning("Cannot relay to %s: %s", endpoint, why.reason, extra=extra)
            else:
                self._avoid.pop(endpoint, None)
                return endpoint, connection

    def dispose(self, connection: Connection) -> None:
        """Close a connection to a broker, after what was written to it last."""
        task = asyncio.get_running_loop().create_task(connection.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _choose(self, tried: set[int]) -> BrokerEndpoint:
        live = self.live_brokers()
        candidates = [endpoint for endpoint in live if endpoint.broker_id not in tried]
        if not candidates:
            raise CloseConnection(
                f"{len(live)} brokers are alive on this listener, and {len(tried)} of them were tried in vain"
            )
        now = asyncio.get_running_loop().time()
        self._avoid = {endpoint: until for endpoint, until in self._avoid.items() if endpoint in live and until > now}
        load = Counter(route.endpoint for route in self._routes.values())
        return min(candidates, key=lambda one: (one in self._avoid, load[one], one.broker_id))

    def _drop(self, peer: Peer) -> None:
        route = self._routes.pop(peer, None)
        if route is not None:
            route.close()
