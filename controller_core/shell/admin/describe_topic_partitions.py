"""DescribeTopicPartitions, version 0 (KIP-966): topics in the order of their names, page by page.

A page ends after so many partitions; the answer's cursor says where the next page begins. In ZooKeeper mode there are no
eligible leader replicas, so these lists are empty: Java's clients (3.9.2) fail on null. ApiVersions does not offer this API, as it is not
offered by brokers in ZooKeeper mode, so a client that asks what is served describes topics by Metadata.

Source: DescribeTopicPartitionsRequestHandler, KRaftMetadataCache.getTopicMetadataForDescribeTopicResponse.
Who may do what is told unasked; leaves out judging it, as Metadata does.
"""

import heapq
from collections.abc import Iterable, Sequence

from controller_core.model.cluster import Cluster
from controller_core.model.ids import TopicPartition
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.described import (
    View,
    described_partitions,
    described_topic,
    failed_topic,
    known_topic,
    known_topics,
    missing_topic,
)
from kafka_node.authorization.acl import ResourceType
from kafka_node.authorization.authorized_operations import authorized_operations
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode

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
