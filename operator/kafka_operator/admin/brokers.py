"""Requests to individual brokers: sizes of logs, and settings of single brokers.

Each broker has its own connection; a broker that does not answer is a Failure in the result and does not delay the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kafka.admin import ConfigResourceType
from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeConfigsRequest, DescribeLogDirsRequest, IncrementalAlterConfigsRequest

from kafka_operator.admin.connection import Connection
from kafka_operator.admin.requests import DELETE, SET, failure_of
from kafka_operator.decide.layout import BrokerSizes
from kafka_operator.decide.observed import Failure
from kafka_operator.decide.reassignment_steps import AlterBroker
from kafka_operator.resources.reassignment import Partition

DYNAMIC_BROKER_CONFIG = 2
"""ConfigSource (KIP-226): set on this broker by an Admin client."""

BROKER_NOT_AVAILABLE = 8
"""Error code for every way in which a broker may fail to answer."""


def query_logs(
    connection: Connection, broker_ids: Collection[int], partitions: Collection[Partition] | None
) -> BrokerSizes:
    """Query the bytes of brokers' logs of these partitions, or (None) of all."""
    request = log_dirs_request(partitions)
    found: dict[int, Mapping[Partition, int] | Failure] = {}
    for broker_id in broker_ids:
        answer = ask_broker(connection, request, broker_id)
        found[broker_id] = answer if isinstance(answer, Failure) else logs_of(answer)
    return found


def log_dirs_request(partitions: Collection[Partition] | None) -> Any:
    """Build a DescribeLogDirs request; a null list means all partitions."""
    if partitions is None:
        return DescribeLogDirsRequest(topics=None)
    by_topic: dict[str, list[int]] = defaultdict(list)
    for partition in partitions:
        by_topic[partition.topic].append(partition.index)
    topic = DescribeLogDirsRequest.DescribableLogDirTopic
    return DescribeLogDirsRequest(
        topics=[topic(topic=name, partitions=sorted(held)) for name, held in by_topic.items()]
    )


def logs_of(response: Any) -> Mapping[Partition, int] | Failure:
    """Read a DescribeLogDirs answer; a log that is being copied to another disk of the same broker is not counted twice."""
    failure = failure_of(getattr(response, "error_code", 0) or 0)
    if failure is None:
        failure = next((found for item in response.results if (found := failure_of(item.error_code)) is not None), None)
    logs = {
        Partition(topic.name, item.partition_index): int(item.partition_size)
        for directory in response.results
        for topic in directory.topics
        for item in topic.partitions
        if not item.is_future_key
    }
    return failure if failure is not None and not logs else logs


def query_broker_configs(
    connection: Connection, broker_ids: Collection[int], names: Sequence[str]
) -> Mapping[int, Mapping[str, str] | Failure]:
    """Query which of these settings are set on the brokers themselves."""
    found: dict[int, Mapping[str, str] | Failure] = {}
    for broker_id in broker_ids:
        resources = [(int(ConfigResourceType.BROKER), str(broker_id), list(names))]
        request = DescribeConfigsRequest(resources=resources, include_synonyms=False, include_documentation=False)
        answer = ask_broker(connection, request, broker_id)
        found[broker_id] = answer if isinstance(answer, Failure) else broker_config_of(answer)
    return found


def broker_config_of(response: Any) -> Mapping[str, str] | Failure:
    """Read a DescribeConfigs response about one broker: its own settings, without inherited ones."""
    (result,) = response.results
    return failure_of(result.error_code, result.error_message) or {
        entry.name: entry.value
        for entry in result.configs
        if entry.config_source == DYNAMIC_BROKER_CONFIG and entry.value is not None
    }


def change_broker_configs(connection: Connection, changes: Sequence[AlterBroker]) -> Mapping[int, Failure]:
    """Change settings of single brokers; return the failures."""
    refused: dict[int, Failure] = {}
    for change in changes:
        answer = ask_broker(connection, broker_configs_request(change), change.broker_id)
        failure = answer if isinstance(answer, Failure) else _refusal(answer)
        if failure is not None:
            refused[change.broker_id] = failure
    return refused


def broker_configs_request(change: AlterBroker) -> Any:
    """Set and reset single settings of a broker."""
    entries = [(name, DELETE if value is None else SET, value) for name, value in change.changes]
    resources = [(int(ConfigResourceType.BROKER), str(change.broker_id), entries)]
    return IncrementalAlterConfigsRequest(resources=resources, validate_only=False)


def _refusal(response: Any) -> Failure | None:
    (result,) = response.responses
    return failure_of(result.error_code, result.error_message)


def ask_broker(connection: Connection, request: Any, broker_id: int) -> Any:
    """Return a broker's response to a request, or a Failure if it does not answer."""
    try:
        return connection.to_node(request, broker_id)
    except KafkaError as error:
        return Failure(BROKER_NOT_AVAILABLE, "BROKER_NOT_AVAILABLE", f"Broker {broker_id} does not respond: {error}.")
