"""DescribeCluster: the brokers of the cluster (KIP-700).

Source: KafkaApis.handleDescribeCluster, AuthHelper.computeDescribeClusterResponse.
"""

from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
from light_broker.core.metadata_view import BrokerView
from light_broker.shell.broker import Broker

VERSIONS = (0, 2)

BROKERS = 1
"""Kind of endpoints that a broker knows (DescribeClusterRequest.EndpointType); 2 are controllers."""
NOT_REQUESTED = -(2**31)
"""Authorized operations that the request does not ask for."""


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Return the brokers of the caller's listener; fenced ones only where the request includes them."""
    if body["endpoint_type"] != BROKERS:
        return {
            "error_code": ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if body["endpoint_type"] == BROKERS + 1
            else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            "error_message": f"This is a broker: endpoint type {body['endpoint_type']} is not described here.",
            "endpoint_type": body["endpoint_type"],
        }
    view = broker.view
    shown = [
        broker for _, broker in sorted(view.brokers.items()) if body["include_fenced_brokers"] or not broker.is_fenced
    ]
    wants_operations = body["include_cluster_authorized_operations"]
    return {
        "endpoint_type": body["endpoint_type"],
        "cluster_id": view.cluster_id,
        "controller_id": view.controller_id,
        "brokers": [_entry(broker, context.listener) for broker in shown if context.listener in broker.endpoints],
        "cluster_authorized_operations": broker.operations_on_cluster(context) if wants_operations else NOT_REQUESTED,
    }


def _entry(broker: BrokerView, listener: str) -> Body:
    endpoint = broker.endpoints[listener]
    return {
        "broker_id": broker.id,
        "host": endpoint.host,
        "port": endpoint.port,
        "rack": broker.rack,
        "is_fenced": broker.is_fenced,
    }
