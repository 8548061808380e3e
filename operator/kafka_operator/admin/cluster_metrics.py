"""Health of a cluster: all partitions counted from one Metadata response, and the brokers' software versions.

200,000 partitions are a response of 8.5 MB. A thread counts them, so that the event loop is not blocked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from kafka_operator.admin.connection import OPERATION_TIMEOUT_MS, Connection
from kafka_operator.admin.health import partitions_of
from kafka_operator.admin.requests import (
    BROKER,
    Request,
    describe_configs_request,
    list_reassignments_request,
    moves_of,
    values_of,
)
from kafka_operator.decide.clusters.cluster_metrics import (
    ClusterMetrics,
    PartitionCounter,
    read_versions,
    software_version,
)
from kafka_operator.resources.cluster import Versions
from kafka_wire import ApiKey
from kafka_wire.columns.metadata_decoder import MetadataColumns
from kafka_wire.net.client import RequestFailed
from kafka_wire.net.negotiation import api_versions_request

INTER_BROKER_PROTOCOL = "inter.broker.protocol.version"

MAX_ASKED = 200
"""Brokers whose software versions are queried: each needs a connection; the largest clusters have some hundreds."""


async def query_cluster_metrics(connection: Connection) -> ClusterMetrics:
    """Query all partitions from the controller, and moves where they matter."""
    counter = await asyncio.to_thread(count, await connection.all_partitions())
    if counter.is_complete:
        return await asyncio.to_thread(counter.sum_up, {})
    request = list_reassignments_request(OPERATION_TIMEOUT_MS)
    answer = await connection.to_controller(request, lambda response: (response["error_code"],))
    return await asyncio.to_thread(counter.sum_up, moves_of(answer) if answer["error_code"] == 0 else {})


def count(found: MetadataColumns) -> PartitionCounter:
    """Count the partitions of a Metadata answer."""
    counter = PartitionCounter()
    for item, leader in zip(partitions_of(found), found.leader_id.tolist(), strict=True):
        counter.count(item.partition.topic, item.partition.index, leader, item.replicas, len(item.isr))
    return counter


async def query_versions(connection: Connection, broker_ids: Collection[int]) -> Versions:
    """Query each broker's APIs, and the inter-broker protocol from one of them; brokers that do not answer are omitted."""
    software: list[tuple[int, ...]] = []
    finalized: dict[str, int] = {}
    protocol: str | None = None
    for broker_id in sorted(broker_ids)[:MAX_ASKED]:
        try:
            response = await connection.to_node(Request(ApiKey.API_VERSIONS, api_versions_request()), broker_id)
            release = software_version({item["api_key"]: item["max_version"] for item in response["api_keys"]})
            software += [] if release is None else [release]
            finalized |= {item["name"]: item["max_version_level"] for item in response["finalized_features"]}
            protocol = protocol or await _inter_broker_protocol(connection, broker_id)
        except RequestFailed:
            continue
    return read_versions(software, finalized, protocol)


async def _inter_broker_protocol(connection: Connection, broker_id: int) -> str | None:
    """Return the effective setting of a broker; None if it is not visible."""
    request = describe_configs_request(BROKER, {str(broker_id): [INTER_BROKER_PROTOCOL]})
    values = values_of(await connection.to_node(request, broker_id), INTER_BROKER_PROTOCOL)
    return values[0] if values else None
