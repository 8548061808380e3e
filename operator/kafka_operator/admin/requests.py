"""Admin requests and responses in kafka-python's protocol classes, and their conversion.

The high-level methods of kafka-python drop the broker's messages for some calls, so requests are built here.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kafka import errors
from kafka.admin import ConfigResourceType
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.metadata import MetadataRequest

from kafka_operator.admin.connection import Connection
from kafka_operator.decide.election import Elect
from kafka_operator.decide.kafka_errors import ELECTION_NOT_NEEDED, NOT_CONTROLLER, UNKNOWN_TOPIC_OR_PARTITION
from kafka_operator.decide.layout import Layout
from kafka_operator.decide.observed import ConfigValue, Failure, KafkaPartition, KafkaTopic, Move
from kafka_operator.decide.steps import AlterConfig, CreateTopic, GrowTopic
from kafka_operator.resources.election import ElectionType
from kafka_operator.resources.reassignment import Partition

ELECTION_TYPES = {ElectionType.PREFERRED: 0, ElectionType.UNCLEAN: 1}
"""ElectionType (KIP-460)."""

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


def failure_of(code: int, message: str | None = None) -> Failure | None:
    """Return a code as a Failure, None for success; an unknown code keeps its number."""
    if code == 0:
        return None
    error = errors.for_code(code)
    name = error.message or error.__name__
    return Failure(code, name, message or error.description or name)


def metadata_request(names: Sequence[str] | None) -> Any:
    """Build a Metadata request for topics by name, or (None) for all; it creates no topic."""
    topic = MetadataRequest.MetadataRequestTopic
    return MetadataRequest(
        topics=None if names is None else [topic(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def metadata_of(connection: Connection, names: Sequence[str] | None) -> Any:
    """Query topics by name, or (None) all, from the controller, and return its response.

    ControllerUnavailableError for a response without nodes, as of a controller that has not started.
    """
    return connection.to_controller(metadata_request(names), codes_of_metadata)


def topics_of(response: Any) -> dict[str, KafkaTopic | Failure]:
    """Read a Metadata answer; topics that do not exist are left out.

    A topic without leaders is returned with the partitions it has; a topic without partitions is not known to the broker yet.
    """
    found: dict[str, KafkaTopic | Failure] = {}
    for topic in response.topics:
        code = topic.error_code
        if code == UNKNOWN_TOPIC_OR_PARTITION:
            continue
        failure = None if code == LEADER_NOT_AVAILABLE and topic.partitions else failure_of(code)
        found[topic.name] = failure or KafkaTopic(
            name=topic.name,
            topic_id=_topic_id(topic),
            partitions=tuple(
                KafkaPartition(item.partition_index, item.leader_id, tuple(item.replica_nodes), tuple(item.isr_nodes))
                for item in sorted(topic.partitions, key=lambda item: int(item.partition_index))
            ),
        )
    return found


def codes_of_metadata(response: Any) -> tuple[int, ...]:
    """Return NOT_CONTROLLER for a response without nodes, as of a controller that has not started or has lost its role."""
    return () if response.brokers else (NOT_CONTROLLER,)


def layout_of(response: Any, broker_ids: Collection[int]) -> Layout:
    """Read a Metadata answer: topics, and the racks of these of its brokers."""
    topics = {name: topic for name, topic in topics_of(response).items() if isinstance(topic, KafkaTopic)}
    racks = {int(broker.node_id): broker.rack for broker in response.brokers if int(broker.node_id) in broker_ids}
    return Layout(topics, racks)


def _topic_id(topic: Any) -> str | None:
    topic_id = getattr(topic, "topic_id", None)
    return str(topic_id) if isinstance(topic_id, uuid.UUID) and topic_id.int else None


def create_topics_request(topics: Sequence[CreateTopic], timeout_ms: int, *, validate_only: bool = False) -> Any:
    """Create topics, the brokers chosen by the controller."""
    item = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(
        topics=[
            item(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                assignments=[],
                configs=[item.CreatableTopicConfig(name=name, value=value) for name, value in topic.config],
            )
            for topic in topics
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def create_partitions_request(topics: Sequence[GrowTopic], timeout_ms: int, *, validate_only: bool = False) -> Any:
    """Add partitions, the brokers chosen by the controller."""
    item = CreatePartitionsRequest.CreatePartitionsTopic
    return CreatePartitionsRequest(
        topics=[item(name=topic.name, count=topic.partitions) for topic in topics],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def delete_topics_request(names: Sequence[str], timeout_ms: int) -> Any:
    """Delete topics by name."""
    item = DeleteTopicsRequest.DeleteTopicState
    return DeleteTopicsRequest(topics=[item(name=name) for name in names], timeout_ms=timeout_ms)


def alter_configs_request(topics: Sequence[AlterConfig], *, validate_only: bool = False) -> Any:
    """Set and reset single settings."""
    resources = []
    for topic in topics:
        changes = [(name, SET, value) for name, value in topic.set] + [(name, DELETE, None) for name in topic.reset]
        resources.append((int(ConfigResourceType.TOPIC), topic.name, changes))
    return IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)


def describe_configs_request(wanted: Mapping[str, frozenset[str]]) -> Any:
    """Build a request for some settings of topics."""
    resources = [(int(ConfigResourceType.TOPIC), name, sorted(keys)) for name, keys in wanted.items()]
    return DescribeConfigsRequest(resources=resources, include_synonyms=False, include_documentation=False)


def describe_all_configs_request(names: Sequence[str]) -> Any:
    """Build a request for all settings of topics."""
    resources = [(int(ConfigResourceType.TOPIC), name, None) for name in names]
    return DescribeConfigsRequest(resources=resources, include_synonyms=False, include_documentation=False)


def configs_of(response: Any) -> dict[str, Mapping[str, ConfigValue] | Failure]:
    """Read a DescribeConfigs answer; settings that are not set on the topic itself are left out."""
    found: dict[str, Mapping[str, ConfigValue] | Failure] = {}
    for result in response.results:
        found[result.resource_name] = failure_of(result.error_code, result.error_message) or {
            entry.name: ConfigValue(entry.value, CONFIG_TYPES.get(getattr(entry, "config_type", 0) or 0, ""))
            for entry in result.configs
            if entry.config_source == DYNAMIC_TOPIC_CONFIG
        }
    return found


def list_reassignments_request(timeout_ms: int) -> Any:
    """Build a request for all moves."""
    return ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=None)


def moves_of(response: Any) -> dict[Partition, Move]:
    """Read a ListPartitionReassignments answer."""
    return {
        Partition(topic.name, item.partition_index): Move(
            tuple(item.replicas), tuple(item.adding_replicas), tuple(item.removing_replicas)
        )
        for topic in response.topics
        for item in topic.partitions
    }


def alter_reassignments_request(targets: Mapping[Partition, tuple[int, ...] | None], timeout_ms: int) -> Any:
    """Build a request that starts and cancels moves."""
    item = AlterPartitionReassignmentsRequest.ReassignableTopic
    by_topic: dict[str, list[Any]] = defaultdict(list)
    for partition, replicas in targets.items():
        by_topic[partition.topic].append(
            item.ReassignablePartition(
                partition_index=partition.index, replicas=None if replicas is None else list(replicas)
            )
        )
    topics = [item(name=name, partitions=partitions) for name, partitions in by_topic.items()]
    return AlterPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics)


def refused_partitions(response: Any) -> dict[Partition, Failure]:
    """Read the refused parts of an AlterPartitionReassignments answer."""
    refused: dict[Partition, Failure] = {}
    for topic in response.responses:
        for item in topic.partitions:
            failure = failure_of(item.error_code, item.error_message)
            if failure is not None:
                refused[Partition(topic.name, item.partition_index)] = failure
    return refused


def elect_leaders_request(wanted: Elect, timeout_ms: int) -> Any:
    """Elect preferred leaders, or any that are alive."""
    item = ElectLeadersRequest.TopicPartitions
    by_topic: dict[str, list[int]] = defaultdict(list)
    for partition in wanted.partitions:
        by_topic[partition.topic].append(partition.index)
    return ElectLeadersRequest(
        election_type=ELECTION_TYPES[wanted.type],
        topic_partitions=[item(topic=name, partitions=indexes) for name, indexes in by_topic.items()],
        timeout_ms=timeout_ms,
    )


def election_codes(response: Any) -> list[int]:
    """Return all codes of an ElectLeaders response: a node that is no longer the controller returns its error for each partition."""
    codes = [getattr(response, "error_code", 0)]
    return codes + [item.error_code for topic in response.replica_election_results for item in topic.partition_result]


def failed_elections(response: Any) -> dict[Partition, Failure]:
    """Read the failures of an ElectLeaders response; an election that was not needed is none."""
    failed: dict[Partition, Failure] = {}
    for topic in response.replica_election_results:
        for item in topic.partition_result:
            failure = failure_of(item.error_code, item.error_message)
            if failure is not None and failure.code != ELECTION_NOT_NEEDED:
                failed[Partition(topic.topic, item.partition_id)] = failure
    return failed


def refused_topics(results: Iterable[Any], name_field: str = "name") -> dict[str, Failure]:
    """Read the rejected parts of a response that has a result for each topic."""
    refused: dict[str, Failure] = {}
    for result in results:
        failure = failure_of(result.error_code, getattr(result, "error_message", None))
        if failure is not None:
            refused[getattr(result, name_field)] = failure
    return refused
