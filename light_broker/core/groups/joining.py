"""JoinGroup: new members, members that join again, and static members that come back with another id.

Source: GroupMetadataManager.classicGroupJoinToClassicGroup and the functions that it calls.
"""

from dataclasses import replace

from kafka_wire import ErrorCode
from light_broker.core.groups.draft import Draft
from light_broker.core.groups.effects import Joined, Synced
from light_broker.core.groups.events import UNKNOWN_MEMBER, JoinGroup, SessionExpired, StaticMemberStored
from light_broker.core.groups.membership import accepts, select_protocol, supports, validate_member
from light_broker.core.groups.rebalance import (
    complete_if_all_joined,
    drop,
    joined_generation,
    members_for_leader,
    prepare,
    rebalance_or_complete,
)
from light_broker.core.groups.records import generation_of
from light_broker.core.groups.settings import MAX_PENDING_MEMBERS, NEW_MEMBER_JOIN_TIMEOUT_MS
from light_broker.core.groups.states import CompletingRebalance, Member, PreparingRebalance, Stable

MAX_ID_PREFIX = 255
"""Characters of the client's name in its member id. Kafka has no limit: a longer id than 32,767 bytes fits into no response."""


def join(draft: Draft, event: JoinGroup) -> None:
    """Let a client join the group, or answer why it cannot."""
    group = draft.group
    if not accepts(group, event.member_id, draft.settings.max_size):
        if event.member_id != UNKNOWN_MEMBER:
            drop(draft, [event.member_id])
            complete_if_all_joined(draft)
        draft.reply(event.request_id, Joined(ErrorCode.GROUP_MAX_SIZE_REACHED))
    elif not supports(group, event.protocol_type, event.protocols):
        draft.reply(event.request_id, Joined(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, event.member_id))
    elif event.member_id == UNKNOWN_MEMBER:
        _join_new(draft, event)
    elif event.member_id in group.pending_members:
        if event.instance_id is not None:
            # Static members get no id in advance: the client mixes up two members.
            draft.reply(event.request_id, Joined(ErrorCode.UNKNOWN_SERVER_ERROR))
        else:
            _add(draft, event, event.member_id)
    else:
        error = validate_member(group, event.member_id, event.instance_id)
        if error:
            draft.reply(event.request_id, Joined(error, event.member_id))
        else:
            _join_again(draft, event)


def _join_new(draft: Draft, event: JoinGroup) -> None:
    group = draft.group
    prefix = event.client_id if event.instance_id is None else event.instance_id
    member_id = f"{prefix[:MAX_ID_PREFIX]}-{event.random_id}"
    if event.instance_id is not None:
        known = group.static_members.get(event.instance_id)
        if known is None:
            _add(draft, event, member_id)
        else:
            _replace_static(draft, event, group.members[known], member_id)
    elif not event.needs_known_member_id:
        _add(draft, event, member_id)
    elif len(group.pending_members) >= MAX_PENDING_MEMBERS:
        draft.reply(event.request_id, Joined(ErrorCode.REBALANCE_IN_PROGRESS))
    else:
        draft.group = replace(group, pending_members=group.pending_members | {member_id})
        draft.start_timer(SessionExpired(member_id), event.session_timeout_ms)
        draft.reply(event.request_id, Joined(ErrorCode.MEMBER_ID_REQUIRED, member_id))


