"""LeaveGroup: members leave; several at once from version 3. Source: KafkaApis.handleLeaveGroupRequest, LeaveGroupResponse."""

from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
from light_broker.core.groups.effects import Left
from light_broker.core.groups.events import LeaveGroup, Leaver
from light_broker.shell.broker import Broker
from light_broker.shell.groups.coordinators import NotCoordinatorError

VERSIONS = (0, 5)

SEVERAL_FROM = 3


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Remove members from their group."""
    if not body["group_id"]:
        return {"error_code": ErrorCode.INVALID_GROUP_ID}
    try:
        coordinator = broker.groups.coordinator_of(body["group_id"])
    except NotCoordinatorError as error:
        return {"error_code": error.code}
    several = context.api_version >= SEVERAL_FROM
    leavers = (
        tuple(Leaver(member["member_id"], member["group_instance_id"], member["reason"]) for member in body["members"])
        if several
        else (Leaver(body["member_id"]),)
    )
    answer = await coordinator.ask(body["group_id"], lambda request_id: LeaveGroup(request_id, leavers))
    assert isinstance(answer, Left)
    if not several:
        # The error of the only member.
        return {"error_code": answer.error or next((error for _, _, error in answer.members), ErrorCode.NONE)}
    return {
        "error_code": answer.error,
        "members": [
            {"member_id": member_id, "group_instance_id": instance_id, "error_code": error}
            for member_id, instance_id, error in answer.members
        ],
    }
