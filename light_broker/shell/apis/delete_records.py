"""DeleteRecords: the start of partitions' logs is moved up (KIP-107). Source: KafkaApis.handleDeleteRecordsRequest."""

from kafka_node.authorization.acl import Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.replica_requests import DeletedRecords
from light_broker.shell.broker import Broker

VERSIONS = (0, 2)


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Delete the records, and return the low watermarks."""
    may, view = broker.may(context), broker.view
    results: dict[TopicPartition, DeletedRecords] = {}
    offsets: dict[TopicPartition, int] = {}
    for topic in body["topics"]:
        is_allowed = may(Operation.DELETE, ResourceType.TOPIC, topic["name"])
        for partition in topic["partitions"]:
            named = TopicPartition(topic["name"], partition["partition_index"])
            if not is_allowed:
                results[named] = DeletedRecords(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif view.partition(named) is None:
                results[named] = DeletedRecords(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                offsets[named] = partition["offset"]
    if offsets:
        results |= await broker.replicas.writes.delete_records(offsets, timeout_ms=body["timeout_ms"])
    topics: dict[str, list[Body]] = {}
    for named, result in results.items():
        answer = {
            "partition_index": named.partition,
            "low_watermark": result.low_watermark,
            "error_code": result.error,
        }
        topics.setdefault(named.topic, []).append(answer)
    return {"topics": [{"name": name, "partitions": answers} for name, answers in topics.items()]}
