"""Topics and partitions as Metadata and DescribeTopicPartitions describe them to clients of a listener.

Source: KRaftMetadataCache.getPartitionMetadata and getTopicMetadataForDescribeTopicResponse.
"""

from kafka_wire import Body, ErrorCode
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


def _leader_error(view: MetadataView, listener: str, leader: int) -> ErrorCode:
    broker = view.brokers.get(leader)
    if broker is None or broker.is_fenced:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode.NONE if listener in broker.endpoints else ErrorCode.LISTENER_NOT_FOUND
