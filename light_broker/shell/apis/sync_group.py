"""SyncGroup: a member fetches its assignment, which the leader brings. Source: KafkaApis.handleSyncGroupRequest."""

from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
from light_broker.core.groups.effects import Synced
from light_broker.core.groups.events import SyncGroup
from light_broker.shell.broker import Broker
from light_broker.shell.groups.coordinators import NotCoordinatorError

VERSIONS = (0, 5)

PROTOCOLS_FROM = 5


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Return the assignment of a member; the answer waits for the leader."""
    if context.api_version >= PROTOCOLS_FROM and (body["protocol_type"] is None or body["protocol_name"] is None):
        return _body(Synced(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    if not body["group_id"]:
        return _body(Synced(ErrorCode.INVALID_GROUP_ID))
    try:
        coordinator = broker.groups.coordinator_of(body["group_id"])
    except NotCoordinatorError as error:
        return _body(Synced(error.code))
    answer = await coordinator.ask(body["group_id"], lambda request_id: _event(request_id, body))
    assert isinstance(answer, Synced)
    return _body(answer)


def _event(request_id: int, body: Body) -> SyncGroup:
    return SyncGroup(
        request_id,
        body["member_id"],
        body["group_instance_id"],
        body["generation_id"],
        body["protocol_type"],
        body["protocol_name"],
        tuple((entry["member_id"], bytes(entry["assignment"])) for entry in body["assignments"]),
    )


def _body(answer: Synced) -> Body:
    return {
        "error_code": answer.error,
        "protocol_type": answer.protocol_type,
        "protocol_name": answer.protocol,
        "assignment": answer.assignment,
    }
