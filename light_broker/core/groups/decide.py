"""Decision on an event of one group: the next group, and the effects that the shell carries out in their order.

    group, event, now ─► decide ─► Decision(group, effects)

A decision reads no clock. Timers and appends are effects; their results come back as events. Source: Kafka's GroupMetadataManager.
"""

from dataclasses import dataclass, replace

from kafka_wire import ErrorCode
from light_broker.core.groups.draft import Draft
from light_broker.core.groups.effects import Answer, Effect, HeartbeatReceived, Joined, Left, Reply, Synced
from light_broker.core.groups.events import (
    UNKNOWN_MEMBER,
    AssignmentStored,
    EmptyGenerationStored,
    Event,
    GroupCreated,
    Heartbeat,
    JoinGroup,
    JoinTimedOut,
    LeaveGroup,
    Loaded,
    Request,
    SessionExpired,
    StaticMemberStored,
    SyncGroup,
    SyncTimedOut,
    Unloaded,
)
from light_broker.core.groups.joining import join, static_member_stored
from light_broker.core.groups.leaving import heartbeat, leave
from light_broker.core.groups.rebalance import join_timed_out, prepare, session_expired, sync_timed_out
from light_broker.core.groups.records import empty_group
from light_broker.core.groups.settings import GroupSettings
from light_broker.core.groups.states import Dead, Group
from light_broker.core.groups.syncing import assignment_stored, sync


@dataclass(frozen=True, slots=True)
class Decision:
    """The group after an event, None if there is none, and the effects."""

    group: Group | None
    effects: tuple[Effect, ...] = ()


def decide(group: Group | None, event: Event, *, now_ms: int, settings: GroupSettings) -> Decision:
    """Decide on an event; `now_ms` is the time of day."""
    if isinstance(event, JoinGroup) and (refused := _refused_timeout(event, settings)):
        return Decision(group, (Reply(event.request_id, refused),))
    if group is None:
        return _without_group(event, now_ms=now_ms, settings=settings)
    if isinstance(group.state, Dead):
        if isinstance(event, Request):
            return Decision(group, (Reply(event.request_id, refusal(event, ErrorCode.COORDINATOR_NOT_AVAILABLE)),))
        return Decision(group)
    draft = Draft(group, settings, now_ms)
    _apply(draft, event)
    return Decision(draft.group, tuple(draft.effects))


def _refused_timeout(event: JoinGroup, settings: GroupSettings) -> Joined | None:
    if settings.min_session_timeout_ms <= event.session_timeout_ms <= settings.max_session_timeout_ms:
        return None
    return Joined(ErrorCode.INVALID_SESSION_TIMEOUT, event.member_id)


def _apply(draft: Draft, event: Event) -> None:
    match event:
        case JoinGroup():
            join(draft, event)
        case SyncGroup():
            sync(draft, event)
        case Heartbeat():
            heartbeat(draft, event)
        case LeaveGroup():
            leave(draft, event)
        case SessionExpired():
            session_expired(draft, event.member_id)
        case JoinTimedOut():
            join_timed_out(draft)
        case SyncTimedOut():
            sync_timed_out(draft)
        case AssignmentStored():
            assignment_stored(draft, event)
        case StaticMemberStored():
            static_member_stored(draft, event)
        case GroupCreated():
            _group_created(draft, event)
        case EmptyGenerationStored():
            _empty_generation_stored(draft, event)
        case Loaded():
            _loaded(draft)
        case Unloaded():
            _end(draft, ErrorCode.NOT_COORDINATOR)


def _without_group(event: Event, *, now_ms: int, settings: GroupSettings) -> Decision:
    """Decide where there is no group: only a new member creates one."""
    if not isinstance(event, Request):
        return Decision(None)
    if not isinstance(event, JoinGroup) or event.member_id != UNKNOWN_MEMBER:
        return Decision(None, (Reply(event.request_id, refusal(event, ErrorCode.UNKNOWN_MEMBER_ID)),))
    group = Group(event.group_id, state_since_ms=now_ms, is_stored=False)
    draft = Draft(group, settings, now_ms)
    join(draft, event)
    if not draft.group.members and not draft.group.pending_members:
        return Decision(None, tuple(draft.effects))  # Refused: a request that cannot join leaves nothing behind.
    draft.append(empty_group(group), GroupCreated())
    return Decision(draft.group, tuple(draft.effects))


def refusal(event: Request, error: ErrorCode) -> Answer:
    """Return the answer to a request that does not reach its group. LeaveGroup reports an unknown group for each member."""
    match event:
        case JoinGroup():
            return Joined(error, event.member_id)
        case SyncGroup():
            return Synced(error)
        case Heartbeat():
            return HeartbeatReceived(error)
        case LeaveGroup() if error == ErrorCode.UNKNOWN_MEMBER_ID:
            return Left(members=tuple((leaver.member_id, leaver.instance_id, error) for leaver in event.leavers))
        case LeaveGroup():
            return Left(error)


def _group_created(draft: Draft, event: GroupCreated) -> None:
    """Show a new group once it is stored; without its record it does not exist."""
    if event.error:
        draft.note("Could not store a new group", error=event.error.name)
        _end(draft, event.error)
    else:
        draft.group = replace(draft.group, is_stored=True)


def _empty_generation_stored(draft: Draft, event: EmptyGenerationStored) -> None:
    """Note an empty generation that could not be stored: after a crash the one before it comes back, and its sessions end."""
    if event.error:
        draft.note("Could not store that a group is empty", error=event.error.name)


def _loaded(draft: Draft) -> None:
    """Start the sessions of a group that was read from the log; one above group.max.size rebalances, to shrink."""
    for member_id in draft.group.members:
        draft.restart_session(member_id)
    if len(draft.group.members) > draft.settings.max_size:
        prepare(draft, f"The loaded group has more than group.max.size ({draft.settings.max_size}) members")


def _end(draft: Draft, error: ErrorCode) -> None:
    """End the group in this process; all requests that wait are answered with an error."""
    draft.answer_joins({member_id: Joined(error, member_id) for member_id in draft.group.joins})
    draft.answer_syncs({member_id: Synced(error) for member_id in draft.group.syncs})
    draft.move_to(Dead())
