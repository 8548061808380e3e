"""API versions that all live brokers serve, requested from each broker once per incarnation.

A broker that does not answer is skipped for a while, so that clients do not wait for it one after the other.
"""

import asyncio
import logging

from controller_core.shell.front.route import BrokerEndpoint, LiveBrokers
from kafka_node.security.brokers import UNPROTECTED, BrokerSecurity
from kafka_node.versions import NO_BROKER, BrokerVersions, read_versions, shared
from kafka_wire.api import ApiKey
from kafka_wire.errors import ErrorCode
from kafka_wire.net.client import Connection, ConnectionFailed, UnsupportedVersion
from kafka_wire.net.negotiation import api_versions_request

log = logging.getLogger(__name__)

REQUEST_TIMEOUT_MS = 1_000  # a client's first request waits for this; a live broker answers within some milliseconds
RETRY_AFTER_MS = 5_000  # pause before another request to a broker that did not answer
MAX_CONCURRENT_REQUESTS = 16  # connections opened in parallel when the controller starts in a large cluster


class SharedVersions:
    """Versions and features that all live brokers of one listener support, returned by `shared`."""

    def __init__(self, live_brokers: LiveBrokers, *, client_id: str, security: BrokerSecurity = UNPROTECTED) -> None:
        self._live_brokers = live_brokers
        self._client_id = client_id
        self._security = security
        self._known: dict[BrokerEndpoint, BrokerVersions] = {}
        self._retry_at: dict[BrokerEndpoint, float] = {}  # loop time in s
        self._lock = asyncio.Lock()  # one round of requests at a time: concurrent callers use its result
        self._concurrency = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)
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
        except (ConnectionFailed, UnsupportedVersion) as error:
            self._retry_at[endpoint] = asyncio.get_running_loop().time() + RETRY_AFTER_MS / 1000
            extra = {"broker": endpoint.broker_id, "address": endpoint.address, "error": str(error)}
            log.warning("Failed to read the API versions of a broker; retrying later", extra=extra)

    async def _request(self, endpoint: BrokerEndpoint) -> BrokerVersions:
        ssl, sasl = self._security.of(endpoint.security_protocol)
        connection = await Connection.open(
            endpoint.host,
            endpoint.port,
            client_id=self._client_id,
            ssl=ssl,
            sasl=sasl,
            connect_timeout_ms=REQUEST_TIMEOUT_MS,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
        )
        try:
            body = await connection.call(ApiKey.API_VERSIONS, api_versions_request())
        finally:
            await connection.close()
        if body["error_code"] != ErrorCode.NONE:
            raise ConnectionFailed(f"it answered {ErrorCode.of(body['error_code']).name}", sent=True)
        return read_versions(body)
