"""Topics and partitions as Metadata and DescribeTopicPartitions describe them, read from the columns.

A partition that never had a leader is described without one. A topic that brokers have been told is gone is unknown, one
that only waits for its deletion is not. Source: ZkMetadataCache.getPartitionMetadata.

Leaves out which topics a request means, and the fields that only one of the two responses has.
"""

# MERGED controller_core.shell.admin.topic_description: """DescribeTopicPartitions, version 0 (KIP-966): topics in the order of their names, page by page.
# MERGED controller_core.shell.admin.topic_description:
# MERGED controller_core.shell.admin.topic_description: A page ends after so many partitions; the answer's cursor says where the next page begins. In ZooKeeper mode there are no
# MERGED controller_core.shell.admin.topic_description: eligible leader replicas, so these lists are empty: Java's clients (3.9.2) fail on null. ApiVersions does not offer this API, as it is not
# MERGED controller_core.shell.admin.topic_description: offered by brokers in ZooKeeper mode, so a client that asks what is served describes topics by Metadata.
# MERGED controller_core.shell.admin.topic_description:
# MERGED controller_core.shell.admin.topic_description: Source: DescribeTopicPartitionsRequestHandler, KRaftMetadataCache.getTopicMetadataForDescribeTopicResponse.
# MERGED controller_core.shell.admin.topic_description: Who may do what is told unasked; leaves out judging it, as Metadata does.
# MERGED controller_core.shell.admin.topic_description: """
import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from controller_core.model.cluster import Cluster, Topic
from controller_core.model.columns import IntArray
from controller_core.model.ids import NO_BROKER, NO_LEADER, TopicPartition
from controller_core.rules.topic_names import illegal_name_reason, is_internal
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.cluster_nodes import reachable
from controller_core.shell.admin.outcomes import NO_TOPIC_ID
from controller_core.zookeeper_mode.deletion import is_being_deleted
from kafka_node.authorization.acl import ResourceType
from kafka_node.authorization.authorized_operations import authorized_operations
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
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
            "replica_nodes": [replica for replica in replicas if replica != NO_BROKER],
            "isr_nodes": [replica for replica in isr if replica != NO_BROKER],
            "offline_replicas": [
                replica
                for replica in replicas
                if replica != NO_BROKER and (replica not in view.live or replica in failed.get(row, ()))
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
    legal = illegal_name_reason(name) is None
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


MAX_PARTITIONS_PER_PAGE = 2_000
"""Kafka's own default (max.request.partition.size.limit): half a megabyte or so of an answer."""


async def describe_topic_partitions(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Answer one page from the cluster as it is now."""
    refused = refuse_cursor(body)
    if refused is not None:
        return describe_topic_partitions_refused(context, body, refused)
    limit = max(1, min(MAX_PARTITIONS_PER_PAGE, body["response_partition_limit"]))
    view = View.of(active.cluster, context.listener)
    asked = asked_from(active.cluster, body)
    answer = page(active.cluster, first_of(asked, limit + 2), view, limit, is_cut=len(asked) > limit + 2)
    everything = authorized_operations(ResourceType.TOPIC)
    for topic in answer["topics"]:
        topic["topic_authorized_operations"] = everything
    return answer


def refuse_cursor(body: Body) -> Failure | None:
    """Refuse a cursor that no page of these topics can have ended with."""
    cursor = body["cursor"]
    if cursor is None:
        return None
    words = None
    if body["topics"] and all(topic["name"] != cursor["topic_name"] for topic in body["topics"]):
        words = f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {cursor['topic_name']}"
    elif cursor["partition_index"] < 0:
        words = f"DescribeTopicPartitionsRequest cursor partition must be valid: {cursor['partition_index']}"
    return Failure(ErrorCode.INVALID_REQUEST, words) if words else None


def asked_from(cluster: Cluster, body: Body) -> list[TopicPartition]:
    """List the topics that are asked for, and from which partition on: those before the cursor are passed over."""
    if body["topics"]:
        names = dict.fromkeys(topic["name"] for topic in body["topics"])
    else:
        names = {topic.name: None for topic in known_topics(cluster)}
    cursor = body["cursor"]
    if cursor is None:
        return [TopicPartition(name, 0) for name in names]
    first = TopicPartition(cursor["topic_name"], cursor["partition_index"])
    return [
        TopicPartition(name, first.partition if name == first.topic else 0) for name in names if name >= first.topic
    ]


def first_of(asked: Iterable[TopicPartition], count: int) -> list[TopicPartition]:
    """Return the first so many in the order of their names: sorting all of them for each page would take too long."""
    return heapq.nsmallest(count, asked)


def page(cluster: Cluster, asked: Sequence[TopicPartition], view: View, limit: int, *, is_cut: bool = False) -> Body:
    """Describe topics until so many partitions are described; the cursor is null after the last topic.

    Where the list `is_cut`, more topics follow: its last one begins the next page at the latest.
    """
    topics: list[Body] = []
    room = limit
    for place, (name, first) in enumerate(asked):
        if room == 0 or (is_cut and place == len(asked) - 1):
            return _page(topics, TopicPartition(name, 0))
        topic = known_topic(cluster, name)
        if topic is None:
            topics.append(missing_topic(name))
            continue
        end = min(len(topic.rows), first + room)
        partitions = described_partitions(cluster, topic.rows[first:end], view)
        topics.append(described_topic(topic, [_partition(partition) for partition in partitions]))
        if end < len(topic.rows):
            return _page(topics, TopicPartition(name, end))
        room -= len(partitions)
    return _page(topics, None)


def _partition(partition: Body) -> Body:
    # Unlike Metadata, this API names a missing leader by -1 alone.
    return {**partition, "error_code": ErrorCode.NONE, "eligible_leader_replicas": [], "last_known_elr": []}


def _page(topics: list[Body], cursor: TopicPartition | None) -> Body:
    next_cursor = None if cursor is None else {"topic_name": cursor.topic, "partition_index": cursor.partition}
    return {"topics": topics, "next_cursor": next_cursor}


def describe_topic_partitions_refused(_context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer every topic that is named with the same error; there is no other place for it."""
    return {"topics": [failed_topic(topic["name"], failure.code) for topic in body["topics"]], "next_cursor": None}
