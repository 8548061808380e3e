"""Descriptions of topics and partitions for clients, and DescribeTopicPartitions, version 0 (KIP-966).

Descriptions are read from the columns. A partition that never had a leader is described without one. A topic is unknown once the brokers
have been notified of its deletion; a topic whose deletion is only pending is described.

DescribeTopicPartitions returns topics in the order of their names, in pages of a limited number of partitions; the cursor of a response
is the beginning of the next page. In ZooKeeper mode there are no eligible leader replicas, so these lists are empty; Java clients (3.9.2)
fail on null. ApiVersions does not offer the API, as brokers in ZooKeeper mode do not offer it, so clients that read ApiVersions use
Metadata instead.

Source: ZkMetadataCache.getPartitionMetadata, DescribeTopicPartitionsRequestHandler,
KRaftMetadataCache.getTopicMetadataForDescribeTopicResponse.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from controller_core.model import NO_BROKER, NO_LEADER, Cluster, IntArray, Topic, TopicPartition
from controller_core.shell.active import ActiveController
from controller_core.shell.admin import responses
from controller_core.shell.admin.cluster_apis import reachable
from controller_core.zookeeper_mode.deletion import is_being_deleted
from kafka_node import outcomes, topic_names
from kafka_node.authorization.acl import ResourceType
from kafka_node.authorization.authorized_operations import authorized_operations
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode, Failure

MAX_PARTITIONS_PER_PAGE = 2_000
"""Kafka's default (max.request.partition.size.limit): a response of about half a megabyte."""


@dataclass(frozen=True, slots=True)
class View:
    """States of brokers for one request."""

    registered: frozenset[int]
    reachable: frozenset[int]
    """Registered brokers that have the listener of the request."""
    live: frozenset[int]
    """Registered and not shutting down; replicas on other brokers and in failed log directories are offline."""

    @classmethod
    def of(cls, cluster: Cluster, listener: str) -> "View":
        """Return the view of clients of a listener."""
        return cls(frozenset(cluster.brokers), reachable(cluster, listener), frozenset(cluster.may_lead()))


def described_partitions(cluster: Cluster, rows: IntArray, view: View) -> list[Body]:
    """Describe partitions by the fields that Metadata and DescribeTopicPartitions share."""
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
    """Return the error for a client that needs the partition's leader."""
    if leader in view.reachable:
        return ErrorCode.NONE
    return ErrorCode.LISTENER_NOT_FOUND if leader in view.registered else ErrorCode.LEADER_NOT_AVAILABLE


def described_topic(topic: Topic, partitions: Sequence[Body]) -> Body:
    """Describe a topic that exists."""
    return {
        "error_code": ErrorCode.NONE,
        "name": topic.name,
        "topic_id": topic.topic_id or responses.NO_TOPIC_ID,
        "is_internal": topic_names.is_internal(topic.name),
        "partitions": list(partitions),
    }


def known_topic(cluster: Cluster, name: str) -> Topic | None:
    """Return a topic that clients know: brokers have not been notified of its deletion."""
    return None if is_being_deleted(cluster.deletions.get(name)) else cluster.topics.get(name)


def known_topics(cluster: Cluster) -> list[Topic]:
    """List the topics that clients know."""
    if not cluster.deletions:
        return list(cluster.topics.values())
    return [topic for topic in cluster.topics.values() if not is_being_deleted(cluster.deletions.get(topic.name))]


async def describe_topic_partitions(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Return one page from the current state of the cluster."""
    refused = refuse_cursor(body)
    if refused is not None:
        return describe_topic_partitions_refused(context, body, refused)
    limit = max(1, min(MAX_PARTITIONS_PER_PAGE, body["response_partition_limit"]))
    view = View.of(active.cluster, context.listener)
    requested = requested_from(active.cluster, body)
    answer = page(active.cluster, first_of(requested, limit + 2), view, limit, is_cut=len(requested) > limit + 2)
    all_operations = authorized_operations(ResourceType.TOPIC)
    for topic in answer["topics"]:
        topic["topic_authorized_operations"] = all_operations
    return answer


def refuse_cursor(body: Body) -> Failure | None:
    """Refuse a cursor that cannot be the end of a page of these topics."""
    cursor = body["cursor"]
    if cursor is None:
        return None
    message = None
    if body["topics"] and all(topic["name"] != cursor["topic_name"] for topic in body["topics"]):
        message = f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {cursor['topic_name']}"
    elif cursor["partition_index"] < 0:
        message = f"DescribeTopicPartitionsRequest cursor partition must be valid: {cursor['partition_index']}"
    return Failure(ErrorCode.INVALID_REQUEST, message) if message else None


def requested_from(cluster: Cluster, body: Body) -> list[TopicPartition]:
    """List the requested topics with their first partition, without those before the cursor."""
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


def first_of(requested: Iterable[TopicPartition], count: int) -> list[TopicPartition]:
    """Return the first `count` in the order of names: sorting all of them for each page would take too long."""
    return heapq.nsmallest(count, requested)


def page(
    cluster: Cluster, requested: Sequence[TopicPartition], view: View, limit: int, *, is_cut: bool = False
) -> Body:
    """Describe topics up to `limit` partitions; the cursor is null after the last topic.

    If the list `is_cut`, more topics follow, and its last topic begins the next page at the latest.
    """
    topics: list[Body] = []
    remaining = limit
    for place, (name, first) in enumerate(requested):
        if remaining == 0 or (is_cut and place == len(requested) - 1):
            return _page(topics, TopicPartition(name, 0))
        topic = known_topic(cluster, name)
        if topic is None:
            topics.append(outcomes.missing_topic(name))
            continue
        end = min(len(topic.rows), first + remaining)
        partitions = described_partitions(cluster, topic.rows[first:end], view)
        topics.append(described_topic(topic, [_partition(partition) for partition in partitions]))
        if end < len(topic.rows):
            return _page(topics, TopicPartition(name, end))
        remaining -= len(partitions)
    return _page(topics, None)


def _partition(partition: Body) -> Body:
    # Unlike Metadata, this API reports a missing leader by -1 only, without an error.
    return {**partition, "error_code": ErrorCode.NONE, "eligible_leader_replicas": [], "last_known_elr": []}


def _page(topics: list[Body], cursor: TopicPartition | None) -> Body:
    next_cursor = None if cursor is None else {"topic_name": cursor.topic, "partition_index": cursor.partition}
    return {"topics": topics, "next_cursor": next_cursor}


def describe_topic_partitions_refused(_context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer every named topic with the same error; the response has no top-level error."""
    return {
        "topics": [outcomes.failed_topic(topic["name"], failure.code) for topic in body["topics"]],
        "next_cursor": None,
    }
