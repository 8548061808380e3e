"""OffsetForLeaderEpoch: where leader epochs end, for consumers that check their position after a change of the leader (KIP-320).

Source: KafkaApis.handleOffsetForLeaderEpochRequest.
"""

from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.replica_requests import EpochEnd
from light_broker.shell.broker import Broker

VERSIONS = (2, 4)


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Return the end of an epoch for each partition. A broker may ask for every topic."""
    may = broker.may(context)
    is_broker = may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME, quiet=True)
    topics = []
    for topic in body["topics"]:
        name = topic["topic"]
        is_allowed = is_broker or may(Operation.DESCRIBE, ResourceType.TOPIC, name)
        answers = []
        for partition in topic["partitions"]:
            end = EpochEnd(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            if is_allowed:
                end = broker.replicas.reads.end_of_epoch(
                    TopicPartition(name, partition["partition"]),
                    partition["leader_epoch"],
                    current_leader_epoch=partition["current_leader_epoch"],
                )
            answers.append(
                {
                    "partition": partition["partition"],
                    "error_code": end.error,
                    "leader_epoch": end.epoch,
                    "end_offset": end.end_offset,
                }
            )
        topics.append({"topic": name, "partitions": answers})
    return {"topics": topics}
