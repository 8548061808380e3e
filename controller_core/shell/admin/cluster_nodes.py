"""Nodes of the cluster on one listener, and DescribeCluster, versions 0 and 1 (KIP-700).

The nodes are the live brokers and the controller, which is listed as one of them. A node without the listener of the request is
omitted: its address on another listener may not be reachable for the client.

Source: ZkMetadataCache.getAliveBrokerNodes, AuthHelper.computeDescribeClusterResponse.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from controller_core.model import Broker, Cluster
from controller_core.model.ids import NO_EPOCH
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.outcomes import error_fields
from kafka_node.authorization.acl import ResourceType
from kafka_node.authorization.authorized_operations import authorized_operations
from kafka_node.context import RequestContext
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode, Failure

BROKER_ENDPOINT = 1
"""Endpoint type of this process. Controllers of a KRaft quorum have another type (KIP-919)."""
ENDPOINT_TYPES = {BROKER_ENDPOINT: "BROKER", 2: "CONTROLLER"}


@dataclass(frozen=True, slots=True)
class Node:
    """One element of the list of brokers."""

    id: int
    host: str
    port: int
    rack: str | None


def nodes(active: ActiveController, listener: str) -> Iterator[Node]:
    """List the registered brokers, including those in controlled shutdown, and the controller as the last node."""
    brokers = [active.cluster.brokers[broker_id] for broker_id in sorted(active.cluster.brokers)]
    for broker in [*brokers, controller_as_broker(active)]:
        endpoint = broker.endpoint(listener)
        if endpoint is not None:
            yield Node(broker.id, endpoint.host, endpoint.port, broker.rack)


def controller_as_broker(active: ActiveController) -> Broker:
    """Describe the controller as a broker, which is how clients find it (protocol notes, Z20, Z24).

    If brokers have racks, it has the first of them: tools refuse to place replicas if one broker has no rack.
    """
    cluster = active.cluster
    racks = (cluster.brokers[broker_id].rack for broker_id in sorted(cluster.brokers))
    rack = next((rack for rack in racks if rack is not None), None)
    return Broker(cluster.controller_id, NO_EPOCH, tuple(active.advertised()), rack)


def reachable(cluster: Cluster, listener: str) -> frozenset[int]:
    """Return the ids of the registered brokers that have a listener."""
    return frozenset(broker.id for broker in cluster.brokers.values() if broker.endpoint(listener) is not None)


async def describe_cluster(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Answer from the current state of the cluster."""
    refused = refuse_endpoint_type(body)
    if refused is not None:
        return describe_cluster_refused(context, body, refused)
    listed = list(nodes(active, context.listener))
    controller_id = active.cluster.controller_id
    wants_operations = body["include_cluster_authorized_operations"]
    operations = (
        {"cluster_authorized_operations": authorized_operations(ResourceType.CLUSTER)} if wants_operations else {}
    )
    return {
        **operations,
        "error_code": ErrorCode.NONE,
        "error_message": None,
        "endpoint_type": BROKER_ENDPOINT,
        "cluster_id": active.cluster_id,
        # Clients take the controller's address from the list, so its id is -1 if it is not listed.
        "controller_id": controller_id if any(node.id == controller_id for node in listed) else -1,
        "brokers": [{"broker_id": node.id, "host": node.host, "port": node.port, "rack": node.rack} for node in listed],
    }


def refuse_endpoint_type(body: Body) -> Failure | None:
    """Refuse to list other endpoints than those of brokers."""
    endpoint_type = body["endpoint_type"]
    if endpoint_type == BROKER_ENDPOINT:
        return None
    if endpoint_type not in ENDPOINT_TYPES:
        return Failure(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {endpoint_type}")
    wanted = ENDPOINT_TYPES[endpoint_type]
    message = f"The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type {wanted}"
    return Failure(ErrorCode.MISMATCHED_ENDPOINT_TYPE, message)


def describe_cluster_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer with an error only."""
    return {**error_fields(failure), "cluster_id": "", "controller_id": -1, "brokers": []}
