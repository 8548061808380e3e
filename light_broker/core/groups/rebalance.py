"""Rebalances: their start, the end of the join phase, assignments, and the removal of members.

Source: GroupMetadataManager (prepareRebalance, completeClassicGroupJoin, expirePendingSync and the functions around them).
"""

from collections.abc import Collection
from dataclasses import replace

from kafka_wire import ErrorCode
from light_broker.core.groups.draft import Draft
from light_broker.core.groups.effects import Joined, Synced
from light_broker.core.groups.events import EmptyGenerationStored, JoinTimedOut, SessionExpired, SyncTimedOut
from light_broker.core.groups.membership import select_protocol
from light_broker.core.groups.records import generation_of
from light_broker.core.groups.states import (
    CompletingRebalance,
    Empty,
    Group,
    InitialDelay,
    Member,
    PreparingRebalance,
    Stable,
)
from light_broker.core.groups.subscriptions import subscribed_topics
from light_broker.core.groups.transitions import REBALANCES_FROM


def rebalance_or_complete(draft: Draft, reason: str) -> None:
    """Begin a rebalance; if one is under way, complete it when all members have joined."""
    if type(draft.group.state) in REBALANCES_FROM:
        prepare(draft, reason)
    else:
        complete_if_all_joined(draft)


def prepare(draft: Draft, reason: str) -> None:
    """Begin a rebalance: members join again, and those that wait for assignments are sent back to join."""
    if isinstance(draft.group.state, CompletingRebalance):
        reset_assignments(draft, ErrorCode.REBALANCE_IN_PROGRESS)
    draft.stop_timer(SyncTimedOut())
    before, generation = draft.group.state_name, draft.group.generation
    if isinstance(draft.group.state, Empty):
        delay_ms = draft.settings.initial_rebalance_delay_ms
        remaining_ms = max(draft.group.rebalance_timeout_ms - delay_ms, 0)
        draft.move_to(PreparingRebalance(InitialDelay(delay_ms, remaining_ms)))
        draft.start_timer(JoinTimedOut(), delay_ms)
        draft.note("Preparing to rebalance a group", state=before, generation=generation, reason=reason)
        return
    draft.move_to(PreparingRebalance())
    draft.note("Preparing to rebalance a group", state=before, generation=generation, reason=reason)
    if draft.group.has_all_joined:
        complete(draft)
    else:
        draft.start_timer(JoinTimedOut(), draft.group.rebalance_timeout_ms)


def complete_if_all_joined(draft: Draft) -> None:
    """Complete the rebalance when all members have joined. The first rebalance of a group always waits for its delay."""
    state = draft.group.state
    if isinstance(state, PreparingRebalance) and state.initial is None and draft.group.has_all_joined:
        complete(draft)


def join_timed_out(draft: Draft) -> None:
    """End the wait for members; the first rebalance is delayed further while new members join."""
    state = draft.group.state
    if not isinstance(state, PreparingRebalance):
        return
    initial = state.initial
    if initial is None or not initial.has_new_member or initial.remaining_ms == 0:
        complete(draft)
        return
    delay_ms = min(draft.settings.initial_rebalance_delay_ms, initial.remaining_ms)
    remaining_ms = max(initial.remaining_ms - initial.delay_ms, 0)
    draft.group = replace(draft.group, state=PreparingRebalance(InitialDelay(delay_ms, remaining_ms)))
    draft.start_timer(JoinTimedOut(), delay_ms)


def complete(draft: Draft) -> None:
    """End the join phase: the members that joined form the next generation; a group without members is stored as empty."""
    draft.stop_timer(JoinTimedOut())
    _remove_absent(draft)
    if draft.group.members and not _elect_joined_leader(draft):
        # Only static members are left, and none has joined: their sessions decide.
        draft.note("No member joined again; waiting for the sessions of static members")
        _stop_extending(draft)
        draft.start_timer(JoinTimedOut(), draft.group.rebalance_timeout_ms)
        return
    draft.group = replace(draft.group, generation=draft.group.generation + 1)
    if draft.group.members:
        _begin_generation(draft)
    else:
        _begin_empty_generation(draft)


def _remove_absent(draft: Draft) -> None:
    """Remove the members that have not joined again, except static ones, which may take the time of their session (KIP-345)."""
    group = draft.group
    absent = [
        member.id for member in group.members.values() if member.instance_id is None and member.id not in group.joins
    ]
    if absent:
        drop(draft, absent)
        draft.note("Removed members that did not join again", members=len(absent))


def _elect_joined_leader(draft: Draft) -> bool:
    """Make a member lead that has joined; return whether there is one."""
    group = draft.group
    if group.leader in group.joins:
        return True
    joined = next((member_id for member_id in group.members if member_id in group.joins), None)
    if joined is None:
        return False
    draft.note("Elected another leader of a group: the previous one did not join again", member=joined)
    draft.group = replace(group, leader=joined)
    return True


def _stop_extending(draft: Draft) -> None:
    state = draft.group.state
    if isinstance(state, PreparingRebalance) and state.initial is not None:
        draft.group = replace(draft.group, state=PreparingRebalance(replace(state.initial, remaining_ms=0)))


