"""Topics and partitions as Metadata and DescribeTopicPartitions describe them to clients of a listener.

Source: KRaftMetadataCache.getPartitionMetadata and getTopicMetadataForDescribeTopicResponse.
"""

from uuid import UUID

from kafka_node.outcomes import NO_TOPIC_ID
from kafka_node.topic_names import illegal_name_reason, is_internal
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from light_broker.core.metadata_view import NO_LEADER, MetadataView, PartitionView, TopicView


def described_partition(view: MetadataView, listener: str, number: int, partition: PartitionView) -> Body:
    """Describe a partition by the fields that both APIs share; a leader that the client cannot reach is left out, with the error."""
    error = _leader_error(view, listener, partition.leader)
    return {
        "error_code": error,
        "partition_index": number,
        "leader_id": partition.leader if error is ErrorCode.NONE else NO_LEADER,
        "leader_epoch": partition.leader_epoch,
        "replica_nodes": list(partition.replicas),
        "isr_nodes": list(partition.isr),
        "offline_replicas": list(view.offline_replicas(partition)),
    }


def described_topic(view: MetadataView, listener: str, topic: TopicView) -> Body:
    """Describe a topic with all of its partitions."""
    return {
        "error_code": ErrorCode.NONE,
        "name": topic.name,
        "topic_id": topic.id,
        "is_internal": topic.is_internal,
        "partitions": [
            described_partition(view, listener, number, partition) for number, partition in enumerate(topic.partitions)
        ],
    }


def missing_topic(name: str) -> Body:
    """Describe a topic that does not exist, or whose name is invalid."""
    is_valid = illegal_name_reason(name) is None
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid else ErrorCode.INVALID_TOPIC_EXCEPTION
    return {**failed_topic(name, code), "is_internal": is_internal(name)}


def failed_topic(name: str | None, code: ErrorCode, topic_id: UUID = NO_TOPIC_ID) -> Body:
    """Describe a topic by an error only."""
    return {"error_code": code, "name": name, "topic_id": topic_id, "is_internal": False, "partitions": []}


def _leader_error(view: MetadataView, listener: str, leader: int) -> ErrorCode:
    broker = view.brokers.get(leader)
    if broker is None or broker.is_fenced:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode.NONE if listener in broker.endpoints else ErrorCode.LISTENER_NOT_FOUND
