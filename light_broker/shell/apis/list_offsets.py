"""ListOffsets: offsets of partitions by timestamp. Source: KafkaApis.handleListOffsetRequest, ReplicaManager.fetchOffset."""

from collections import Counter

from kafka_node.authorization.acl import Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.offset_search import is_known_timestamp
from light_broker.core.replica_requests import CONSUMER, DEBUGGING_CONSUMER, FoundOffset, IsolationLevel, ReadLimit
from light_broker.shell.broker import Broker

VERSIONS = (1, 11)

LEADER_EPOCHS_FROM = 4
NOT_AVAILABLE_FROM = 5
"""Version from which on a client knows OFFSET_NOT_AVAILABLE."""


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Return an offset for each partition."""
    may = broker.may(context)
    seen = Counter(
        (topic["name"], partition["partition_index"]) for topic in body["topics"] for partition in topic["partitions"]
    )
    topics = []
    for topic in body["topics"]:
        is_allowed = may(Operation.DESCRIBE, ResourceType.TOPIC, topic["name"])
        answers = []
        for partition in topic["partitions"]:
            named = TopicPartition(topic["name"], partition["partition_index"])
            if not is_allowed:
                found = FoundOffset(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif seen[named] > 1:
                found = FoundOffset(ErrorCode.INVALID_REQUEST)
            elif not is_known_timestamp(partition["timestamp"], context.api_version):
                found = FoundOffset(ErrorCode.UNSUPPORTED_VERSION)
            else:
                found = _find(broker, named, partition, body)
            answers.append(_answer(partition["partition_index"], found, context.api_version))
        topics.append({"name": topic["name"], "partitions": answers})
    return {"topics": topics}


def _find(broker: Broker, named: TopicPartition, partition: Body, body: Body) -> FoundOffset:
    replica_id = body["replica_id"]
    limit = ReadLimit.LOG_END
    if replica_id == CONSUMER:
        is_committed = body["isolation_level"] == IsolationLevel.READ_COMMITTED
        limit = ReadLimit.LAST_STABLE_OFFSET if is_committed else ReadLimit.HIGH_WATERMARK
    return broker.replicas.reads.list_offset(
        named,
        partition["timestamp"],
        limit,
        current_leader_epoch=partition["current_leader_epoch"],
        only_leader=replica_id != DEBUGGING_CONSUMER,
    )


def _answer(index: int, found: FoundOffset, version: int) -> Body:
    error = found.error
    if error is ErrorCode.OFFSET_NOT_AVAILABLE and version < NOT_AVAILABLE_FROM:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    answer: Body = {
        "partition_index": index,
        "error_code": error,
        "timestamp": found.timestamp_ms,
        "offset": found.offset,
    }
    if version >= LEADER_EPOCHS_FROM:
        answer["leader_epoch"] = found.leader_epoch
    return answer