def _begin_generation(draft: Draft) -> None:
    group = draft.group
    group = replace(group, protocol=select_protocol(group.members.values()))
    draft.group = replace(group, subscribed_topics=subscribed_topics(group))
    draft.move_to(CompletingRebalance(frozenset(group.members)))
    draft.note(
        "Began a generation of a group",
        generation=group.generation,
        members=len(group.members),
        protocol=group.protocol,
        leader=group.leader,
    )
    draft.answer_joins({member_id: joined_generation(draft.group, member_id) for member_id in group.members})
    for member_id in group.members:
        draft.restart_session(member_id)
    settled = {member.id: replace(member, is_new=False) for member in group.members.values() if member.is_new}
    draft.group = replace(draft.group, members={**group.members, **settled})
    draft.start_timer(SyncTimedOut(), draft.group.rebalance_timeout_ms)


def _begin_empty_generation(draft: Draft) -> None:
    group = replace(draft.group, protocol=None)
    draft.group = replace(group, subscribed_topics=subscribed_topics(group))
    draft.move_to(Empty())
    draft.note("A group is empty", generation=group.generation)
    draft.append(generation_of(draft.group, {}), EmptyGenerationStored())


def joined_generation(group: Group, member_id: str) -> Joined:
    """Return the answer to JoinGroup in the current generation; only the leader gets the members."""
    return Joined(
        member_id=member_id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader or "",
        members=members_for_leader(group) if group.leader == member_id else (),
    )


def members_for_leader(group: Group) -> tuple[tuple[str, str | None, bytes], ...]:
    """Return what the leader needs of the members for its assignment."""
    return tuple(
        (member.id, member.instance_id, member.metadata(group.protocol or "")) for member in group.members.values()
    )


# Assignments


def set_assignments(draft: Draft, assignments: dict[str, bytes]) -> None:
    """Give the members their assignments, empty ones where the leader gave none, and answer their SyncGroup."""
    members = {
        member.id: replace(member, assignment=assignments.get(member.id, b""))
        for member in draft.group.members.values()
    }
    group = draft.group = replace(draft.group, members=members)
    _answer_syncs(
        draft,
        {
            member.id: Synced(protocol_type=group.protocol_type, protocol=group.protocol, assignment=member.assignment)
            for member in members.values()
        },
    )


def reset_assignments(draft: Draft, error: ErrorCode) -> None:
    """Take back the assignments, and answer SyncGroup with an error."""
    members = {member.id: replace(member, assignment=b"") for member in draft.group.members.values()}
    draft.group = replace(draft.group, members=members)
    _answer_syncs(draft, dict.fromkeys(members, Synced(error)))


def _answer_syncs(draft: Draft, answers: dict[str, Synced]) -> None:
    """Answer SyncGroup. The sessions of these members start again: they end without effect while a SyncGroup waits."""
    waiting = draft.group.syncs
    draft.answer_syncs(answers)
    for member_id in waiting:
        draft.restart_session(member_id)


def sync_timed_out(draft: Draft) -> None:
    """Remove the members that have not sent SyncGroup in time (KAFKA-12984), and begin a rebalance."""
    state = draft.group.state
    if not isinstance(state, CompletingRebalance | Stable) or not state.pending_sync:
        return
    drop(draft, sorted(state.pending_sync))
    prepare(draft, f"{len(state.pending_sync)} members did not send SyncGroup in time")


# Removal


def session_expired(draft: Draft, member_id: str) -> None:
    """Remove a member that has not been heard of, or a member id that was given out and not used."""
    group = draft.group
    if member_id in group.pending_members:
        draft.remove([member_id])
        complete_after_removal(draft)
    elif member_id in group.members and not _is_heard(group, group.members[member_id]):
        draft.note("Removed a member whose session expired", member=member_id)
        drop(draft, [member_id])
        if isinstance(draft.group.state, Stable | CompletingRebalance):
            prepare(draft, f"The session of member {member_id} expired")
        else:
            complete_after_removal(draft)


def _is_heard(group: Group, member: Member) -> bool:
    """Return whether a request of the member waits, which proves that it lives. A new member must be in a generation first."""
    return not member.is_new and (member.id in group.joins or member.id in group.syncs)


def drop(draft: Draft, member_ids: Collection[str]) -> None:
    """Remove members; their requests that wait are answered, so that a client that is still there joins as a new member."""
    for member_id in member_ids:
        draft.stop_timer(SessionExpired(member_id))
    draft.answer_joins(dict.fromkeys(member_ids, Joined(ErrorCode.UNKNOWN_MEMBER_ID)))
    draft.answer_syncs(dict.fromkeys(member_ids, Synced(ErrorCode.UNKNOWN_MEMBER_ID)))
    draft.remove(member_ids)


def complete_after_removal(draft: Draft) -> None:
    """Complete the join phase if only the removed member was missing, also the first one of a group."""
    if isinstance(draft.group.state, PreparingRebalance) and draft.group.has_all_joined:
        complete(draft)
