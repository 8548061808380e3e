"""DeleteGroups: empty groups are deleted with their offsets (KIP-229). Source: KafkaApis.handleDeleteGroupsRequest."""

import asyncio

from kafka_node.authorization.acl import Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
from light_broker.shell.broker import Broker
from light_broker.shell.groups.coordinators import NotCoordinatorError

VERSIONS = (0, 2)


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Delete the groups that the caller may delete."""
    may = broker.may(context)
    names = list(dict.fromkeys(body["groups_names"]))
    allowed = [name for name in names if may(Operation.DELETE, ResourceType.GROUP, name)]
    errors = dict(zip(allowed, await asyncio.gather(*(_delete(broker, name) for name in allowed)), strict=True))
    return {
        "results": [
            {"group_id": name, "error_code": errors.get(name, ErrorCode.GROUP_AUTHORIZATION_FAILED)} for name in names
        ]
    }


async def _delete(broker: Broker, group_id: str) -> ErrorCode:
    try:
        return await broker.groups.coordinator_of(group_id).delete_group(group_id)
    except NotCoordinatorError as error:
        return error.code
