"""Queries before a broker is taken offline: locations of all replicas, and min.insync.replicas of each topic.

Leaves out what follows from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from kafka.admin import ConfigResourceType
from kafka.protocol.admin import DescribeConfigsRequest

from kafka_operator.admin.broker_roles import only_brokers
from kafka_operator.admin.connection import Connection
from kafka_operator.admin.requests import metadata_of
from kafka_operator.decide.replica_health import PartitionReplicas, ReplicaHealth
from kafka_operator.resources.reassignment import Partition

MIN_ISR = "min.insync.replicas"

MAX_TOPICS = 500
"""Topics in one DescribeConfigs: an answer of some 50 kB, with one setting each."""


def query_health(connection: Connection, known: dict[int, bool]) -> ReplicaHealth:
    """Query all partitions from the controller; `known` is `only_brokers`' own."""
    response = metadata_of(connection, None)
    return ReplicaHealth(
        response.controller_id, only_brokers(connection, response, known), tuple(partitions_of(response))
    )


def partitions_of(response: Any) -> Iterator[PartitionReplicas]:
    """Read a Metadata answer."""
    for topic in response.topics:
        for item in topic.partitions:
            name = Partition(topic.name, item.partition_index)
            yield PartitionReplicas(name, tuple(item.replica_nodes), tuple(item.isr_nodes))


def query_min_isr(connection: Connection, topics: Collection[str]) -> Mapping[str, int]:
    """Query the effective min.insync.replicas of each topic; topics without a response are omitted."""
    found: dict[str, int] = {}
    names = iter(sorted(topics))
    while batch := list(islice(names, MAX_TOPICS)):
        resources = [(int(ConfigResourceType.TOPIC), name, [MIN_ISR]) for name in batch]
        request = DescribeConfigsRequest(resources=resources, include_synonyms=False, include_documentation=False)
        found |= min_isr_of(connection.to_controller(request, lambda r: [item.error_code for item in r.results]))
    return found


def min_isr_of(response: Any) -> dict[str, int]:
    """Read a DescribeConfigs answer, wherever the setting comes from."""
    return {
        result.resource_name: int(entry.value)
        for result in response.results
        if result.error_code == 0
        for entry in result.configs
        if entry.name == MIN_ISR
    }
