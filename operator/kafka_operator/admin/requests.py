"""Admin requests and responses as bodies of Kafka's messages, and their conversion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from kafka_operator.decide.elections.election import Elect
from kafka_operator.decide.kafka.kafka_errors import ELECTION_NOT_NEEDED, NOT_CONTROLLER, UNKNOWN_TOPIC_OR_PARTITION
from kafka_operator.decide.kafka.layout import Layout
from kafka_operator.decide.kafka.observed import ConfigValue, Failure, KafkaPartition, KafkaTopic, Move
from kafka_operator.decide.steps import AlterConfig, CreateTopic, GrowTopic
from kafka_operator.resources.election import ElectionType
from kafka_operator.resources.reassignment import Partition
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.cluster import metadata_body

ELECTION_TYPES = {ElectionType.PREFERRED: 0, ElectionType.UNCLEAN: 1}
"""ElectionType (KIP-460)."""

TOPIC, BROKER = 2, 4
"""ConfigResource.Type."""

SET, DELETE = 0, 1
"""AlterConfigOp (KIP-339)."""

DYNAMIC_TOPIC_CONFIG = 1
"""ConfigSource (KIP-226): set on the topic itself."""

CONFIG_TYPES = {
    1: "BOOLEAN",
    2: "STRING",
    3: "INT",
    4: "SHORT",
    5: "LONG",
    6: "DOUBLE",
    7: "LIST",
    8: "CLASS",
    9: "PASSWORD",
}

LEADER_NOT_AVAILABLE = 5


class Request(NamedTuple):
    """A request, without its version."""

    key: ApiKey
    body: Body


def failure_of(code: int, message: str | None = None) -> Failure | None:
    """Return a code as a Failure, None for success; an unknown code keeps its number."""
    if code == 0:
        return None
    error = ErrorCode.of(code)
    return Failure(code, error.name, message or error.message or error.name)


def metadata_request(names: Sequence[str] | None) -> Request:
    """Build a Metadata request for topics by name, or (None) for all; it creates no topic."""
    return Request(ApiKey.METADATA, metadata_body(names))


def topics_of(response: Body) -> dict[str, KafkaTopic | Failure]:
    """Read a Metadata answer; topics that do not exist are left out.

    A topic without leaders is returned with the partitions it has; a topic without partitions is not known to the broker yet.
    """
    found: dict[str, KafkaTopic | Failure] = {}
    for topic in response["topics"]:
        code = topic["error_code"]
        if code == UNKNOWN_TOPIC_OR_PARTITION:
            continue
        failure = None if code == LEADER_NOT_AVAILABLE and topic["partitions"] else failure_of(code)
        found[topic["name"]] = failure or KafkaTopic(
            name=topic["name"],
            topic_id=str(topic["topic_id"]) if topic["topic_id"].int else None,
            partitions=tuple(
                KafkaPartition(
                    item["partition_index"],
                    item["leader_id"],
                    tuple(item["replica_nodes"]),
                    tuple(item["isr_nodes"]),
                )
                for item in sorted(topic["partitions"], key=lambda item: int(item["partition_index"]))
            ),
        )
    return found


def codes_of_metadata(response: Body) -> tuple[int, ...]:
    """Return NOT_CONTROLLER for a response without nodes, as of a controller that has not started or has lost its role."""
    return (response["error_code"],) if response["brokers"] else (NOT_CONTROLLER,)


def layout_of(response: Body, broker_ids: Collection[int]) -> Layout:
    """Read a Metadata answer: topics, and the racks of these of its brokers."""
    topics = {name: topic for name, topic in topics_of(response).items() if isinstance(topic, KafkaTopic)}
    racks = {broker["node_id"]: broker["rack"] for broker in response["brokers"] if broker["node_id"] in broker_ids}
    return Layout(topics, racks)


def create_topics_request(topics: Sequence[CreateTopic], timeout_ms: int, *, validate_only: bool = False) -> Request:
    """Create topics, the brokers chosen by the controller."""
    items = [
        {
            "name": topic.name,
            "num_partitions": topic.partitions,
            "replication_factor": topic.replication_factor,
            "assignments": [],
            "configs": [{"name": name, "value": value} for name, value in topic.config],
        }
        for topic in topics
    ]
    body = {"topics": items, "timeout_ms": timeout_ms, "validate_only": validate_only}
    return Request(ApiKey.CREATE_TOPICS, body)


def create_partitions_request(topics: Sequence[GrowTopic], timeout_ms: int, *, validate_only: bool = False) -> Request:
    """Add partitions, the brokers chosen by the controller."""
    items = [{"name": topic.name, "count": topic.partitions, "assignments": None} for topic in topics]
    body = {"topics": items, "timeout_ms": timeout_ms, "validate_only": validate_only}
    return Request(ApiKey.CREATE_PARTITIONS, body)


def delete_topics_request(names: Sequence[str], timeout_ms: int) -> Request:
    """Delete topics by name, in versions below 6: the later ones also take ids."""
    return Request(ApiKey.DELETE_TOPICS, {"topic_names": list(names), "timeout_ms": timeout_ms})


def alter_configs_request(topics: Sequence[AlterConfig], *, validate_only: bool = False) -> Request:
    """Set and reset single settings of topics."""
    changes = {topic.name: [*topic.set, *((name, None) for name in topic.reset)] for topic in topics}
    return incremental_alter_configs_request(TOPIC, changes, validate_only=validate_only)


def incremental_alter_configs_request(
    resource_type: int, changes: Mapping[str, Iterable[tuple[str, str | None]]], *, validate_only: bool = False
) -> Request:
    """Set settings of resources by name, and reset those whose value is None."""
    resources = [
        {
            "resource_type": resource_type,
            "resource_name": resource,
            "configs": [
                {"name": name, "config_operation": DELETE if value is None else SET, "value": value}
                for name, value in settings
            ],
        }
        for resource, settings in changes.items()
    ]
    return Request(ApiKey.INCREMENTAL_ALTER_CONFIGS, {"resources": resources, "validate_only": validate_only})


def describe_configs_request(resource_type: int, wanted: Mapping[str, Iterable[str] | None]) -> Request:
    """Build a request for settings of resources by name; None: all settings."""
    resources = [
        {
            "resource_type": resource_type,
            "resource_name": resource,
            "configuration_keys": None if names is None else sorted(names),
        }
        for resource, names in wanted.items()
    ]
    return Request(ApiKey.DESCRIBE_CONFIGS, {"resources": resources})


def configs_of(response: Body) -> dict[str, Mapping[str, ConfigValue] | Failure]:
    """Read a DescribeConfigs answer; settings that are not set on the topic itself are left out."""
    found: dict[str, Mapping[str, ConfigValue] | Failure] = {}
    for result in response["results"]:
        found[result["resource_name"]] = failure_of(result["error_code"], result["error_message"]) or {
            entry["name"]: ConfigValue(entry["value"], CONFIG_TYPES.get(entry["config_type"], ""))
            for entry in result["configs"]
            if entry["config_source"] == DYNAMIC_TOPIC_CONFIG
        }
    return found


def values_of(response: Body, name: str) -> list[str | None]:
    """Return the values of one setting in a DescribeConfigs answer, wherever they come from."""
    return [entry["value"] for result in response["results"] for entry in result["configs"] if entry["name"] == name]


def list_reassignments_request(timeout_ms: int) -> Request:
    """Build a request for all moves."""
    return Request(ApiKey.LIST_PARTITION_REASSIGNMENTS, {"timeout_ms": timeout_ms, "topics": None})


def moves_of(response: Body) -> dict[Partition, Move]:
    """Read a ListPartitionReassignments answer."""
    return {
        Partition(topic["name"], item["partition_index"]): Move(
            tuple(item["replicas"]), tuple(item["adding_replicas"]), tuple(item["removing_replicas"])
        )
        for topic in response["topics"]
        for item in topic["partitions"]
    }


def alter_reassignments_request(targets: Mapping[Partition, tuple[int, ...] | None], timeout_ms: int) -> Request:
    """Build a request that starts and cancels moves."""
    by_topic: dict[str, list[Body]] = defaultdict(list)
    for partition, replicas in targets.items():
        move = {"partition_index": partition.index, "replicas": None if replicas is None else list(replicas)}
        by_topic[partition.topic].append(move)
    topics = [{"name": name, "partitions": partitions} for name, partitions in by_topic.items()]
    return Request(ApiKey.ALTER_PARTITION_REASSIGNMENTS, {"timeout_ms": timeout_ms, "topics": topics})


def refused_partitions(response: Body) -> dict[Partition, Failure]:
    """Read the refused parts of an AlterPartitionReassignments answer."""
    refused: dict[Partition, Failure] = {}
    for topic in response["responses"]:
        for item in topic["partitions"]:
            failure = failure_of(item["error_code"], item["error_message"])
            if failure is not None:
                refused[Partition(topic["name"], item["partition_index"])] = failure
    return refused


def elect_leaders_request(wanted: Elect, timeout_ms: int) -> Request:
    """Elect preferred leaders, or any that are alive."""
    by_topic: dict[str, list[int]] = defaultdict(list)
    for partition in wanted.partitions:
        by_topic[partition.topic].append(partition.index)
    topics = [{"topic": name, "partitions": indexes} for name, indexes in by_topic.items()]
    body = {"election_type": ELECTION_TYPES[wanted.type], "topic_partitions": topics, "timeout_ms": timeout_ms}
    return Request(ApiKey.ELECT_LEADERS, body)


def election_codes(response: Body) -> list[int]:
    """Return all codes of an ElectLeaders response: a node that is no longer the controller returns its error for each partition."""
    results = response["replica_election_results"]
    return [response["error_code"], *(item["error_code"] for topic in results for item in topic["partition_result"])]


def failed_elections(response: Body) -> dict[Partition, Failure]:
    """Read the failures of an ElectLeaders response; an election that was not needed is none."""
    failed: dict[Partition, Failure] = {}
    for topic in response["replica_election_results"]:
        for item in topic["partition_result"]:
            failure = failure_of(item["error_code"], item["error_message"])
            if failure is not None and failure.code != ELECTION_NOT_NEEDED:
                failed[Partition(topic["topic"], item["partition_id"])] = failure
    return failed


def refused_topics(results: Iterable[Body], name_field: str = "name") -> dict[str, Failure]:
    """Read the rejected parts of a response that has a result for each topic."""
    refused: dict[str, Failure] = {}
    for result in results:
        failure = failure_of(result["error_code"], result.get("error_message"))
        if failure is not None:
            refused[result[name_field]] = failure
    return refused
