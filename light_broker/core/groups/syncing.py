"""SyncGroup: the leader's assignments are stored, then each member gets its own.

Source: GroupMetadataManager.classicGroupSyncToClassicGroup.
"""

from dataclasses import replace

from kafka_wire import ErrorCode
from light_broker.core.groups.draft import Draft
from light_broker.core.groups.effects import Synced
from light_broker.core.groups.events import AssignmentStored, SyncGroup, SyncTimedOut
from light_broker.core.groups.membership import validate_member
from light_broker.core.groups.rebalance import rebalance_or_complete, reset_assignments, set_assignments
from light_broker.core.groups.records import generation_of
from light_broker.core.groups.states import CompletingRebalance, Dead, Empty, Group, PreparingRebalance, Stable


def sync(draft: Draft, event: SyncGroup) -> None:
    """Answer with the member's assignment, or wait for it; the leader's assignments are stored."""
    group = draft.group
    error = _refusal(group, event)
    if error:
        draft.reply(event.request_id, Synced(error))
        return
    match group.state:
        case PreparingRebalance():
            draft.reply(event.request_id, Synced(ErrorCode.REBALANCE_IN_PROGRESS))
        case CompletingRebalance():
            _received(draft, event.member_id)
            draft.wait_for_sync(event.member_id, event.request_id)
            if group.leader == event.member_id:
                _store(draft, event)
        case Stable():
            _received(draft, event.member_id)
            assignment = group.members[event.member_id].assignment
            draft.reply(
                event.request_id,
                Synced(protocol_type=group.protocol_type, protocol=group.protocol, assignment=assignment),
            )


def _refusal(group: Group, event: SyncGroup) -> ErrorCode:
    """Return why a SyncGroup is refused, NONE if it is not."""
    if isinstance(group.state, Empty):
        return ErrorCode.UNKNOWN_MEMBER_ID
    if isinstance(group.state, Dead):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error := validate_member(group, event.member_id, event.instance_id):
        return error
    if event.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(event.protocol_type, group.protocol_type) or _differs(event.protocol, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _differs(requested: str | None, known: str | None) -> bool:
    return requested is not None and known is not None and requested != known


def _received(draft: Draft, member_id: str) -> None:
    """Note that a member has sent SyncGroup; the wait for it ends with the last one."""
    state = draft.group.state
    assert isinstance(state, CompletingRebalance | Stable)
    pending = state.pending_sync - {member_id}
    draft.group = replace(draft.group, state=replace(state, pending_sync=pending))
    if not pending:
        draft.stop_timer(SyncTimedOut())


def _store(draft: Draft, event: SyncGroup) -> None:
    group = draft.group
    given = dict(event.assignments)
    without = sum(member_id not in given for member_id in group.members)
    if without:
        draft.note("The leader assigned nothing to some members", generation=group.generation, members=without)
    draft.append(generation_of(group, given), AssignmentStored(group.generation, event.member_id, event.assignments))


def assignment_stored(draft: Draft, event: AssignmentStored) -> None:
    """Give the members their assignments, or begin another rebalance if they could not be stored.

    After a rebalance in the meantime they are worth nothing.
    """
    state = draft.group.state
    if not isinstance(state, CompletingRebalance) or draft.group.generation != event.generation:
        return
    if event.error:
        reset_assignments(draft, event.error)
        rebalance_or_complete(draft, f"The assignments could not be stored ({event.error.name})")
        return
    set_assignments(draft, dict(event.assignments))
    draft.move_to(Stable(state.pending_sync))
