"""DescribeProducers: idempotent and transactional producers of partitions (KIP-664). Source: KafkaApis.handleDescribeProducersRequest."""

from kafka_node.authorization.acl import Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_node.topic_names import illegal_name_reason
from kafka_wire import Body, ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.replica_requests import ActiveProducer
from light_broker.shell.broker import Broker

VERSIONS = (0, 0)


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Return the producers in each partition's log."""
    may = broker.may(context)
    topics = []
    for topic in body["topics"]:
        name = topic["name"]
        error = ErrorCode.NONE
        if (reason := illegal_name_reason(name)) is not None:
            error = ErrorCode.INVALID_TOPIC_EXCEPTION
        elif not may(Operation.READ, ResourceType.TOPIC, name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif name not in broker.view.topics:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answers = []
        for index in topic["partition_indexes"]:
            found = error or broker.replicas.reads.active_producers(TopicPartition(name, index))
            answers.append(_answer(index, found, reason))
        topics.append({"name": name, "partitions": answers})
    return {"topics": topics}


def _answer(index: int, found: list[ActiveProducer] | ErrorCode, reason: str | None) -> Body:
    if isinstance(found, ErrorCode):
        return {"partition_index": index, "error_code": found, "error_message": reason, "active_producers": []}
    producers = [
        {
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
            "last_sequence": producer.last_sequence,
            "last_timestamp": producer.last_timestamp_ms,
            "coordinator_epoch": producer.coordinator_epoch,
            "current_txn_start_offset": producer.transaction_start_offset,
        }
        for producer in found
    ]
    return {"partition_index": index, "active_producers": producers}
