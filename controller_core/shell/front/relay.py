"""Relay of requests that the controller does not answer itself: request and response pass unchanged, byte for byte.

Each client connection has a separate connection to one broker for as long as both are open. Requests of a client therefore keep
their order, and a long poll of one client delays no other client. When the broker is lost, read-only requests are sent to another
broker; after any other request the client's connection is closed and the client retries.

A client may get any live broker, so it is offered the API versions that all of them serve (`SharedVersions`). Each broker is asked once
per incarnation; a broker that does not answer is skipped for a while, so that clients do not wait for it one after the other.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from controller_core.shell.front.route import BrokerEndpoint, LiveBrokers, Route
from kafka_node.security.brokers import UNPROTECTED, BrokerSecurity
from kafka_node.versions import NO_BROKER, BrokerVersions, read_versions, shared
from kafka_wire import ApiKey, ErrorCode, frames
from kafka_wire.codec import RequestHeader
from kafka_wire.net import client, negotiation, server

log = logging.getLogger(__name__)

VERSIONS_TIMEOUT_MS = 1_000  # a client's first request waits for this; a live broker answers within some milliseconds
VERSIONS_RETRY_AFTER_MS = 5_000  # pause before another request to a broker that did not answer
MAX_CONCURRENT_VERSIONS_REQUESTS = 16  # connections opened in parallel when the controller starts in a large cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayLimits:
    """Limits of one listener's relay."""

    max_upstreams: int = 1_000
    """Relayed client connections; as many as the server accepts by default."""

    connect_timeout_ms: int = 2_000
    """A live broker accepts within milliseconds; after this time another broker is tried."""

    request_timeout_ms: int = 1_800_000
    """Limit for abandoned requests. Normally the client closes its connection earlier; a JoinGroup may take
    group.max.session.timeout.ms (30 minutes)."""

    max_frame_bytes: int = frames.MAX_FRAME_BYTES
    """A larger request closes the client's connection, a larger response the broker's."""

    avoid_ms: int = 5_000
    """Time for which an unreachable broker is tried after all others: a failed broker counts as live until its registration
    expires."""


DEFAULT_LIMITS = RelayLimits()


