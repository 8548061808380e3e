"""Lookup of a cluster's controller, for display.

In ZooKeeper mode brokers name it in Metadata. With a KRaft quorum they name any broker there, a different one each time, since
each of them forwards requests to it; so the quorum's leader is queried instead (DescribeQuorum, KIP-595).
"""

from __future__ import annotations

from kafka_operator.admin.connection import Connection
from kafka_operator.admin.requests import Request
from kafka_wire.api import ApiKey
from kafka_wire.net.client import UnsupportedVersion
from kafka_wire.net.cluster import NO_CONTROLLER

METADATA_LOG = "__cluster_metadata"


async def controller_of(connection: Connection, metadata_controller_id: int) -> int:
    """Return the controller's id, in ZooKeeper mode that of Metadata; -1 if there is none at the moment, or if it is not visible."""
    topic = {"topic_name": METADATA_LOG, "partitions": [{"partition_index": 0}]}
    try:
        response = await connection.to_any(Request(ApiKey.DESCRIBE_QUORUM, {"topics": [topic]}))
    except UnsupportedVersion:  # ZooKeeper mode
        return metadata_controller_id
    leaders: list[int] = [
        found["leader_id"]
        for item in response["topics"]
        for found in item["partitions"]
        if response["error_code"] == 0 and found["error_code"] == 0
    ]
    return leaders[0] if leaders else NO_CONTROLLER
