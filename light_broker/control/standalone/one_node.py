"""Requests whose answer follows from there being one node: elections, reassignments, features and quotas.

They change nothing. Source: ReplicationControlManager, FeatureControlManager and ClientQuotaControlManager of Kafka 4.3.
"""

from kafka_node.outcomes import error_fields
from kafka_wire import Body, ErrorCode, Failure
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.standalone.state import State
from light_broker.control.standalone.topics import refused_replicas


def elect_leaders(state: State, body: Body) -> Body:
    """Answer that no partition needs an election. Without partitions, those of all topics are meant, and none is listed."""
    return {
        "error_code": ErrorCode.NONE,
        "replica_election_results": [
            {
                "topic": topic["topic"],
                "partition_result": [
                    {
                        "partition_id": number,
                        **error_fields(_no_election(state, TopicPartition(topic["topic"], number))),
                    }
                    for number in topic["partitions"]
                ],
            }
            for topic in body["topic_partitions"] or []
        ],
    }


def _no_election(state: State, partition: TopicPartition) -> Failure:
    if not _exists(state, partition):
        return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic or partition: {partition}")
    return Failure(ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.ELECTION_NOT_NEEDED.message)


def list_reassignments() -> Body:
    """Answer that no partition is being moved."""
    return {**error_fields(None), "topics": []}


def alter_reassignments(state: State, body: Body) -> Body:
    """Answer each partition: its only replica may be assigned again, and there is no reassignment to cancel."""
    return {
        **error_fields(None),
        "allow_replication_factor_change": body["allow_replication_factor_change"],
        "responses": [
            {
                "name": topic["name"],
                "partitions": [
                    {
                        "partition_index": partition["partition_index"],
                        **error_fields(_not_moved(state, topic["name"], partition)),
                    }
                    for partition in topic["partitions"]
                ],
            }
            for topic in body["topics"]
        ],
    }


def _not_moved(state: State, topic: str, wanted: Body) -> Failure | None:
    if topic not in state.topics:
        return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic}.")
    if not _exists(state, TopicPartition(topic, wanted["partition_index"])):
        message = f"Unable to find partition {topic}:{wanted['partition_index']}."
        return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if wanted["replicas"] is None:
        return Failure(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS.message)
    return refused_replicas(state, [wanted["replicas"]])


def _exists(state: State, partition: TopicPartition) -> bool:
    topic = state.topics.get(partition.topic)
    return topic is not None and 0 <= partition.partition < topic.partitions


def update_features(state: State, body: Body) -> Body:
    """Refuse the request if it has a feature: this node supports none."""
    for update in body["feature_updates"]:
        feature, level = update["feature"], update["max_version_level"]
        reason = (
            "A feature version cannot be less than 0."
            if level < 0
            else f"Local controller {state.node_id} does not support this feature."
        )
        message = (
            "The update failed for all features since the following feature had an error: "
            f"Invalid update version {level} for feature {feature}. {reason}"
        )
        return {**error_fields(Failure(ErrorCode.INVALID_UPDATE_VERSION, message)), "results": []}
    return {**error_fields(None), "results": []}


def describe_client_quotas() -> Body:
    """Answer that no entity has a quota: this broker enforces none, so that none can be set (AlterClientQuotas is not served)."""
    return {**error_fields(None), "entries": []}
