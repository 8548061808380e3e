"""Reading requests that old tools leave in ZooKeeper: `/admin/reassign_partitions` and `/admin/preferred_replica_election`.

People write them by hand. One that cannot be read is named in the log with its path and the reason, once, and counts as an
empty list, so that it is taken away; Kafka does so with what is no JSON, and gives up on what is JSON of another shape.

Leaves out what the requests lead to (cluster.legacy_requests), and when to look (watching).
"""

import logging
from collections.abc import Callable
from typing import TypeVar

from controller_core.model.cluster import Cluster
from controller_core.model.events import ElectionRequestsRead, Event, MoveRequestsRead
from controller_core.model.ids import NO_EPOCH, TopicPartition
from controller_core.shell.zookeeper.armed import ArmedReads
from kafka_zookeeper import paths
from kafka_zookeeper.formats.admin import decode_preferred_replica_election, decode_reassignment
from kafka_zookeeper.formats.documents import FormatError
from kafka_zookeeper.session import Node

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class LegacyRequests:
    """The looks at both lists in one tenure."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def moves(self, reads: ArmedReads) -> Event | None:
        """Look at the moves that are asked for."""
        node = await reads.get(paths.REASSIGN_PARTITIONS)
        if node is None:
            # Whoever takes the list away takes back no move that runs.
            return MoveRequestsRead({}, NO_EPOCH) if self._cluster.move_requests else None
        found = _decoded(paths.REASSIGN_PARTITIONS, node, decode_reassignment) or {}
        return MoveRequestsRead({TopicPartition(*name): target for name, target in found.items()}, node.version)

    async def elections(self, reads: ArmedReads) -> Event | None:
        """Look at the preferred leaders that are asked for."""
        node = await reads.get(paths.PREFERRED_REPLICA_ELECTION)
        if node is None:
            return None
        found = _decoded(paths.PREFERRED_REPLICA_ELECTION, node, decode_preferred_replica_election) or ()
        return ElectionRequestsRead(tuple(TopicPartition(*name) for name in dict.fromkeys(found)), node.version)


def _decoded(path: str, node: Node, decode: Callable[[bytes | None], _T]) -> _T | None:
    try:
        return decode(node.data)
    except FormatError as error:
        log.error("request removed: it cannot be read", extra={"path": path, "why": error.reason})
        return None
