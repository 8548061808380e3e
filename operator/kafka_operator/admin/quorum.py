"""Who the controller of a cluster is, as it is shown.

In ZooKeeper mode brokers name it in Metadata. With a quorum of its own (KRaft) they name any broker there, each time another one, since
each of them passes requests on to it; the quorum's leader is asked for instead (DescribeQuorum, KIP-595). Leaves out where requests go.
"""

from __future__ import annotations

from typing import Any

from kafka.errors import IncompatibleBrokerVersion
from kafka.protocol.admin import DescribeQuorumRequest

from kafka_operator.admin.connection import NO_CONTROLLER, Connection

METADATA_LOG = "__cluster_metadata"


def controller_of(connection: Connection, metadata: Any) -> int:
    """Return the controller's id; -1 where there is none at the moment, or where it is not told to us."""
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
