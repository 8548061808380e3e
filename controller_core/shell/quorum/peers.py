"""Requests to other nodes of the quorum: one at a time on each connection, with a backoff between attempts to connect.

A request without a response is reported to the node as failed. Addresses are those that the node knows; an id may change its address.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field, replace

from controller_core.quorum import inputs, messages, ready, rules
from controller_core.shell.quorum import wire_requests, wire_responses
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.net.client import Backoff, ConnectionFailed, Node, NodeSettings, UnsupportedVersion
from kafka_wire.net.negotiation import api_versions_request

log = logging.getLogger(__name__)

CLIENT_ID = "steward-quorum"

BACKOFF = Backoff(initial_ms=50, cap_ms=500)
"""Kafka's quorum waits 50 to 500 ms between attempts to connect (RaftManager)."""

MAX_ADDRESSES = 100
"""Addresses with a connection; the one that was added first is closed for a new one. No quorum has as many nodes."""

Address = tuple[str, int]


@dataclass(slots=True)
class _Peer:
    """The connection to one address."""

    client: Node
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """A request waits for the end of the one before. A node that asks again has given up the earlier request."""
    is_reachable: bool = True
    is_connecting: bool = False


class Peers:
    """Connections to other nodes. `respond` gives the node a response."""

    def __init__(
        self,
        settings: NodeSettings,
        topic: wire_requests.LogTopic,
        respond: Callable[[inputs.Response], None],
        *,
        request_timeout_ms: int,
    ) -> None:
        self._settings = replace(settings, client_id=CLIENT_ID, backoff=BACKOFF)
        self._topic = topic
        self._respond = respond
        self._timeout_ms = request_timeout_ms
        self._peers: dict[Address, _Peer] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, outgoing: ready.Outgoing) -> None:
        """Send a request, and give the node its response later."""
        self._run(self._exchange(outgoing))

    def connect(self, destinations: Iterable[rules.Destination]) -> None:
        """Open the connections to other nodes that have none, so that the first request of an election does not wait for it.

        An election takes two responses; name resolution, the handshakes of TCP and TLS, and the exchange of versions take longer.
        """
        for destination in destinations:
            peer = self._peer((destination.host, destination.port))
            if not peer.client.connected and not peer.is_connecting:
                peer.is_connecting = True
                self._run(self._connect(peer))

    async def close(self) -> None:
        """Cancel what waits for a response, and close all connections."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(peer.client.close() for peer in self._peers.values()))

    def _run(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, peer: _Peer) -> None:
        try:
            await peer.client.call(ApiKey.API_VERSIONS, api_versions_request(), timeout_ms=self._timeout_ms)
        except (UnsupportedVersion, codec.CodecError, ConnectionFailed) as error:
            # The first request that needs the connection fails as well, and is logged.
            log.debug(
                "Failed to connect to a node of the quorum", extra={"peer": peer.client.name, "error": str(error)}
            )
        finally:
            peer.is_connecting = False

    async def _exchange(self, outgoing: ready.Outgoing) -> None:
        destination = outgoing.destination
        peer = self._peer((destination.host, destination.port))
        try:
            response = await self._call(peer, outgoing.body)
        except (UnsupportedVersion, codec.CodecError) as error:
            self._log_failure(peer, outgoing, str(error))
            response = messages.FailedResponse(ErrorCode.UNSUPPORTED_VERSION)
        except (ConnectionFailed, TimeoutError) as error:
            self._log_failure(peer, outgoing, str(error) or "no response in time")
            response = messages.FailedResponse(ErrorCode.NETWORK_EXCEPTION)
        else:
            if not peer.is_reachable:
                peer.is_reachable = True
                log.info("Reached a node of the quorum again", extra=_where(outgoing))
        self._respond(inputs.Response(destination.id, outgoing.correlation_id, response))

    async def _call(self, peer: _Peer, request: messages.RequestBody) -> messages.ResponseBody:
        key = wire_requests.API_OF[type(request)]
        used = 0

        async def encode(version: int) -> bytes:
            nonlocal used
            used = version
            return codec.encode(
                f"{key.message}Request", version, wire_requests.encode_request(request, self._topic, version)
            )

        deadline = asyncio.get_running_loop().time() + self._timeout_ms / 1000
        async with asyncio.timeout_at(deadline):
            await peer.lock.acquire()
        try:
            left_ms = int((deadline - asyncio.get_running_loop().time()) * 1000)
            body: Body = await peer.client.call(key, encode, timeout_ms=max(1, left_ms))
        finally:
            peer.lock.release()
        return wire_responses.decode_response(key, used, body, self._topic)

    def _peer(self, address: Address) -> _Peer:
        known = self._peers.get(address)
        if known is None:
            if len(self._peers) >= MAX_ADDRESSES:
                self._run(self._peers.pop(next(iter(self._peers))).client.close())
            known = self._peers[address] = _Peer(Node(*address, self._settings))
        return known

    @staticmethod
    def _log_failure(peer: _Peer, outgoing: ready.Outgoing, error: str) -> None:
        """Log the first failure of a series as a warning, and the others at DEBUG."""
        level = logging.WARNING if peer.is_reachable else logging.DEBUG
        peer.is_reachable = False
        api = wire_requests.API_OF[type(outgoing.body)].name
        log.log(level, "Request to a node of the quorum failed", extra={**_where(outgoing), "api": api, "error": error})


def _where(outgoing: ready.Outgoing) -> dict[str, object]:
    destination = outgoing.destination
    return {"node": destination.id, "peer": f"{destination.host}:{destination.port}"}
