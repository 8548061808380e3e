"""Rules on the members of a group: admission, validation, and the choice of the protocol.

Source: ClassicGroup (supportsProtocols, selectProtocol, validateMember) and GroupMetadataManager.acceptJoiningMember.
"""

from collections import Counter
from collections.abc import Iterable

from kafka_wire import ErrorCode
from light_broker.core.groups.states import (
    CompletingRebalance,
    Dead,
    Empty,
    Group,
    Member,
    PreparingRebalance,
    Protocol,
    Stable,
)


def validate_member(group: Group, member_id: str, instance_id: str | None) -> ErrorCode:
    """Return NONE where a member id, and its instance id if there is one, belong to a member; else why not.

    Another member id of a static member is FENCED_INSTANCE_ID: a newer client has its instance id.
    """
    if instance_id is not None:
        known = group.static_members.get(instance_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if known != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def accepts(group: Group, member_id: str, max_size: int) -> bool:
    """Return whether group.max.size lets a client join.

    While members join, those that wait count, so that a group that is over a lowered limit shrinks to it.
    """
    match group.state:
        case Empty() | Dead():
            return True
        case PreparingRebalance():
            return member_id in group.joins or len(group.joins) < max_size
        case CompletingRebalance() | Stable():
            return member_id in group.members or len(group.members) < max_size


def supports(group: Group, protocol_type: str, protocols: Iterable[Protocol]) -> bool:
    """Return whether one of the protocols is supported by all members, and the type is the group's."""
    names = {protocol.name for protocol in protocols}
    if isinstance(group.state, Empty):
        return bool(protocol_type and names)
    return group.protocol_type == protocol_type and bool(names & common_protocols(group.members.values(), names))


def common_protocols(members: Iterable[Member], names: set[str] | None = None) -> set[str]:
    """Return the protocols that all members support; of `names`, if they are given."""
    common = names
    for member in members:
        supported = {protocol.name for protocol in member.protocols}
        common = supported if common is None else common & supported
    return common or set()


def select_protocol(members: Iterable[Member]) -> str:
    """Return the protocol with the most votes: each member votes for the one it prefers among those that all support.

    >>> range_, sticky = Protocol("range", b""), Protocol("sticky", b"")
    >>> def member(id, *protocols):
    ...     return Member(id, None, "", "", 0, 0, "consumer", protocols)
    >>> select_protocol([member("a", range_, sticky), member("b", sticky, range_), member("c", sticky, range_)])
    'sticky'
    """
    members = tuple(members)
    candidates = common_protocols(members)
    votes = Counter(
        next(protocol.name for protocol in member.protocols if protocol.name in candidates) for member in members
    )
    return votes.most_common(1)[0][0]
