"""Which versions the live brokers share, asked from each broker once in its life.

A broker that does not answer is left out for a while, so that clients do not wait for it one after the other.

Left out: what is made of the answers (versions.py).
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

_log = logging.getLogger(__name__)

ASK_TIMEOUT_MS = 1_000  # a client's first request waits for this; a live broker answers within some milliseconds
ASK_AGAIN_MS = 5_000  # a broker that did not answer is asked again after this
MAX_ASKED_AT_ONCE = 16  # connections opened side by side when the controller starts in a large cluster


class SharedVersions:
    """What the live brokers of one listener have in common; `shared` is the way in."""

    def __init__(self, live_brokers: LiveBrokers, *, client_id: str, security: BrokerSecurity = UNPROTECTED) -> None:
        self._live_brokers = live_brokers
        self._client_id = client_id
        self._security = security
        self._known: dict[BrokerEndpoint, BrokerVersions] = {}
        self._ask_again: dict[BrokerEndpoint, float] = {}  # loop time in s
        self._asking = asyncio.Lock()  # one round at a time: who comes meanwhile uses its outcome
        self._at_once = asyncio.Semaphore(MAX_ASKED_AT_ONCE)
        self.latest = NO_BROKER  # as far as known now

    async def shared(self) -> BrokerVersions:
        """Give what all live brokers serve; with no live broker, or none that answers, what was known last."""
        if self._missing():
            async with self._asking:
                await asyncio.gather(*(self._ask(endpoint) for endpoint in self._missing()))
                self._combine()
        elif self._known.keys() != set(self._live_brokers()):
            self._combine()
        return self.latest

    def _missing(self) -> list[BrokerEndpoint]:
        now = asyncio.get_running_loop().time()
        return [
            endpoint
            for endpoint in self._live_brokers()
            if endpoint not in self._known and self._ask_again.get(endpoint, now) <= now
        ]

    def _combine(self) -> None:
        """Forget brokers that are gone, and find what the others share."""
        live = set(self._live_brokers())
        self._known = {endpoint: found for endpoint, found in self._known.items() if endpoint in live}
        self._ask_again = {endpoint: when for endpoint, when in self._ask_again.items() if endpoint in live}
        if self._known:
            self.latest = shared(list(self._known.values()))

    async def _ask(self, endpoint: BrokerEndpoint) -> None:
        try:
            async with self._at_once:
                self._known[endpoint] = await self._ask_once(endpoint)
            self._ask_again.pop(endpoint, None)
        except (ConnectionFailed, UnsupportedVersion) as why:
            self._ask_again[endpoint] = asyncio.get_running_loop().time() + ASK_AGAIN_MS / 1000
            extra = {"broker_id": endpoint.broker_id, "reason": str(why)}
            _log.warning("Cannot learn which versions %s serves: %s", endpoint, why, extra=extra)

    async def _ask_once(self, endpoint: BrokerEndpoint) -> BrokerVersions:
        ssl, sasl = self._security.of(endpoint.security_protocol)
        connection = await Connection.open(
            endpoint.host,
            endpoint.port,
            client_id=self._client_id,
            ssl=ssl,
            sasl=sasl,
            connect_timeout_ms=ASK_TIMEOUT_MS,
            request_timeout_ms=ASK_TIMEOUT_MS,
        )
        try:
            body = await connection.call(ApiKey.API_VERSIONS, api_versions_request())
        finally:
            await connection.close()
        if body["error_code"] != ErrorCode.NONE:
            raise ConnectionFailed(f"it answered {ErrorCode.of(body['error_code']).name}", sent=True)
        return read_versions(body)