def _add(draft: Draft, event: JoinGroup, member_id: str) -> None:
    """Add a member."""
    draft.put(
        Member(
            member_id,
            event.instance_id,
            event.client_id,
            event.client_host,
            event.rebalance_timeout_ms,
            event.session_timeout_ms,
            event.protocol_type,
            event.protocols,
            is_new=True,
        )
    )
    draft.wait_for_join(member_id, event.request_id)
    state = draft.group.state
    if isinstance(state, PreparingRebalance) and state.initial is not None:
        extended = PreparingRebalance(replace(state.initial, has_new_member=True))
        draft.group = replace(draft.group, state=extended)
    # A client that sends no second request, because it has gone, must not stay a member.
    draft.start_timer(SessionExpired(member_id), NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete(draft, f"Member {member_id} joins; client reason: {_reason(event)}")


def _join_again(draft: Draft, event: JoinGroup) -> None:
    """Let a member join again. Without a change the answer is that of the current generation."""
    group = draft.group
    member = group.members[event.member_id]
    changed = member.protocols != event.protocols
    match group.state:
        case PreparingRebalance():
            _update(draft, member, event, f"Member {member.id} joins during the rebalance")
        case CompletingRebalance() if changed:
            _update(draft, member, event, f"Member {member.id} changed its protocols")
        case Stable() if group.leader == member.id:
            # The leader may have seen a change that its metadata does not contain, such as a topic with more partitions.
            _update(draft, member, event, f"The leader {member.id} joins again")
        case Stable() if changed:
            _update(draft, member, event, f"Member {member.id} changed its protocols")
        case CompletingRebalance() | Stable():
            draft.reply(event.request_id, joined_generation(group, member.id))
        case _:
            draft.reply(event.request_id, Joined(ErrorCode.UNKNOWN_MEMBER_ID, member.id))


def _update(draft: Draft, member: Member, event: JoinGroup, reason: str) -> None:
    draft.put(_updated(member, event))
    draft.wait_for_join(member.id, event.request_id)
    rebalance_or_complete(draft, f"{reason}; client reason: {_reason(event)}")


def _updated(member: Member, event: JoinGroup) -> Member:
    return replace(
        member,
        protocols=event.protocols,
        rebalance_timeout_ms=event.rebalance_timeout_ms,
        session_timeout_ms=event.session_timeout_ms,
    )


def _reason(event: JoinGroup) -> str:
    return event.reason or "not provided"


# Static members (KIP-345)


def _replace_static(draft: Draft, event: JoinGroup, old: Member, member_id: str) -> None:
    """Give a static member that comes back a new id; requests under the old id that wait are fenced.

    In a stable group whose protocol stays the same there is no rebalance: the new id is stored, and the member gets its old assignment.
    """
    leader = draft.group.leader
    _rename(draft, old, member_id)
    renamed = draft.group.members[member_id]
    draft.put(_updated(renamed, event))
    draft.wait_for_join(member_id, event.request_id)
    # The session of the member as it was: the new timeout counts from its next sign of life.
    draft.start_timer(SessionExpired(member_id), old.session_timeout_ms)
    group = draft.group
    match group.state:
        case Stable() if group.protocol == select_protocol(group.members.values()):
            assignments = {member.id: member.assignment for member in group.members.values()}
            draft.append(
                generation_of(group, assignments),
                StaticMemberStored(event.request_id, member_id, old, leader, event.can_skip_assignment),
            )
        case Stable():
            prepare(draft, f"Static member {member_id} changes the group's protocol; client reason: {_reason(event)}")
        case CompletingRebalance():
            # The leader may be assigning to the old id.
            prepare(draft, f"Static member {member_id} came back; client reason: {_reason(event)}")
        case _:
            complete_if_all_joined(draft)


def _rename(draft: Draft, old: Member, member_id: str) -> None:
    """Replace a member's id; requests under the old id that wait are answered with FENCED_INSTANCE_ID."""
    draft.answer_join(old.id, Joined(ErrorCode.FENCED_INSTANCE_ID, old.id))
    draft.answer_sync(old.id, Synced(ErrorCode.FENCED_INSTANCE_ID))
    group = draft.group
    renamed = {member_id: replace(old, id=member_id)}
    draft.group = replace(
        group,
        members={member_id: member for member_id, member in group.members.items() if member_id != old.id} | renamed,
        static_members={**group.static_members, str(old.instance_id): member_id},
        leader=member_id if group.leader == old.id else group.leader,
    )


def static_member_stored(draft: Draft, event: StaticMemberStored) -> None:
    """Answer the static member with its assignment's generation, or take its new id back if it could not be stored.

    If a rebalance began in the meantime, its end answers the member and stores it.
    """
    group = draft.group
    if group.joins.get(event.member_id) != event.request_id or not isinstance(group.state, Stable):
        return
    if event.error:
        draft.note("Could not store a static member's new id", member=event.member_id, error=event.error.name)
        refused = replace(
            joined_generation(group, event.member_id),
            error=event.error,
            member_id=UNKNOWN_MEMBER,
            leader=event.leader or "",
            members=(),
        )
        draft.answer_join(event.member_id, refused)
        draft.put(replace(event.replaced, id=event.member_id))
        _rename(draft, draft.group.members[event.member_id], event.replaced.id)
        draft.restart_session(event.replaced.id)
        return
    # Its session may have ended without effect while it waited.
    draft.restart_session(event.member_id)
    answer = joined_generation(group, event.member_id)
    if event.can_skip_assignment:
        is_leader = group.leader == event.member_id
        answer = replace(answer, skip_assignment=is_leader, members=members_for_leader(group) if is_leader else ())
    else:
        # The old leader's id keeps a client that does not know of skipped assignments from assigning again.
        answer = replace(answer, leader=event.leader or "", members=())
    draft.answer_join(event.member_id, answer)
