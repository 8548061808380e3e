"""Topics and partitions as Metadata and DescribeTopicPartitions describe them, read from the columns.

A partition that never had a leader is described without one. A topic that brokers have been told is gone is unknown, one
that only waits for its deletion is not. Source: ZkMetadataCache.getPartitionMetadata.

Leaves out which topics a request means, and the fields that only one of the two responses has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from controller_core.cluster.deletion import is_being_deleted
from controller_core.cluster.topic_names import illegal_because, is_internal
from controller_core.model.cluster import Cluster, Topic
from controller_core.model.columns import IntArray
from controller_core.model.ids import NO_LEADER, NOBODY
from controller_core.shell.admin.nodes import reachable
from controller_core.shell.admin.outcomes import NO_TOPIC_ID
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class View:
    """Who counts as what for one request."""

    registered: frozenset[int]
    reachable: frozenset[int]
    """Registered, and having the listener that the request came in on."""
    live: frozenset[int]
    """Registered and not shutting down: replicas on all others are offline, and so are those in failed log directories."""

    @classmethod
    def of(cls, cluster: Cluster, listener: str) -> "View":
        """Take the view of a listener's clients."""
        return cls(frozenset(cluster.brokers), reachable(cluster, listener), frozenset(cluster.may_lead()))


def described_partitions(cluster: Cluster, rows: IntArray, view: View) -> list[Body]:
    """Describe partitions: the fields that both responses share."""
    columns = cluster.columns
    failed = cluster.offline_replicas
    described = zip(
        rows.tolist(),
        columns.partition[rows].tolist(),
        columns.leader[rows].tolist(),
        columns.leader_epoch[rows].tolist(),
        columns.replicas[rows].tolist(),
        columns.isr[rows].tolist(),
        strict=True,
    )
    return [
        {
            "error_code": leader_error(leader, view),
            "partition_index": partition,
            "leader_id": leader if leader in view.reachable else NO_LEADER,
            "leader_epoch": leader_epoch,
            "replica_nodes": [replica for replica in replicas if replica != NOBODY],
            "isr_nodes": [replica for replica in isr if replica != NOBODY],
            "offline_replicas": [
                replica
                for replica in replicas
                if replica != NOBODY and (replica not in view.live or replica in failed.get(row, ()))
            ],
        }
        for row, partition, leader, leader_epoch, replicas, isr in described
    ]


def leader_error(leader: int, view: View) -> ErrorCode:
    """Say what a client finds when it goes to a partition's leader."""
    if leader in view.reachable:
        return ErrorCode.NONE
    return ErrorCode.LISTENER_NOT_FOUND if leader in view.registered else ErrorCode.LEADER_NOT_AVAILABLE


def described_topic(topic: Topic, partitions: Sequence[Body]) -> Body:
    """Describe a topic that is there."""
    return {
        "error_code": ErrorCode.NONE,
        "name": topic.name,
        "topic_id": topic.topic_id or NO_TOPIC_ID,
        "is_internal": is_internal(topic.name),
        "partitions": list(partitions),
    }


def missing_topic(name: str) -> Body:
    """Describe a topic that is not there: there is none of that name, or there never can be."""
    legal = illegal_because(name) is None
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if legal else ErrorCode.INVALID_TOPIC_EXCEPTION
    return {**failed_topic(name, code), "is_internal": is_internal(name)}


def failed_topic(name: str | None, code: ErrorCode, topic_id: UUID = NO_TOPIC_ID) -> Body:
    """Describe a topic by an error alone."""
    return {"error_code": code, "name": name, "topic_id": topic_id, "is_internal": False, "partitions": []}


def known_topic(cluster: Cluster, name: str) -> Topic | None:
    """Find a topic as clients know it: brokers have not been told that it is gone."""
    return None if is_being_deleted(cluster.deletions.get(name)) else cluster.topics.get(name)


def known_topics(cluster: Cluster) -> list[Topic]:
    """List the topics as clients know them."""
    if not cluster.deletions:
        return list(cluster.topics.values())
    return [topic for topic in cluster.topics.values() if not is_being_deleted(cluster.deletions.get(topic.name))]
