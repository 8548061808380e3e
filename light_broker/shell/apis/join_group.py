"""JoinGroup: a client becomes a member of a group. Source: KafkaApis.handleJoinGroupRequest, JoinGroupRequest, JoinGroupResponse.

Every request of a member needs READ on the group, which is checked before its handler.
"""

import uuid

from kafka_node.authorization.guard import java_host
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
from light_broker.core.groups.effects import Joined
from light_broker.core.groups.events import JoinGroup
from light_broker.core.groups.states import Protocol
from light_broker.shell.broker import Broker
from light_broker.shell.groups.coordinators import NotCoordinatorError

VERSIONS = (0, 9)

REBALANCE_TIMEOUT_FROM = 1
KNOWN_MEMBER_ID_FROM = 4
NULL_PROTOCOL_FROM = 7
SKIP_ASSIGNMENT_FROM = 9


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Let a client join; the answer waits for the end of the rebalance."""
    if not body["group_id"]:
        return _body(Joined(ErrorCode.INVALID_GROUP_ID, body["member_id"]), context.api_version)
    try:
        coordinator = broker.groups.coordinator_of(body["group_id"])
    except NotCoordinatorError as error:
        return _body(Joined(error.code), context.api_version)
    answer = await coordinator.ask(body["group_id"], lambda request_id: _event(request_id, context, body))
    assert isinstance(answer, Joined)
    return _body(answer, context.api_version)


def _event(request_id: int, context: RequestContext, body: Body) -> JoinGroup:
    version = context.api_version
    session_timeout_ms = body["session_timeout_ms"]
    return JoinGroup(
        request_id,
        body["group_id"],
        body["member_id"],
        body["group_instance_id"],
        context.client_id or "",
        f"/{java_host(context.peer_host)}",
        session_timeout_ms,
        body["rebalance_timeout_ms"] if version >= REBALANCE_TIMEOUT_FROM else session_timeout_ms,
        body["protocol_type"],
        # The bytes outlive the frame, of which a large one is a view.
        tuple(Protocol(protocol["name"], bytes(protocol["metadata"])) for protocol in body["protocols"]),
        str(uuid.uuid4()),
        version >= KNOWN_MEMBER_ID_FROM,
        version >= SKIP_ASSIGNMENT_FROM,
        body["reason"],
    )


def _body(answer: Joined, version: int) -> Body:
    protocol = answer.protocol or ("" if version < NULL_PROTOCOL_FROM else None)
    response: Body = {
        "error_code": answer.error,
        "generation_id": answer.generation,
        "protocol_type": answer.protocol_type,
        "protocol_name": protocol,
        "leader": answer.leader,
        "member_id": answer.member_id,
        "members": [
            {"member_id": member_id, "group_instance_id": instance_id, "metadata": metadata}
            for member_id, instance_id, metadata in answer.members
        ],
    }
    if answer.skip_assignment:
        response["skip_assignment"] = True
    return response
