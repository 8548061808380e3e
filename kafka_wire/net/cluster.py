"""Client of a cluster: a connection to each of its brokers, and requests to any broker, to one of them, or to the controller.

Metadata names the brokers and the controller. Each read of it goes to another broker, which distributes the load, and a broker with
outdated metadata affects only a few reads. Requests are sent again after a failure, so they must be idempotent.

With a KRaft quorum, Metadata names a random broker as the controller, which forwards the request (KIP-590); in ZooKeeper mode a broker
that is no longer the controller answers NOT_CONTROLLER, and Metadata is read again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from kafka_wire.api import ApiKey, Body
from kafka_wire.columns.metadata_decoder import MetadataColumns, decode_metadata
from kafka_wire.errors import ErrorCode
from kafka_wire.net.backoff import Backoff
from kafka_wire.net.connection import BodyDecoder, plain
from kafka_wire.net.failures import ConnectionFailed, MalformedResponse, RequestFailed
from kafka_wire.net.negotiation import VersionRange
from kafka_wire.net.node import Node, NodeSettings
from kafka_wire.net.sasl_client import AuthenticationFailed

MAX_BROKERS = 2_000
"""Ten times the largest known cluster; metadata with more brokers is rejected."""
MAX_METADATA_BROKERS = 5
"""Brokers tried for metadata, in addition to the bootstrap servers: if five are offline, the caller should know it soon."""
METADATA_VERSIONS = (4, 13)
"""Since version 4, a request does not create the topics that it names."""
REQUEST_ATTEMPTS = 2
"""For each request: the current connection may be stale, and the known controller replaced. Callers retry later ones with a backoff."""
BROKERS_AT_ONCE = 32
"""Brokers that are queried at the same time, which bounds memory: the sizes of 4,000 replicas are 100 kB."""
RETRY_BACKOFF = Backoff(initial_ms=100, cap_ms=1_000)
"""Before the controller is looked up again. The initial delay is Kafka's retry.backoff.ms."""
NO_CONTROLLER = -1

_T = TypeVar("_T")


class Address(NamedTuple):
    """Address of a broker's listener."""

    host: str
    port: int


class NoMetadata(RequestFailed):
    """No broker returned the cluster's metadata; `failures` has the failure of each one that was tried."""

    def __init__(self, failures: Sequence[RequestFailed]) -> None:
        messages = "; ".join(dict.fromkeys(failure.reason for failure in failures))
        super().__init__(f"no broker returned the cluster's metadata: {messages}")
        self.failures = tuple(failures)


class NoController(RequestFailed):
    """The cluster has no controller at the moment, or it is not known which broker it is."""


class MetadataRefused(RequestFailed):
    """A broker returned an error for the whole Metadata request."""


def split_servers(given: Iterable[str]) -> list[str]:
    """Return the servers of texts, each of which is one server or several of them separated by commas.

    >>> split_servers(["a:9092, b:9093,", "c:9094"])
    ['a:9092', 'b:9093', 'c:9094']
    """
    return [server.strip() for text in given for server in text.split(",") if server.strip()]


def parse_bootstrap(servers: Sequence[str]) -> tuple[Address, ...]:
    """Parse bootstrap servers, each of which is HOST:PORT or several of them separated by commas. Raises ValueError.

    >>> parse_bootstrap(["a:9092, b:9093", "[::1]:9094"])
    (Address(host='a', port=9092), Address(host='b', port=9093), Address(host='::1', port=9094))
    """
    found = []
    for server in split_servers(servers):
        host, colon, port = server.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
            raise ValueError(f"the bootstrap server {server!r} is not HOST:PORT")
        found.append(Address(host, int(port)))
    return tuple(dict.fromkeys(found))


def metadata_body(topics: Sequence[str] | None) -> Body:
    """Return the body of a Metadata request for topics by name, or (None) for all; it creates no topic."""
    names = None if topics is None else [{"name": name} for name in topics]
    return {"topics": names, "allow_auto_topic_creation": False}


async def for_each_broker(broker_ids: Iterable[int], query: Callable[[int], Awaitable[_T]]) -> list[_T]:
    """Run a query for each broker, at most BROKERS_AT_ONCE at the same time, and return the results in this order."""
    slots = asyncio.Semaphore(BROKERS_AT_ONCE)

    async def run(broker_id: int) -> _T:
        async with slots:
            return await query(broker_id)

    return await asyncio.gather(*map(run, broker_ids))


