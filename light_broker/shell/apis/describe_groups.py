"""DescribeGroups: groups with their members. Source: KafkaApis.handleDescribeGroupsRequest, GroupMetadataManager.describeGroups."""

from kafka_node.authorization.acl import Operation, ResourceType
from kafka_node.authorization.authorized_operations import authorized_operations
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
from light_broker.core.groups.descriptions import DescribedGroup, DescribedMember, describe
from light_broker.shell.broker import Broker
from light_broker.shell.groups.coordinators import NotCoordinatorError

VERSIONS = (0, 6)

MISSING_GROUPS_FROM = 6
"""Version from which on a missing group is an error; before, it is Dead."""


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Describe the groups that the caller may describe."""
    may = broker.may(context)
    groups = []
    for group_id in body["groups"]:
        if not may(Operation.DESCRIBE, ResourceType.GROUP, group_id):
            groups.append(_failed(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
            continue
        described = _described(broker, group_id, context.api_version)
        if body["include_authorized_operations"] and not described.get("error_code"):
            described["authorized_operations"] = authorized_operations(
                ResourceType.GROUP,
                lambda operation, name=group_id: may(operation, ResourceType.GROUP, name, quiet=True),  # type: ignore[misc]
            )
        groups.append(described)
    return {"groups": groups}


def _described(broker: Broker, group_id: str, version: int) -> Body:
    try:
        group = broker.groups.coordinator_of(group_id).group(group_id)
    except NotCoordinatorError as error:
        return _failed(group_id, error.code)
    if group is not None:
        return _group(describe(group))
    if version < MISSING_GROUPS_FROM:
        return {"group_id": group_id, "group_state": "Dead"}
    return {
        "group_id": group_id,
        "group_state": "Dead",
        "error_code": ErrorCode.GROUP_ID_NOT_FOUND,
        "error_message": f"Group {group_id} not found.",
    }


def _failed(group_id: str, error: ErrorCode) -> Body:
    return {"group_id": group_id, "error_code": error}


def _group(group: DescribedGroup) -> Body:
    return {
        "group_id": group.id,
        "group_state": group.state,
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol,
        "members": [_member(member) for member in group.members],
    }


def _member(described: DescribedMember) -> Body:
    member = described.member
    return {
        "member_id": member.id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_metadata": described.metadata,
        "member_assignment": described.assignment,
    }
