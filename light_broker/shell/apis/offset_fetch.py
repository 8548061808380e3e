"""OffsetFetch: offsets of a group, of several groups at once from version 8 (KIP-709), with topic ids from version 10.

Source: KafkaApis.handleOffsetFetchRequest, OffsetFetchResponse.
"""

from collections.abc import Sequence
from dataclasses import replace

from kafka_node.authorization.acl import Operation, ResourceType
from kafka_node.authorization.guard import Ask
from kafka_node.context import RequestContext
from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire import Body, ErrorCode
from light_broker.core.groups.commits import INVALID_OFFSET, FetchedOffset, FetchedTopic, RequestedTopic
from light_broker.core.metadata_view import MetadataView
from light_broker.shell.broker import Broker
from light_broker.shell.groups.coordinators import NotCoordinatorError

VERSIONS = (1, 10)

GROUP_ERRORS_FROM = 2
"""Version from which on an error of the group is not repeated for each partition."""
SEVERAL_GROUPS_FROM = 8
TOPIC_IDS_FROM = 10

Fetched = tuple[FetchedTopic, ...] | ErrorCode


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Return offsets of the groups that the caller may describe, for topics that it may describe."""
    if context.api_version >= SEVERAL_GROUPS_FROM:
        groups = []
        for group in body["groups"]:
            fetched = await _fetch(broker, context, group, require_stable=body["require_stable"])
            error = fetched if isinstance(fetched, ErrorCode) else ErrorCode.NONE
            topics = () if isinstance(fetched, ErrorCode) else fetched
            groups.append(
                {"group_id": group["group_id"], "error_code": error, "topics": [_topic(topic) for topic in topics]}
            )
        return {"groups": groups}
    fetched = await _fetch(broker, context, body, require_stable=body["require_stable"])
    if not isinstance(fetched, ErrorCode):
        return {"topics": [_topic(topic) for topic in fetched]}
    if context.api_version >= GROUP_ERRORS_FROM:
        return {"error_code": fetched}
    return {"topics": [_topic(_failed(topic, fetched)) for topic in _requested(body["topics"])]}


async def _fetch(broker: Broker, context: RequestContext, group: Body, *, require_stable: bool) -> Fetched:
    may = broker.may(context)
    if not may(Operation.DESCRIBE, ResourceType.GROUP, group["group_id"]):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    try:
        coordinator = broker.groups.coordinator_of(group["group_id"])
    except NotCoordinatorError as error:
        return error.code
    uses_ids = context.api_version >= TOPIC_IDS_FROM
    if group["topics"] is None:
        fetched = await coordinator.fetch(group["group_id"], None, require_stable=require_stable)
        return fetched if isinstance(fetched, ErrorCode) else _visible(broker.view, may, fetched, uses_ids=uses_ids)
    allowed, refused = _judge(broker.view, may, _requested(group["topics"]), uses_ids=uses_ids)
    fetched = await coordinator.fetch(group["group_id"], allowed, require_stable=require_stable)
    return fetched if isinstance(fetched, ErrorCode) else (*fetched, *refused)


def _requested(topics: Sequence[Body]) -> list[RequestedTopic]:
    return [
        RequestedTopic(topic["name"], topic.get("topic_id", NO_TOPIC_ID), tuple(topic["partition_indexes"]))
        for topic in topics
    ]


def _judge(
    view: MetadataView, may: Ask, topics: Sequence[RequestedTopic], *, uses_ids: bool
) -> tuple[list[RequestedTopic], list[FetchedTopic]]:
    """Return the topics with their names that may be read, and the answers for the others."""
    allowed, refused = [], []
    for requested in topics:
        topic = replace(requested, topic=view.topic_name(requested.topic_id) or "") if uses_ids else requested
        if uses_ids and not topic.topic:
            refused.append(_failed(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        elif not may(Operation.DESCRIBE, ResourceType.TOPIC, topic.topic):
            refused.append(_failed(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        else:
            allowed.append(topic)
    return allowed, refused


def _visible(
    view: MetadataView, may: Ask, topics: Sequence[FetchedTopic], *, uses_ids: bool
) -> tuple[FetchedTopic, ...]:
    """Return the topics that the caller may describe; with ids, only those that exist."""
    shown = [topic for topic in topics if may(Operation.DESCRIBE, ResourceType.TOPIC, topic.topic, quiet=True)]
    if not uses_ids:
        return tuple(shown)
    with_ids = (replace(topic, topic_id=view.topic_id(topic.topic) or NO_TOPIC_ID) for topic in shown)
    return tuple(topic for topic in with_ids if topic.topic_id != NO_TOPIC_ID)


def _failed(topic: RequestedTopic, error: ErrorCode) -> FetchedTopic:
    partitions = tuple(FetchedOffset(partition, INVALID_OFFSET, error=error) for partition in topic.partitions)
    return FetchedTopic(topic.topic, topic.topic_id, partitions)


def _topic(topic: FetchedTopic) -> Body:
    answer: Body = {
        "name": topic.topic,
        "partitions": [
            {
                "partition_index": partition.partition,
                "committed_offset": partition.offset,
                "committed_leader_epoch": partition.leader_epoch,
                "metadata": partition.metadata,
                "error_code": partition.error,
            }
            for partition in topic.partitions
        ],
    }
    if topic.topic_id != NO_TOPIC_ID:
        answer["topic_id"] = topic.topic_id
    return answer
