"""DescribeTopicPartitions: topics in the order of their names, in pages of a limited number of partitions (KIP-966).

Source: DescribeTopicPartitionsRequestHandler.
"""

from kafka_node.authorization.acl import Operation, ResourceType
from kafka_node.authorization.refusal import refusal
from kafka_node.context import RequestContext
from kafka_node.outcomes import failed_topic, missing_topic
from kafka_wire import ApiKey, Body, ErrorCode, Failure
from light_broker.core.metadata_view import MetadataView, TopicView
from light_broker.core.topic_description import described_partition
from light_broker.shell.broker import Broker

VERSIONS = (0, 0)


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Return one page; the cursor is the beginning of the next one, null after the last topic."""
    if (reason := _invalid_cursor(body)) is not None:
        return refusal(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS, context.api_version, body, Failure(ErrorCode.INVALID_REQUEST, reason)
        )
    view, may, cursor = broker.view, broker.may(context), body["cursor"]
    is_named = bool(body["topics"])
    names = {topic["name"] for topic in body["topics"]} if is_named else set(view.topics)
    if cursor is not None:
        names = {name for name in names if name >= cursor["topic_name"]}
    refused: list[Body] = []
    remaining = max(
        1, min(broker.settings.number("max.request.partition.size.limit"), body["response_partition_limit"])
    )
    topics: list[Body] = []
    for name in sorted(names):
        if not may(Operation.DESCRIBE, ResourceType.TOPIC, name, quiet=not is_named):
            if is_named:
                refused.append(failed_topic(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        if remaining == 0:
            return _page(topics, refused, name, 0)
        topic = view.topics.get(name)
        if topic is None:
            topics.append(missing_topic(name))
            continue
        first = cursor["partition_index"] if cursor is not None and cursor["topic_name"] == name else 0
        described = _described(view, context.listener, topic, first, remaining)
        described["topic_authorized_operations"] = broker.operations_on_topic(context, name)
        topics.append(described)
        count = len(described["partitions"])
        if first + count < len(topic.partitions):
            return _page(topics, refused, name, first + count)
        remaining -= count
    return _page(topics, refused, None, 0)


def _invalid_cursor(body: Body) -> str | None:
    cursor = body["cursor"]
    if cursor is None:
        return None
    if body["topics"] and all(topic["name"] != cursor["topic_name"] for topic in body["topics"]):
        return f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {cursor['topic_name']}"
    if cursor["partition_index"] < 0:
        return f"DescribeTopicPartitionsRequest cursor partition must be valid: {cursor['partition_index']}"
    return None


def _described(view: MetadataView, listener: str, topic: TopicView, first: int, limit: int) -> Body:
    partitions = []
    for number, partition in list(enumerate(topic.partitions))[first : first + limit]:
        partitions.append(
            {
                **described_partition(view, listener, number, partition),
                # Unlike Metadata, this API reports a missing leader by -1 only.
                "error_code": ErrorCode.NONE,
                "eligible_leader_replicas": list(partition.elr),
                "last_known_elr": list(partition.last_known_elr),
            }
        )
    return {
        "error_code": ErrorCode.NONE,
        "name": topic.name,
        "topic_id": topic.id,
        "is_internal": topic.is_internal,
        "partitions": partitions,
    }


def _page(topics: list[Body], refused: list[Body], next_topic: str | None, next_partition: int) -> Body:
    cursor = None if next_topic is None else {"topic_name": next_topic, "partition_index": next_partition}
    return {"topics": [*refused, *topics], "next_cursor": cursor}
