"""Queries before a broker is taken offline: locations of all replicas, the quorum, and min.insync.replicas of each topic."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from kafka_operator.admin.broker_roles import only_brokers
from kafka_operator.admin.connection import Connection
from kafka_operator.admin.quorum import controller_of, query_quorum
from kafka_operator.admin.requests import TOPIC, describe_configs_request
from kafka_operator.decide.kafka.replica_health import PartitionReplicas, ReplicaHealth
from kafka_operator.resources.reassignment import Partition
from kafka_wire import Body
from kafka_wire.columns.metadata_decoder import MetadataColumns

MIN_ISR = "min.insync.replicas"

MAX_TOPICS = 500
"""Topics in one DescribeConfigs: an answer of some 50 kB, with one setting each."""


async def query_health(connection: Connection, known: dict[int, bool]) -> ReplicaHealth:
    """Query all partitions from the controller, and the quorum; `known` is `only_brokers`' own."""
    found = await connection.all_partitions()
    brokers = await only_brokers(connection, found.controller_id, (broker.node_id for broker in found.brokers), known)
    partitions = await asyncio.to_thread(lambda: tuple(partitions_of(found)))
    quorum = await query_quorum(connection)
    return ReplicaHealth(controller_of(found.controller_id, quorum), brokers, partitions, quorum=quorum)


def partitions_of(found: MetadataColumns) -> Iterator[PartitionReplicas]:
    """Read all partitions."""
    topics = (topic for topic, rows in zip(found.topics, found.topic_rows.tolist(), strict=True) for _ in range(rows))
    columns = found.partition_index.tolist(), found.replica_nodes.tolist(), found.isr_nodes.tolist()
    for topic, index, replicas, isr in zip(topics, *columns, strict=True):
        yield PartitionReplicas(Partition(topic, index), _ids(replicas), _ids(isr))


def _ids(padded: list[int]) -> tuple[int, ...]:
    return tuple(broker_id for broker_id in padded if broker_id >= 0)


async def query_min_isr(connection: Connection, topics: Collection[str]) -> Mapping[str, int]:
    """Query the effective min.insync.replicas of each topic; topics without a response are omitted."""
    found: dict[str, int] = {}
    names = iter(sorted(topics))
    while batch := list(islice(names, MAX_TOPICS)):
        request = describe_configs_request(TOPIC, {name: [MIN_ISR] for name in batch})
        response = await connection.to_controller(request, lambda r: [item["error_code"] for item in r["results"]])
        found |= min_isr_of(response)
    return found


def min_isr_of(response: Body) -> dict[str, int]:
    """Read a DescribeConfigs answer, wherever the setting comes from."""
    return {
        result["resource_name"]: int(entry["value"])
        for result in response["results"]
        if result["error_code"] == 0
        for entry in result["configs"]
        if entry["name"] == MIN_ISR
    }
