"""Descriptions of groups for DescribeGroups and ListGroups. Source: GroupMetadataManager (describeGroups, listGroups)."""

from collections.abc import Collection
from dataclasses import dataclass

from light_broker.core.groups.states import Group, Member, Stable

CLASSIC = "classic"
"""Type of the groups that this broker serves (Group.GroupType)."""


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member of a described group. Metadata are only shown in a stable group."""

    member: Member
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group for administrators."""

    id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[DescribedMember, ...]


def describe(group: Group) -> DescribedGroup:
    """Describe a group. The protocol is only known to hold for all members of a stable group."""
    protocol = (group.protocol or "") if isinstance(group.state, Stable) else ""
    members = tuple(
        DescribedMember(member, member.metadata(protocol) if protocol else b"", member.assignment)
        for member in group.members.values()
    )
    return DescribedGroup(group.id, group.state_name, group.protocol_type or "", protocol, members)


def is_listed(group: Group, states: Collection[str], types: Collection[str]) -> bool:
    """Return whether a group passes the filters of ListGroups, which ignore case; an empty filter lets all groups pass.

    >>> is_listed(Group("orders"), ["EMPTY", "Stable"], []), is_listed(Group("orders"), [], ["consumer"])
    (True, False)
    """
    return (not states or group.state_name.lower() in {state.lower().strip() for state in states}) and (
        not types or CLASSIC in {group_type.lower() for group_type in types}
    )