class Relay:
    """The relay of one listener. `live_brokers` returns the brokers' endpoints on that listener."""

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
        self._routes: dict[server.Peer, Route] = {}
        self._avoid: dict[BrokerEndpoint, float] = {}  # until when, loop time in s
        self._closing: set[asyncio.Task[None]] = set()

    async def forward(self, peer: server.Peer, header: RequestHeader, frame: bytes) -> bytes | None:
        """Send a client's request to a broker and return the response; None if the request has no response.

        Raises CloseConnection when no broker can be reached, or the broker was lost during a request that must not be repeated.
        """
        if len(frame) > self._limits.max_frame_bytes:
            raise server.CloseConnection(f"a request of {len(frame)} bytes is too large to be relayed")
        route = self._routes.get(peer)
        if route is None:
            if len(self._routes) >= self._limits.max_upstreams:
                raise server.CloseConnection(
                    f"limit of {self._limits.max_upstreams} relayed client connections is reached"
                )
            route = self._routes[peer] = Route(self, peer)
            peer.on_close(lambda: self._drop(peer))
        return await route.forward(header, frame)

    def disconnect_broker(self, broker_id: int) -> None:
        """Close the connections to a broker that is no longer live: clients of a hung broker would wait forever."""
        for route in list(self._routes.values()):
            if route.endpoint is not None and route.endpoint.broker_id == broker_id:
                route.disconnect()

    async def close(self) -> None:
        """Close all connections to brokers."""
        for peer in list(self._routes):
            self._drop(peer)
        if self._closing:
            await asyncio.wait(self._closing)

    # Used by routes (`BrokerConnector`).

    async def connect(
        self, tried: set[int], on_held: Callable[[int], None]
    ) -> tuple[BrokerEndpoint, client.Connection]:
        """Connect to the live broker with the fewest relayed connections, skipping `tried`; every attempt is added to `tried`."""
        while True:
            endpoint = self._choose(tried)
            tried.add(endpoint.broker_id)
            ssl, sasl = self._security.of(endpoint.security_protocol)
            try:
                connection = await client.Connection.open(
                    endpoint.host,
                    endpoint.port,
                    client_id=None,  # the relayed frames contain the client's id
                    ssl=ssl,
                    sasl=sasl,
                    connect_timeout_ms=self._limits.connect_timeout_ms,
                    request_timeout_ms=self._limits.request_timeout_ms,
                    max_frame_bytes=self._limits.max_frame_bytes,
                    on_held=on_held,
                )
            except client.ConnectionFailed as error:
                self._avoid[endpoint] = asyncio.get_running_loop().time() + self._limits.avoid_ms / 1000
                extra = {"broker": endpoint.broker_id, "address": endpoint.address, "error": error.reason}
                log.warning("Failed to connect to a broker for relaying; trying another broker", extra=extra)
            else:
                self._avoid.pop(endpoint, None)
                return endpoint, connection

    def dispose(self, connection: client.Connection) -> None:
        """Close a connection to a broker in the background, after pending data is written."""
        task = asyncio.get_running_loop().create_task(connection.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _choose(self, tried: set[int]) -> BrokerEndpoint:
        live = self.live_brokers()
        candidates = [endpoint for endpoint in live if endpoint.broker_id not in tried]
        if not candidates:
            raise server.CloseConnection(
                f"no broker can be reached: {len(live)} brokers are live on this listener, {len(tried)} were tried"
            )
        now = asyncio.get_running_loop().time()
        self._avoid = {endpoint: until for endpoint, until in self._avoid.items() if endpoint in live and until > now}
        load = Counter(route.endpoint for route in self._routes.values())
        return min(candidates, key=lambda link: (link in self._avoid, load[link], link.broker_id))

    def _drop(self, peer: server.Peer) -> None:
        route = self._routes.pop(peer, None)
        if route is not None:
            route.close()


class SharedVersions:
    """Versions and features that all live brokers of one listener support, returned by `shared`."""

    def __init__(self, live_brokers: LiveBrokers, *, client_id: str, security: BrokerSecurity = UNPROTECTED) -> None:
        self._live_brokers = live_brokers
        self._client_id = client_id
        self._security = security
        self._known: dict[BrokerEndpoint, BrokerVersions] = {}
        self._retry_at: dict[BrokerEndpoint, float] = {}  # loop time in s
        self._lock = asyncio.Lock()  # one round of requests at a time: concurrent callers use its result
        self._concurrency = asyncio.Semaphore(MAX_CONCURRENT_VERSIONS_REQUESTS)
        self.latest = NO_BROKER  # result of the latest round

    async def shared(self) -> BrokerVersions:
        """Return what all live brokers serve; the latest known result if no broker is live or none answers."""
        if self._missing():
            async with self._lock:
                await asyncio.gather(*(self._read(endpoint) for endpoint in self._missing()))
                self._combine()
        elif self._known.keys() != set(self._live_brokers()):
            self._combine()
        return self.latest

    def _missing(self) -> list[BrokerEndpoint]:
        now = asyncio.get_running_loop().time()
        return [
            endpoint
            for endpoint in self._live_brokers()
            if endpoint not in self._known and self._retry_at.get(endpoint, now) <= now
        ]

    def _combine(self) -> None:
        """Drop brokers that are no longer live, and intersect the versions of the others."""
        live = set(self._live_brokers())
        self._known = {endpoint: found for endpoint, found in self._known.items() if endpoint in live}
        self._retry_at = {endpoint: time_s for endpoint, time_s in self._retry_at.items() if endpoint in live}
        if self._known:
            self.latest = shared(list(self._known.values()))

    async def _read(self, endpoint: BrokerEndpoint) -> None:
        try:
            async with self._concurrency:
                self._known[endpoint] = await self._request(endpoint)
            self._retry_at.pop(endpoint, None)
        except (client.ConnectionFailed, client.UnsupportedVersion) as error:
            self._retry_at[endpoint] = asyncio.get_running_loop().time() + VERSIONS_RETRY_AFTER_MS / 1000
            extra = {"broker": endpoint.broker_id, "address": endpoint.address, "error": str(error)}
            log.warning("Failed to read the API versions of a broker; retrying later", extra=extra)

    async def _request(self, endpoint: BrokerEndpoint) -> BrokerVersions:
        ssl, sasl = self._security.of(endpoint.security_protocol)
        connection = await client.Connection.open(
            endpoint.host,
            endpoint.port,
            client_id=self._client_id,
            ssl=ssl,
            sasl=sasl,
            connect_timeout_ms=VERSIONS_TIMEOUT_MS,
            request_timeout_ms=VERSIONS_TIMEOUT_MS,
        )
        try:
            body = await connection.call(ApiKey.API_VERSIONS, negotiation.api_versions_request())
        finally:
            await connection.close()
        if body["error_code"] != ErrorCode.NONE:
            raise client.ConnectionFailed(f"it answered {ErrorCode.of(body['error_code']).name}", sent=True)
        return read_versions(body)
