"""Heartbeat: a member is alive. Source: KafkaApis.handleHeartbeatRequest, GroupCoordinatorService.heartbeat."""

from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
from light_broker.core.groups.events import Heartbeat
from light_broker.shell.broker import Broker
from light_broker.shell.groups.coordinators import NotCoordinatorError

VERSIONS = (0, 4)


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:  # noqa: ARG001 -- as all handlers
    """Restart the session of a member. While its group is loaded, its heartbeats are accepted unseen: sessions start afterwards."""
    if not body["group_id"]:
        return {"error_code": ErrorCode.INVALID_GROUP_ID}
    try:
        coordinator = broker.groups.coordinator_of(body["group_id"])
    except NotCoordinatorError as error:
        is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return {"error_code": ErrorCode.NONE if is_loading else error.code}
    answer = await coordinator.ask(
        body["group_id"],
        lambda request_id: Heartbeat(request_id, body["member_id"], body["group_instance_id"], body["generation_id"]),
    )
    return {"error_code": answer.error}
