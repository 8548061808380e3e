"""OffsetCommit: offsets of a group are stored. Source: KafkaApis.handleOffsetCommitRequest."""

from uuid import UUID

from kafka_node.authorization.acl import Operation, ResourceType
from kafka_node.authorization.guard import Ask
from kafka_node.context import RequestContext
from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire import Body, ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.groups.commits import OffsetCommit, PartitionCommit
from light_broker.core.metadata_view import MetadataView
from light_broker.shell.broker import Broker
from light_broker.shell.groups.coordinators import NotCoordinatorError

VERSIONS = (2, 10)

MISSING_GROUPS_FROM = 9
TOPIC_IDS_FROM = 10


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Commit the offsets of topics that exist and that the caller may read."""
    view, may = broker.view, broker.may(context)
    if not may(Operation.READ, ResourceType.GROUP, body["group_id"]):
        return _refused(body, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    accepted: list[PartitionCommit] = []
    places: list[Body] = []
    topics = []
    for topic in body["topics"]:
        name, topic_id, error = _judge(view, may, topic, uses_ids=context.api_version >= TOPIC_IDS_FROM)
        partitions = []
        for partition in topic["partitions"]:
            answer = {"partition_index": partition["partition_index"], "error_code": error}
            if not error and view.partition(TopicPartition(name, partition["partition_index"])) is None:
                answer["error_code"] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if not answer["error_code"]:
                accepted.append(_commit(name, topic_id, partition))
                places.append(answer)
            partitions.append(answer)
        topics.append({"name": topic["name"], "topic_id": topic["topic_id"], "partitions": partitions})
    if accepted:
        for answer, error in zip(places, await _committed(broker, context, body, accepted), strict=True):
            answer["error_code"] = error
    return {"topics": topics}


def _judge(view: MetadataView, may: Ask, topic: Body, *, uses_ids: bool) -> tuple[str, UUID, ErrorCode]:
    """Return name and id of a topic, and why it is refused."""
    name = (view.topic_name(topic["topic_id"]) or "") if uses_ids else topic["name"]
    if uses_ids and not name:
        return name, NO_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID
    if not may(Operation.READ, ResourceType.TOPIC, name):
        return name, NO_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic_id = view.topic_id(name)
    if topic_id is None:
        return name, NO_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return name, topic_id, ErrorCode.NONE


def _commit(name: str, topic_id: UUID, partition: Body) -> PartitionCommit:
    return PartitionCommit(
        name,
        topic_id,
        partition["partition_index"],
        partition["committed_offset"],
        partition["committed_leader_epoch"],
        partition["committed_metadata"],
    )


async def _committed(
    broker: Broker, context: RequestContext, body: Body, accepted: list[PartitionCommit]
) -> tuple[ErrorCode, ...]:
    commit = OffsetCommit(
        body["group_id"],
        body["member_id"],
        body["group_instance_id"],
        body["generation_id_or_member_epoch"],
        tuple(accepted),
        body["retention_time_ms"],
        context.api_version >= MISSING_GROUPS_FROM,
    )
    try:
        coordinator = broker.groups.coordinator_of(commit.group_id)
    except NotCoordinatorError as error:
        return (error.code,) * len(accepted)
    return await coordinator.commit(commit)


def _refused(body: Body, error: ErrorCode) -> Body:
    return {
        "topics": [
            {
                "name": topic["name"],
                "topic_id": topic["topic_id"],
                "partitions": [
                    {"partition_index": partition["partition_index"], "error_code": error}
                    for partition in topic["partitions"]
                ],
            }
            for topic in body["topics"]
        ]
    }
