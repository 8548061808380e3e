"""Client of a cluster: reads its metadata and keeps a connection to each broker.

Each sample reads the metadata from another broker. This distributes the load, and a broker with outdated metadata affects only a few
samples. Leaves out all other requests (`offsets`, `log_dirs`, `committed_offsets`).
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from balance_analytics.sampling.broker_client import BrokerClient, RequestFailed
from balance_analytics.sampling.missing_data import Reason
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.metadata_columns import MetadataColumns, decode_metadata
from kafka_wire.net.client import NodeSettings

MAX_BROKERS = 2_000
"""Ten times the largest known cluster; metadata with more brokers is rejected."""
MAX_METADATA_BROKERS = 5
"""Brokers tried for metadata, in addition to the bootstrap servers: if five are offline, the sample should fail rather than be late."""

FIRST_VERSION = 4
"""Of Metadata: the first version in which a request does not create the topics that it names."""


class Address(NamedTuple):
    """Address of a broker's listener."""

    host: str
    port: int


class ClusterClient:
    """Connections to the brokers of a cluster, kept between samples."""

    def __init__(self, bootstrap: Sequence[Address], settings: NodeSettings) -> None:
        self._settings = settings
        self._bootstrap = {address: BrokerClient(*address, settings) for address in bootstrap}
        self._brokers: dict[int, tuple[Address, BrokerClient]] = {}
        self._requests = 0

    @property
    def broker_ids(self) -> list[int]:
        """Ids of the brokers in the last metadata."""
        return list(self._brokers)

    def broker(self, broker_id: int) -> BrokerClient | None:
        """Return the client of a broker, or None if the broker is not in the last metadata."""
        found = self._brokers.get(broker_id)
        return None if found is None else found[1]

    async def metadata(self, *, deadline: float, topics: Sequence[str] | None = None) -> MetadataColumns:
        """Read the metadata of all topics, or of some. Raises RequestFailed with the errors of all brokers that were tried."""
        self._requests += 1
        known = [broker for _, broker in self._brokers.values()]
        turn = self._requests % len(known) if known else 0
        candidates = [*(known[turn:] + known[:turn])[:MAX_METADATA_BROKERS], *self._bootstrap.values()]
        failures: list[RequestFailed] = []
        for place, broker in enumerate(candidates):
            try:
                # Each broker gets its share of the remaining time, so that a silent one does not use up all of it.
                share = _share(deadline, len(candidates) - place)
                found = await broker.request(
                    ApiKey.METADATA, lambda _: _request(topics), decode_metadata, deadline=share, lowest=FIRST_VERSION
                )
                self._check(found, broker)
            except RequestFailed as error:
                failures.append(error)
            else:
                await self._update_brokers(found)
                return found
        messages = "; ".join(dict.fromkeys(map(str, failures)))
        raise RequestFailed(failures[-1].reason, f"no broker returned the cluster's metadata: {messages}")

    async def close(self) -> None:
        """Close every connection."""
        clients = [*self._bootstrap.values(), *(broker for _, broker in self._brokers.values())]
        await asyncio.gather(*(broker.close() for broker in clients))

    @staticmethod
    def _check(found: MetadataColumns, broker: BrokerClient) -> None:
        if found.error_code != ErrorCode.NONE:
            error = ErrorCode.of(found.error_code).name
            raise RequestFailed(Reason.REFUSED, f"{broker.name} returned {error} for Metadata")
        if not 0 < len(found.brokers) <= MAX_BROKERS:
            raise RequestFailed(Reason.MALFORMED, f"{broker.name} returned metadata with {len(found.brokers)} brokers")

    async def _update_brokers(self, found: MetadataColumns) -> None:
        """Keep connections to brokers whose address is unchanged, and close the others."""
        addresses = {one.node_id: Address(one.host, one.port) for one in found.brokers}
        closing = [broker for node, (at, broker) in self._brokers.items() if addresses.get(node) != at]
        self._brokers = {
            node: self._brokers[node]
            if node in self._brokers and self._brokers[node][0] == address
            else (address, BrokerClient(*address, self._settings))
            for node, address in addresses.items()
        }
        await asyncio.gather(*(broker.close() for broker in closing))


def _share(deadline: float, left: int) -> float:
    now = asyncio.get_running_loop().time()
    return now + (deadline - now) / left


def _request(topics: Sequence[str] | None) -> Body:
    return {
        "topics": None if topics is None else [{"name": name} for name in topics],
        "allow_auto_topic_creation": False,
    }
