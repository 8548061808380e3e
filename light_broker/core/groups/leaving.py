"""LeaveGroup, and Heartbeat. Source: GroupMetadataManager (classicGroupLeaveToClassicGroup, classicGroupHeartbeatToClassicGroup)."""

from kafka_wire import ErrorCode
from light_broker.core.groups.draft import Draft
from light_broker.core.groups.effects import HeartbeatReceived, Left
from light_broker.core.groups.events import UNKNOWN_MEMBER, Heartbeat, LeaveGroup, Leaver, SessionExpired
from light_broker.core.groups.membership import validate_member
from light_broker.core.groups.rebalance import complete_if_all_joined, drop, prepare
from light_broker.core.groups.states import CompletingRebalance, Dead, Empty, Group, PreparingRebalance, Stable


def leave(draft: Draft, event: LeaveGroup) -> None:
    """Remove members, and begin a rebalance for the others. The answer waits until a group that is empty then is stored so."""
    if isinstance(draft.group.state, Dead):
        draft.reply(event.request_id, Left(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    members = tuple((leaver.member_id, leaver.instance_id, _leave_one(draft, leaver)) for leaver in event.leavers)
    left = sum(error == ErrorCode.NONE for _, _, error in members)
    if left:
        match draft.group.state:
            case Stable() | CompletingRebalance():
                prepare(draft, f"{left} members left")
            case PreparingRebalance():
                complete_if_all_joined(draft)
    draft.reply(event.request_id, Left(members=members), is_stored=True)


def _leave_one(draft: Draft, leaver: Leaver) -> ErrorCode:
    """Remove one member; return why it cannot be removed, or NONE."""
    group = draft.group
    member_id = leaver.member_id
    if member_id == UNKNOWN_MEMBER:
        if leaver.instance_id is None or leaver.instance_id not in group.static_members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = group.static_members[leaver.instance_id]
    elif member_id in group.pending_members:
        draft.stop_timer(SessionExpired(member_id))
        draft.remove([member_id])
        return ErrorCode.NONE
    elif error := validate_member(group, member_id, leaver.instance_id):
        return error
    draft.note("A member left a group", member=member_id, reason=leaver.reason or "not provided")
    drop(draft, [member_id])
    return ErrorCode.NONE


def heartbeat(draft: Draft, event: Heartbeat) -> None:
    """Restart the session of a member, and report a rebalance to it."""
    error = _refusal(draft.group, event)
    if not error:
        draft.restart_session(event.member_id)
        if isinstance(draft.group.state, PreparingRebalance):
            error = ErrorCode.REBALANCE_IN_PROGRESS
    draft.reply(event.request_id, HeartbeatReceived(error))


def _refusal(group: Group, event: Heartbeat) -> ErrorCode:
    if isinstance(group.state, Dead):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error := validate_member(group, event.member_id, event.instance_id):
        return error
    if event.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.UNKNOWN_MEMBER_ID if isinstance(group.state, Empty) else ErrorCode.NONE
