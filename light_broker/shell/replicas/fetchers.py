"""Fetchers of this broker, one for each broker that leads partitions which it follows. Source: Kafka's ReplicaFetcherManager."""

import asyncio
import logging
from dataclasses import replace
from uuid import UUID

from kafka_node.configs.layered_settings import Settings
from kafka_wire.frames import MAX_FRAME_BYTES
from kafka_wire.net.client import NodeSettings
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.metadata_view import NO_LEADER
from light_broker.core.replica_fetch import FetchedPartition
from light_broker.shell.replicas.fetcher import FetcherContext, ReplicaFetcher

log = logging.getLogger(__name__)

NUM_FETCHERS = "num.replica.fetchers"


def fetcher_settings(connection: NodeSettings, settings: Settings) -> NodeSettings:
    """Return the settings of connections to leaders, from those of connections to other brokers; warn of more than one fetcher for a leader."""
    if settings.number(NUM_FETCHERS) > 1:
        log.warning(
            "This broker has one fetcher for each leader; the setting has no effect", extra={"setting": NUM_FETCHERS}
        )
    return replace(
        connection,
        client_id=f"broker-{settings.node_id}-fetcher",
        # A response has one whole batch more than replica.fetch.response.max.bytes, if the first one is larger.
        max_frame_bytes=MAX_FRAME_BYTES + settings.number("replica.fetch.response.max.bytes"),
    )


class ReplicaFetchers:
    """The fetchers. A fetcher without partitions is ended."""

    def __init__(self, context: FetcherContext) -> None:
        self._context = context
        self._fetchers: dict[int, ReplicaFetcher] = {}
        """By the id of the leader."""
        self._leaders: dict[TopicPartition, int] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def follow(self, partition: TopicPartition, topic_id: UUID, leader_id: int, leader_epoch: int) -> None:
        """Replicate a partition from its leader; without a leader, and where it is this broker, nothing is fetched."""
        if self._leaders.get(partition) != leader_id:
            self.forget(partition)  # no request of the former leader may change the log now
        if leader_id <= NO_LEADER or leader_id == self._context.broker_id:
            return
        fetcher = self._fetchers.get(leader_id)
        if fetcher is None:
            fetcher = self._fetchers[leader_id] = ReplicaFetcher(leader_id, self._context)
        self._leaders[partition] = leader_id
        fetcher.follow(partition, FetchedPartition(topic_id, leader_epoch))

    def forget(self, partition: TopicPartition) -> None:
        """Stop replicating a partition: the broker leads it, or does not host it."""
        leader_id = self._leaders.pop(partition, None)
        if leader_id is None:
            return
        fetcher = self._fetchers[leader_id]
        fetcher.forget(partition)
        if not fetcher.partitions:
            del self._fetchers[leader_id]
            task = asyncio.get_running_loop().create_task(fetcher.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def followed(self) -> dict[TopicPartition, tuple[int, FetchedPartition]]:
        """Return the partitions that are replicated, with their leaders and states."""
        return {
            partition: (leader_id, fetcher.partitions[partition])
            for partition, leader_id in self._leaders.items()
            if (fetcher := self._fetchers[leader_id]) and partition in fetcher.partitions
        }

    async def close(self) -> None:
        """End all fetchers."""
        fetchers, self._fetchers, self._leaders = list(self._fetchers.values()), {}, {}
        await asyncio.gather(*(fetcher.close() for fetcher in fetchers), *self._closing)
