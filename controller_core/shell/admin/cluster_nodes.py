"""Who is reached where by the listener that a request came in on: the live brokers, and the controller as one of them.

A node that does not have this listener is not listed: its address on another one may not be reachable for the caller.
Source: ZkMetadataCache.getAliveBrokerNodes. Leaves out partitions.
"""

# MERGED controller_core.shell.admin.cluster_nodes: """DescribeCluster, versions 0 and 1 (KIP-700): the nodes of a listener and which of them is the controller.
# MERGED controller_core.shell.admin.cluster_nodes:
# MERGED controller_core.shell.admin.cluster_nodes: Source: AuthHelper.computeDescribeClusterResponse. Leaves out who may do what, as Metadata does.
# MERGED controller_core.shell.admin.cluster_nodes: """
from collections.abc import Iterator
from dataclasses import dataclass

from controller_core.model.broker import Broker
from controller_core.model.cluster import Cluster
from controller_core.model.ids import NO_EPOCH
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.outcomes import error_fields
from kafka_node.authorization.acl import ResourceType
from kafka_node.authorization.authorized_operations import authorized_operations
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class Node:
    """One line of the list of brokers."""

    id: int
    host: str
    port: int
    rack: str | None


def nodes(active: ActiveController, listener: str) -> Iterator[Node]:
    """List the brokers that are registered, also those on their way out, and this controller last."""
    brokers = [active.cluster.brokers[broker_id] for broker_id in sorted(active.cluster.brokers)]
    for broker in [*brokers, controller_as_broker(active)]:
        endpoint = broker.endpoint(listener)
        if endpoint is not None:
            yield Node(broker.id, endpoint.host, endpoint.port, broker.rack)


def controller_as_broker(active: ActiveController) -> Broker:
    """Describe the controller as brokers are described to clients; that is how these find it (protocol notes, Z20, Z24).

    Where brokers have racks it has the first of them: a broker without one makes tools refuse to place replicas.
    """
    cluster = active.cluster
    racks = (cluster.brokers[broker_id].rack for broker_id in sorted(cluster.brokers))
    rack = next((rack for rack in racks if rack is not None), None)
    return Broker(cluster.controller_id, NO_EPOCH, tuple(active.advertised()), rack)


def reachable(cluster: Cluster, listener: str) -> frozenset[int]:
    """Find the registered brokers that have a listener."""
    return frozenset(broker.id for broker in cluster.brokers.values() if broker.endpoint(listener) is not None)


BROKER_ENDPOINT = 1
"""The endpoints of brokers: what this process has. Those of a quorum's controllers (KIP-919) are another type."""
ENDPOINT_TYPES = {BROKER_ENDPOINT: "BROKER", 2: "CONTROLLER"}


async def describe_cluster(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Answer from the cluster as it is now."""
    refused = refuse_endpoint_type(body)
    if refused is not None:
        return describe_cluster_refused(context, body, refused)
    listed = list(nodes(active, context.listener))
    controller_id = active.cluster.controller_id
    asked = body["include_cluster_authorized_operations"]
    operations = {"cluster_authorized_operations": authorized_operations(ResourceType.CLUSTER)} if asked else {}
    return {
        **operations,
        "error_code": ErrorCode.NONE,
        "error_message": None,
        "endpoint_type": BROKER_ENDPOINT,
        "cluster_id": active.cluster_id,
        # One that is not in the list would confuse clients: they look its address up there.
        "controller_id": controller_id if any(node.id == controller_id for node in listed) else -1,
        "brokers": [{"broker_id": node.id, "host": node.host, "port": node.port, "rack": node.rack} for node in listed],
    }


def refuse_endpoint_type(body: Body) -> Failure | None:
    """Refuse to list anything but brokers."""
    asked = body["endpoint_type"]
    if asked == BROKER_ENDPOINT:
        return None
    if asked not in ENDPOINT_TYPES:
        return Failure(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {asked}")
    words = (
        f"The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type {ENDPOINT_TYPES[asked]}"
    )
    return Failure(ErrorCode.MISMATCHED_ENDPOINT_TYPE, words)


def describe_cluster_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer with an error alone."""
    return {**error_fields(failure), "cluster_id": "", "controller_id": -1, "brokers": []}