class ClusterClient:
    """Connections to the brokers of a cluster, opened when needed. Deadlines are loop time in s.

    `metadata_timeout_ms` limits a read of metadata in addition to its deadline: an unreachable cluster should be reported soon.
    """

    def __init__(
        self, bootstrap: Sequence[Address], settings: NodeSettings, *, metadata_timeout_ms: int | None = None
    ) -> None:
        self._settings = settings
        self._metadata_timeout_ms = metadata_timeout_ms
        self._bootstrap = {address: Node(*address, settings) for address in bootstrap}
        self._brokers: dict[int, tuple[Address, Node]] = {}
        self._controller_id = NO_CONTROLLER
        self._requests = 0

    @property
    def broker_ids(self) -> list[int]:
        """Ids of the brokers in the last metadata."""
        return list(self._brokers)

    def broker(self, broker_id: int) -> Node | None:
        """Return the connection to a broker, or None if the broker is not in the last metadata."""
        found = self._brokers.get(broker_id)
        return None if found is None else found[1]

    async def metadata(self, *, deadline: float, topics: Sequence[str] | None = None) -> MetadataColumns:
        """Read the metadata of all topics, or of some. Raises NoMetadata with the failures of all brokers that were tried."""
        if self._metadata_timeout_ms is not None:
            deadline = min(deadline, asyncio.get_running_loop().time() + self._metadata_timeout_ms / 1000)
        self._requests += 1
        known = [node for _, node in self._brokers.values()]
        turn = self._requests % len(known) if known else 0
        candidates = [*(known[turn:] + known[:turn])[:MAX_METADATA_BROKERS], *self._bootstrap.values()]
        failures: list[RequestFailed] = []
        for place, node in enumerate(candidates):
            try:
                # Each broker gets its share of the remaining time, so that a silent one does not use up all of it.
                share = _share(deadline, len(candidates) - place)
                found = await self._read_metadata(node, topics, share)
            except RequestFailed as error:
                failures.append(error)
            else:
                await self._update_brokers(found)
                return found
        raise NoMetadata(failures)

    async def call(
        self,
        key: ApiKey,
        body: Body,
        decode: BodyDecoder[_T],
        *,
        broker_id: int | None = None,
        deadline: float,
        versions: VersionRange | None = None,
    ) -> _T:
        """Send a request to a broker, or (None) to any, preferably over an open connection. Raises RequestFailed.

        Metadata is read first if it does not contain the broker yet.
        """
        if not self._brokers or (broker_id is not None and broker_id not in self._brokers):
            await self.metadata(deadline=deadline, topics=[])
        candidates = [node for other_id, (_, node) in self._brokers.items() if broker_id in {None, other_id}]
        if not candidates:
            raise ConnectionFailed(f"broker {broker_id} is not in the cluster's metadata", sent=False)
        node = min(candidates, key=lambda candidate: not candidate.connected)
        return await node.request(key, body, decode, deadline=deadline, versions=versions, attempts=REQUEST_ATTEMPTS)

    async def call_controller(
        self,
        key: ApiKey,
        body: Body,
        decode: BodyDecoder[_T],
        codes_of: Callable[[_T], Iterable[int]],
        *,
        deadline: float,
        versions: VersionRange | None = None,
    ) -> _T:
        """Send a request to the controller; `codes_of` returns the error codes of a response. Raises RequestFailed.

        The controller is looked up again, up to REQUEST_ATTEMPTS times, if it fails or answers that it no longer is the controller.
        """
        failure: RequestFailed = NoController("the cluster has no active controller")
        for attempt in range(REQUEST_ATTEMPTS):
            await asyncio.sleep(RETRY_BACKOFF.delay_ms(attempt, 0.5) / 1000)
            try:
                node = await self._controller(deadline)
                response = await node.request(
                    key, body, decode, deadline=deadline, versions=versions, attempts=REQUEST_ATTEMPTS
                )
            except (AuthenticationFailed, MalformedResponse):
                raise
            except (ConnectionFailed, NoController) as error:
                failure = error
            else:
                if ErrorCode.NOT_CONTROLLER not in codes_of(response):
                    return response
                failure = NoController(f"{node.name} is no longer the controller")
            self._controller_id = NO_CONTROLLER
        raise failure

    async def close(self) -> None:
        """Close every connection; running and later calls fail."""
        nodes = [*self._bootstrap.values(), *(node for _, node in self._brokers.values())]
        await asyncio.gather(*(node.close() for node in nodes))

    async def _controller(self, deadline: float) -> Node:
        """Return the connection to the controller."""
        if self._controller_id not in self._brokers:
            self._controller_id = (await self.metadata(deadline=deadline, topics=[])).controller_id
        node = self.broker(self._controller_id)
        if node is None:
            raise NoController("the cluster has no active controller")
        return node

    async def _read_metadata(self, node: Node, topics: Sequence[str] | None, deadline: float) -> MetadataColumns:
        found = await node.request(
            ApiKey.METADATA,
            metadata_body(topics),
            plain(decode_metadata),
            deadline=deadline,
            versions=METADATA_VERSIONS,
            attempts=REQUEST_ATTEMPTS,
        )
        if found.error_code != ErrorCode.NONE:
            raise MetadataRefused(f"{node.name} returned {ErrorCode.of(found.error_code).name} for Metadata")
        if not 0 < len(found.brokers) <= MAX_BROKERS:
            raise MalformedResponse(f"{node.name} returned metadata with {len(found.brokers)} brokers", sent=True)
        return found

    async def _update_brokers(self, found: MetadataColumns) -> None:
        """Keep connections to brokers whose address is unchanged, and close the others."""
        addresses = {broker.node_id: Address(broker.host, broker.port) for broker in found.brokers}
        closing = [node for broker_id, (at, node) in self._brokers.items() if addresses.get(broker_id) != at]
        self._brokers = {
            broker_id: self._brokers[broker_id]
            if broker_id in self._brokers and self._brokers[broker_id][0] == address
            else (address, Node(*address, self._settings))
            for broker_id, address in addresses.items()
        }
        await asyncio.gather(*(node.close() for node in closing))


def _share(deadline: float, left: int) -> float:
    now = asyncio.get_running_loop().time()
    return now + (deadline - now) / left
