"""DescribeCluster, versions 0 and 1 (KIP-700): the nodes of a listener and which of them is the controller.

Source: AuthHelper.computeDescribeClusterResponse. Leaves out who may do what, as Metadata does.
"""

from controller_core.shell.active import ActiveController
from controller_core.shell.admin.nodes import nodes
from controller_core.shell.admin.outcomes import error_fields
from kafka_node.authorization.acl import ResourceType
from kafka_node.authorization.authorized_operations import authorized_operations
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode

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
