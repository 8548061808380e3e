"""ListGroups: the groups that this broker coordinates, by state (KIP-518) and type (KIP-848). Source: KafkaApis.handleListGroupsRequest."""

from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
from light_broker.core.groups.descriptions import CLASSIC, is_listed
from light_broker.shell.broker import Broker

VERSIONS = (0, 5)


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """List the groups that the caller may describe: all with DESCRIBE on the cluster."""
    if broker.groups.is_loading:
        return {"error_code": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    may = broker.may(context)
    sees_all = may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME, quiet=True)
    states, types = body["states_filter"], body["types_filter"]
    return {
        "groups": [
            {
                "group_id": group.id,
                "protocol_type": group.protocol_type or "",
                "group_state": group.state_name,
                "group_type": CLASSIC,
            }
            for coordinator in broker.groups.loaded()
            for group in coordinator.groups()
            if is_listed(group, states, types)
            and (sees_all or may(Operation.DESCRIBE, ResourceType.GROUP, group.id, quiet=True))
        ]
    }
