"""Reads of a cluster's quorum and controller.

In ZooKeeper mode brokers name the controller in Metadata. With a KRaft quorum they name any broker there, a different one each time, since
each of them forwards requests to it; so the quorum is queried instead (DescribeQuorum, KIP-595).
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka_operator.admin.connection import Connection
from kafka_operator.admin.requests import Request
from kafka_operator.decide.clusters.cluster_metrics import METADATA_VERSION
from kafka_operator.decide.kafka.observed import UNKNOWN_MS, ObservedQuorum, Quorum, QuorumNode, Unavailable
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import UnsupportedVersion
from kafka_wire.net.cluster import NO_CONTROLLER
from kafka_wire.net.negotiation import api_versions_request

METADATA_LOG = "__cluster_metadata"

NOT_VISIBLE = "QuorumNotVisible"

NO_LEADER_CODES = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""Codes during an election: the node is not the leader any more, or the broker found no leader to forward the request to."""

REQUEST = Request(
    ApiKey.DESCRIBE_QUORUM, {"topics": [{"topic_name": METADATA_LOG, "partitions": [{"partition_index": 0}]}]}
)

NOT_SERVED = Unavailable(
    NOT_VISIBLE,
    "The brokers do not serve DescribeQuorum (Kafka 3.3 and later do), so the leader of the quorum is unknown.",
)


async def query_quorum(connection: Connection) -> ObservedQuorum:
    """Query the quorum from any broker, which forwards the request to the leader."""
    try:
        return quorum_of(await connection.to_any(REQUEST))
    except UnsupportedVersion:
        response = await connection.to_any(Request(ApiKey.API_VERSIONS, api_versions_request()))
        with_quorum = any(item["name"] == METADATA_VERSION for item in response["finalized_features"])
        return NOT_SERVED if with_quorum else None


def quorum_of(response: Body) -> Quorum | Unavailable:
    """Read a DescribeQuorum response."""
    partitions = [item for topic in response["topics"] for item in topic["partitions"]]
    codes = [response["error_code"], *(item["error_code"] for item in partitions)]
    failed = [code for code in codes if code != ErrorCode.NONE and code not in NO_LEADER_CODES]
    if failed:
        return _rejected(ErrorCode.of(failed[0]))
    found = next((item for item in partitions if item["error_code"] == ErrorCode.NONE), None)
    if found is None:
        return Quorum(NO_CONTROLLER)
    return Quorum(
        found["leader_id"],
        found["leader_epoch"],
        found["high_watermark"],
        _nodes(found["current_voters"]),
        _nodes(found["observers"]),
    )


def controller_of(metadata_controller_id: int, quorum: ObservedQuorum) -> int:
    """Return the controller's id, in ZooKeeper mode that of Metadata; -1 if there is none at the moment, or if it is not visible."""
    if quorum is None:
        return metadata_controller_id
    return quorum.leader_id if isinstance(quorum, Quorum) else NO_CONTROLLER


def _rejected(error: ErrorCode) -> Unavailable:
    advice = ""
    if error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        advice = " Grant the operator's user the operation Describe on the cluster."
    return Unavailable(NOT_VISIBLE, f"Kafka rejects DescribeQuorum with {error.name}.{advice}")


def _nodes(states: Iterable[Body]) -> tuple[QuorumNode, ...]:
    return tuple(
        QuorumNode(state["replica_id"], state["log_end_offset"], state.get("last_caught_up_timestamp", UNKNOWN_MS))
        for state in states
    )
