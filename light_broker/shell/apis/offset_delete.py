"""OffsetDelete: offsets of topics that no member of a group uses are deleted (KIP-496). Source: KafkaApis.handleOffsetDeleteRequest."""

from kafka_node.authorization.acl import Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.shell.broker import Broker
from light_broker.shell.groups.coordinators import NotCoordinatorError

VERSIONS = (0, 0)


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Delete offsets of existing topics that the caller may read."""
    view, may, group_id = broker.view, broker.may(context), body["group_id"]
    if not may(Operation.DELETE, ResourceType.GROUP, group_id):
        return {"error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED}
    if not group_id:
        return {"error_code": ErrorCode.INVALID_GROUP_ID}
    topics, asked, places = [], [], []
    for topic in body["topics"]:
        name = topic["name"]
        is_allowed = may(Operation.READ, ResourceType.TOPIC, name)
        answers = []
        for partition in topic["partitions"]:
            answer = {"partition_index": partition["partition_index"], "error_code": ErrorCode.NONE}
            if not is_allowed:
                answer["error_code"] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif view.partition(TopicPartition(name, partition["partition_index"])) is None:
                answer["error_code"] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                asked.append((name, partition["partition_index"]))
                places.append(answer)
            answers.append(answer)
        topics.append({"name": name, "partitions": answers})
    try:
        deleted = await broker.groups.coordinator_of(group_id).delete_offsets(group_id, asked)
    except NotCoordinatorError as error:
        return {"error_code": error.code}
    if isinstance(deleted, ErrorCode):
        return {"error_code": deleted}
    for answer, error_code in zip(places, deleted, strict=True):
        answer["error_code"] = error_code
    return {"error_code": ErrorCode.NONE, "topics": topics}
