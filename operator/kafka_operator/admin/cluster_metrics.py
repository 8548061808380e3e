"""Health of a cluster: all partitions counted from one Metadata response, and the brokers' software versions.

200,000 partitions are a response of 8.5 MB, parsed in some two seconds by a separate thread; only the numbers leave it.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import Any

from kafka.admin import ConfigResourceType
from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.metadata import ApiVersionsRequest

from kafka_operator.admin.connection import OPERATION_TIMEOUT_MS, Connection
from kafka_operator.admin.requests import list_reassignments_request, metadata_of, moves_of
from kafka_operator.decide.cluster_metrics import ClusterMetrics, PartitionCounter, read_versions
from kafka_operator.resources.cluster import Versions

INTER_BROKER_PROTOCOL = "inter.broker.protocol.version"

MAX_ASKED = 200
"""Brokers whose software versions are queried: each needs a connection; the largest clusters have some hundreds."""


def query_cluster_metrics(connection: Connection) -> ClusterMetrics:
    """Query all partitions from the controller, and moves where they matter."""
    counter = count(metadata_of(connection, None))
    if counter.is_complete:
        return counter.sum_up({})
    asked = list_reassignments_request(OPERATION_TIMEOUT_MS)
    answer = connection.to_controller(asked, lambda response: (response.error_code,))
    return counter.sum_up(moves_of(answer) if answer.error_code == 0 else {})


def count(response: Any) -> PartitionCounter:
    """Count the partitions of a Metadata answer."""
    counter = PartitionCounter()
    for topic in response.topics:
        for item in topic.partitions:
            counter.count(topic.name, item.partition_index, item.leader_id, item.replica_nodes, len(item.isr_nodes))
    return counter


def query_versions(connection: Connection, broker_ids: Collection[int]) -> Versions:
    """Query each broker's APIs, and the inter-broker protocol from one of them; brokers that do not answer are omitted."""
    software: list[tuple[int, ...]] = []
    finalized: dict[str, int] = {}
    protocol: str | None = None
    for broker_id in islice(sorted(broker_ids), MAX_ASKED):
        try:
            request = ApiVersionsRequest(client_software_name="kafka-steward", client_software_version="0")
            response = connection.to_node(request, broker_id)
            ranges = {item.api_key: (item.min_version, item.max_version) for item in response.api_keys}
            software.append(BrokerVersionData(api_versions=ranges).broker_version)
            finalized |= {item.name: item.max_version_level for item in response.finalized_features or ()}
            protocol = protocol or _inter_broker_protocol(connection, broker_id)
        except KafkaError:
            continue
    return read_versions(software, finalized, protocol)


def _inter_broker_protocol(connection: Connection, broker_id: int) -> str | None:
    """Return the effective setting of a broker; None if it is not visible."""
    resources = [(int(ConfigResourceType.BROKER), str(broker_id), [INTER_BROKER_PROTOCOL])]
    request = DescribeConfigsRequest(resources=resources, include_synonyms=False, include_documentation=False)
    response = connection.to_node(request, broker_id)
    values = [
        entry.value for result in response.results for entry in result.configs if entry.name == INTER_BROKER_PROTOCOL
    ]
    return values[0] if values else None
