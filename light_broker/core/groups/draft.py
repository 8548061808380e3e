"""A decision in the making: the group as changed so far, and its effects."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from kafka_wire import ErrorCode
from light_broker.core.groups import transitions
from light_broker.core.groups.effects import Answer, Append, Effect, Joined, Noted, Reply, StartTimer, StopTimer, Synced
from light_broker.core.groups.events import SessionExpired, Stored, Timer
from light_broker.core.groups.records import GroupRecord
from light_broker.core.groups.settings import GroupSettings
from light_broker.core.groups.states import CompletingRebalance, Group, Member, Stable, State


class Draft:
    """A group, changed step by step by one decision at `now_ms`, the time of day."""

    def __init__(self, group: Group, settings: GroupSettings, now_ms: int) -> None:
        self.group = group
        self.settings = settings
        self.now_ms = now_ms
        self.effects: list[Effect] = []

    # Effects

    def reply(self, request_id: int, answer: Answer, *, is_stored: bool = False) -> None:
        """Answer a request."""
        self.effects.append(Reply(request_id, answer, is_stored))

    def append(self, record: GroupRecord, then: Stored) -> None:
        """Append a record; its result comes back as `then`."""
        self.effects.append(Append(record, then))

    def start_timer(self, timer: Timer, delay_ms: int) -> None:
        """Start a timer, or start it again."""
        self.effects.append(StartTimer(timer, delay_ms))

    def stop_timer(self, timer: Timer) -> None:
        """Stop a timer, if it runs."""
        self.effects.append(StopTimer(timer))

    def note(self, message: str, **values: object) -> None:
        """Log a change of this group."""
        self.effects.append(Noted(message, {"group_id": self.group.id, **values}))

    # State and members

    def move_to(self, state: State) -> None:
        """Make a transition."""
        transitions.check(self.group.state, state)
        self.group = replace(self.group, state=state, state_since_ms=self.now_ms)

    def put(self, member: Member) -> None:
        """Add a member, or replace it; the first one sets the protocol type and leads."""
        group = self.group
        self.group = replace(
            group,
            protocol_type=group.protocol_type if group.members else member.protocol_type,
            leader=member.id if group.leader is None else group.leader,
            members={**group.members, member.id: member},
            static_members=group.static_members
            if member.instance_id is None
            else {**group.static_members, member.instance_id: member.id},
            pending_members=group.pending_members - {member.id},
        )

    def remove(self, member_ids: Collection[str]) -> None:
        """Remove members, or ids that were given out, with all that is known of them. The next member leads instead of a removed leader.

        Requests of them that wait must have been answered.
        """
        group = self.group
        members = {member_id: member for member_id, member in group.members.items() if member_id not in member_ids}
        self.group = replace(
            group,
            members=members,
            static_members={
                instance_id: known for instance_id, known in group.static_members.items() if known not in member_ids
            },
            pending_members=group.pending_members.difference(member_ids),
            leader=next(iter(members), None) if group.leader in member_ids else group.leader,
            state=_without_pending_sync(group.state, member_ids),
        )

    def restart_session(self, member_id: str) -> None:
        """Note a sign of life of a member: its session timeout starts again."""
        self.start_timer(SessionExpired(member_id), self.group.members[member_id].session_timeout_ms)

    # Requests that wait

    def wait_for_join(self, member_id: str, request_id: int) -> None:
        """Let a JoinGroup wait. An older one of the member is answered, so that its client joins again if it still waits.

        Kafka forgets the older one: its connection serves one request at a time, so that the client must have given it up.
        """
        self.answer_join(member_id, Joined(ErrorCode.REBALANCE_IN_PROGRESS, member_id))
        self.group = replace(self.group, joins={**self.group.joins, member_id: request_id})

    def wait_for_sync(self, member_id: str, request_id: int) -> None:
        """Let a SyncGroup wait, in the same way."""
        self.answer_sync(member_id, Synced(ErrorCode.REBALANCE_IN_PROGRESS))
        self.group = replace(self.group, syncs={**self.group.syncs, member_id: request_id})

    def answer_join(self, member_id: str, answer: Joined) -> None:
        """Answer the JoinGroup of a member, if one waits."""
        self.answer_joins({member_id: answer})

    def answer_joins(self, answers: Mapping[str, Joined]) -> None:
        """Answer the JoinGroup of each of these members for which one waits."""
        if not self.group.joins.keys().isdisjoint(answers):
            self.group = replace(self.group, joins=self._answered(self.group.joins, answers))

    def answer_sync(self, member_id: str, answer: Synced) -> None:
        """Answer the SyncGroup of a member, if one waits."""
        self.answer_syncs({member_id: answer})

    def answer_syncs(self, answers: Mapping[str, Synced]) -> None:
        """Answer the SyncGroup of each of these members for which one waits."""
        if not self.group.syncs.keys().isdisjoint(answers):
            self.group = replace(self.group, syncs=self._answered(self.group.syncs, answers))

    def _answered(self, waiting: Mapping[str, int], answers: Mapping[str, Answer]) -> dict[str, int]:
        """Answer the requests of these members, and return the others that wait."""
        for member_id, answer in answers.items():
            if member_id in waiting:
                self.reply(waiting[member_id], answer)
        return {member_id: request_id for member_id, request_id in waiting.items() if member_id not in answers}


def _without_pending_sync(state: State, member_ids: Collection[str]) -> State:
    """Return a state in which no SyncGroup of these members is expected."""
    if isinstance(state, CompletingRebalance | Stable) and not state.pending_sync.isdisjoint(member_ids):
        return replace(state, pending_sync=state.pending_sync.difference(member_ids))
    return state
