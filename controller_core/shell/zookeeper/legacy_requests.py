"""Reading of requests that old tools write to ZooKeeper: `/admin/reassign_partitions` and `/admin/preferred_replica_election`.

A request that cannot be decoded is logged once, with its path and the reason, and treated as an empty list, so that it is removed.
Kafka does so for data that is not JSON, and fails on JSON of another structure.
"""

import logging
from collections.abc import Callable
from typing import TypeVar

from controller_core.model import NO_EPOCH, Cluster, TopicPartition, events, zookeeper_events
from controller_core.shell.zookeeper.watched_reads import WatchedReads
from kafka_zookeeper import formats, paths, session

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class LegacyRequests:
    """The requests of one active term."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def moves(self, reads: WatchedReads) -> events.Event | None:
        """Read the requested reassignments."""
        node = await reads.get(paths.REASSIGN_PARTITIONS)
        if node is None:
            # Deleting the list does not cancel a running reassignment.
            return (
                zookeeper_events.ReassignmentRequestsRead({}, NO_EPOCH) if self._cluster.reassignment_requests else None
            )
        found = _decoded(paths.REASSIGN_PARTITIONS, node, formats.decode_reassignment) or {}
        return zookeeper_events.ReassignmentRequestsRead(
            {TopicPartition(*name): target for name, target in found.items()}, node.version
        )

    async def elections(self, reads: WatchedReads) -> events.Event | None:
        """Read the requested preferred leader elections."""
        node = await reads.get(paths.PREFERRED_REPLICA_ELECTION)
        if node is None:
            return None
        found = _decoded(paths.PREFERRED_REPLICA_ELECTION, node, formats.decode_preferred_replica_election) or ()
        return zookeeper_events.ElectionRequestsRead(
            tuple(TopicPartition(*name) for name in dict.fromkeys(found)), node.version
        )


def _decoded(path: str, node: session.Node, decode: Callable[[bytes | None], _T]) -> _T | None:
    try:
        return decode(node.data)
    except formats.FormatError as error:
        log.error("Failed to decode request; removing it", extra={"path": path, "error": error.reason})
        return None
