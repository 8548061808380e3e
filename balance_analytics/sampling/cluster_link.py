"""The cluster, as its brokers tell it: who is there, which topics and partitions there are, and a connection to each broker.

Every look asks another broker for the metadata, so that no one of them bears it alone, and one that is cut off and knows less
misleads one look in many. Leaves out what brokers are asked besides (offsets, log_dirs, committed).
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from balance_analytics.sampling.asking import AskedBroker, AskFailed
from balance_analytics.sampling.left_out import Reason
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.metadata_columns import MetadataColumns, decode_metadata
from kafka_wire.net.client import NodeSettings

MAX_BROKERS = 2_000
"""Ten times the largest cluster that anybody tells of; an answer with more is not believed."""
MAX_ASKED_FOR_METADATA = 5
"""Brokers asked in turn, beside the bootstrap servers: with five of them away, a look later is better than a look late."""

FIRST_VERSION = 4
"""Of Metadata: the first that can be asked without creating the topics that are named."""


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int


class ClusterLink:
    """A cluster and connections to its brokers, kept from look to look."""

    def __init__(self, bootstrap: Sequence[Address], settings: NodeSettings) -> None:
        self._settings = settings
        self._bootstrap = {address: AskedBroker(*address, settings) for address in bootstrap}
        self._brokers: dict[int, tuple[Address, AskedBroker]] = {}
        self._looks = 0

    @property
    def broker_ids(self) -> list[int]:
        """Brokers that are there, by the last metadata."""
        return list(self._brokers)

    def broker(self, broker_id: int) -> AskedBroker | None:
        """Return a broker; None: it is not among those that are there."""
        found = self._brokers.get(broker_id)
        return None if found is None else found[1]

    async def metadata(self, *, deadline: float, topics: Sequence[str] | None = None) -> MetadataColumns:
        """Ask for all topics, or for some. Raises AskFailed, with the words of all who failed."""
        self._looks += 1
        known = [broker for _, broker in self._brokers.values()]
        turn = self._looks % len(known) if known else 0
        candidates = [*(known[turn:] + known[:turn])[:MAX_ASKED_FOR_METADATA], *self._bootstrap.values()]
        failures: list[AskFailed] = []
        for place, broker in enumerate(candidates):
            try:
                # Each gets its share of what is left, so that one that is silent does not take it all.
                share = _share(deadline, len(candidates) - place)
                found = await broker.ask(
                    ApiKey.METADATA, lambda _: _asked(topics), decode_metadata, deadline=share, lowest=FIRST_VERSION
                )
                self._check(found, broker)
            except AskFailed as why:
                failures.append(why)
            else:
                await self._learn(found)
                return found
        words = "; ".join(dict.fromkeys(map(str, failures)))
        raise AskFailed(failures[-1].reason, f"no broker tells the cluster's metadata: {words}")

    async def close(self) -> None:
        """Close every connection."""
        everybody = [*self._bootstrap.values(), *(broker for _, broker in self._brokers.values())]
        await asyncio.gather(*(broker.close() for broker in everybody))

    @staticmethod
    def _check(found: MetadataColumns, broker: AskedBroker) -> None:
        if found.error_code != ErrorCode.NONE:
            error = ErrorCode.of(found.error_code).name
            raise AskFailed(Reason.REFUSED, f"{broker.name} refuses its metadata: {error}")
        if not 0 < len(found.brokers) <= MAX_BROKERS:
            raise AskFailed(Reason.MALFORMED, f"{broker.name} tells of {len(found.brokers)} brokers")

    async def _learn(self, found: MetadataColumns) -> None:
        """Keep connections to those who are still where they were, and close those to others."""
        addresses = {one.node_id: Address(one.host, one.port) for one in found.brokers}
        gone = [broker for node, (at, broker) in self._brokers.items() if addresses.get(node) != at]
        self._brokers = {
            node: self._brokers[node]
            if node in self._brokers and self._brokers[node][0] == address
            else (address, AskedBroker(*address, self._settings))
            for node, address in addresses.items()
        }
        await asyncio.gather(*(broker.close() for broker in gone))


def _share(deadline: float, left: int) -> float:
    now = asyncio.get_running_loop().time()
    return now + (deadline - now) / left


def _asked(topics: Sequence[str] | None) -> Body:
    return {
        "topics": None if topics is None else [{"name": name} for name in topics],
        "allow_auto_topic_creation": False,
    }
