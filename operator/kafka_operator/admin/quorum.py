"""Lookup of a cluster's controller, for display.

In ZooKeeper mode brokers name it in Metadata. With a KRaft quorum they name any broker there, a different one each time, since
each of them forwards requests to it; so the quorum's leader is queried instead (DescribeQuorum, KIP-595).
"""

from __future__ import annotations

from typing import Any

from kafka.errors import IncompatibleBrokerVersion
from kafka.protocol.admin import DescribeQuorumRequest

from kafka_operator.admin.connection import NO_CONTROLLER, Connection

METADATA_LOG = "__cluster_metadata"


def controller_of(connection: Connection, metadata: Any) -> int:
    """Return the controller's id; -1 if there is none at the moment, or if it is not visible."""
    topic = DescribeQuorumRequest.TopicData
    partition = topic.PartitionData(partition_index=0)
    request = DescribeQuorumRequest(topics=[topic(topic_name=METADATA_LOG, partitions=[partition])])
    try:
        response = connection.to_any(request)
    except IncompatibleBrokerVersion:  # ZooKeeper mode
        return int(metadata.controller_id)
    leaders = [
        found.leader_id
        for item in response.topics
        for found in item.partitions
        if response.error_code == 0 and found.error_code == 0
    ]
    return int(leaders[0]) if leaders else NO_CONTROLLER
