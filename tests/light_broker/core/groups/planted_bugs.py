"""Bugs that are planted one at a time: the laws of the schedules must find each, or they would not find a real one."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from kafka_wire import ErrorCode
from light_broker.core.groups import decide as decisions
from light_broker.core.groups import joining, leaving, rebalance, shard, syncing
from light_broker.core.groups.draft import Draft
from light_broker.core.groups.effects import Append, Reply
from light_broker.core.groups.events import AssignmentStored, Loaded, SyncGroup, Unloaded
from light_broker.core.groups.offsets import CommittedOffsets
from light_broker.core.groups.records import OffsetRecord
from light_broker.core.groups.shard import Shard, Write

Plant = Callable[[pytest.MonkeyPatch], None]


def visible_before_replication(patch: pytest.MonkeyPatch) -> None:
    """An offset is visible as soon as it is appended."""
    plain = Shard.begin

    def begin(self: Shard, records: Any, *, deleted: Any = ()) -> Write:
        for record in records:
            if isinstance(record, OffsetRecord):
                self._apply(10**9, record)
        return plain(self, records, deleted=deleted)

    patch.setattr(Shard, "begin", begin)


def applied_in_the_order_of_results(patch: pytest.MonkeyPatch) -> None:
    """A write is applied when its append ends, not in the order of the log."""

    def finish(self: Shard, write: Write, error: ErrorCode, base_offset: int = -1) -> tuple[Write, ...]:
        write.error, write.base_offset = error, base_offset
        if error == ErrorCode.NONE:
            write.is_applied = True
            for index, record in enumerate(write.records):
                self._apply(base_offset + index, record)
        self.pending.remove(write)
        return (write,)

    patch.setattr(Shard, "finish", finish)


def refused_appends_count(patch: pytest.MonkeyPatch) -> None:
    """A refused append is taken for one that is in the log."""
    patch.setattr(shard, "IN_LOG", {error for error in ErrorCode if error})


def offsets_above_the_high_watermark_are_loaded(patch: pytest.MonkeyPatch) -> None:
    """A new coordinator shows what may be lost."""
    plain = Shard._replay

    def replay(self: Shard, offset: int, record: Any, **_: bool) -> None:
        plain(self, offset, record, is_committed=True)

    patch.setattr(Shard, "_replay", replay)


def tombstones_and_commits_do_not_replace(patch: pytest.MonkeyPatch) -> None:
    """The first offset stays."""
    plain = CommittedOffsets._put

    def put(self: CommittedOffsets, place: Any, commit: Any) -> None:
        if self.get(*place) is None or commit.value.offset % 5:
            plain(self, place, commit)

    patch.setattr(CommittedOffsets, "_put", put)


def older_joins_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A second JoinGroup of a member replaces the first, which is never answered."""

    def wait_for_join(self: Draft, member_id: str, request_id: int) -> None:
        self.group = replace(self.group, joins={**self.group.joins, member_id: request_id})

    patch.setattr(Draft, "wait_for_join", wait_for_join)


def joins_of_removed_members_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A member that is removed while its JoinGroup waits is never answered."""

    def drop(draft: Draft, member_ids: Any) -> None:
        draft.group = replace(
            draft.group,
            joins={
                member_id: waiting for member_id, waiting in draft.group.joins.items() if member_id not in member_ids
            },
            syncs={
                member_id: waiting for member_id, waiting in draft.group.syncs.items() if member_id not in member_ids
            },
        )
        draft.remove(member_ids)

    patch.setattr(rebalance, "drop", drop)
    patch.setattr(leaving, "drop", drop)


def joins_are_answered_twice(patch: pytest.MonkeyPatch) -> None:
    """An answered JoinGroup still waits."""

    def answer_joins(self: Draft, answers: Any) -> None:
        for member_id, answer in answers.items():
            if member_id in self.group.joins:
                self.reply(self.group.joins[member_id], answer)

    patch.setattr(Draft, "answer_joins", answer_joins)


def unloaded_groups_forget_their_requests(patch: pytest.MonkeyPatch) -> None:
    """Another coordinator takes over, and requests that wait are not answered."""
    plain = decisions.decide

    def decide(group: Any, event: Any, **rest: Any) -> Any:
        decision = plain(group, event, **rest)
        return replace(decision, effects=()) if isinstance(event, Unloaded) else decision

    patch.setattr(shard, "decide", decide)


def every_member_assigns(patch: pytest.MonkeyPatch) -> None:
    """The assignments of any member are stored."""
    plain = syncing.sync

    def sync(draft: Draft, event: SyncGroup) -> None:
        leader = draft.group.leader
        if event.member_id in draft.group.members:
            draft.group = replace(draft.group, leader=event.member_id)
        plain(draft, event)
        draft.group = replace(draft.group, leader=leader)

    patch.setattr(decisions, "sync", sync)


def assignments_of_older_generations_count(patch: pytest.MonkeyPatch) -> None:
    """The generation is not compared when assignments are stored."""
    plain = syncing.assignment_stored

    def stored(draft: Draft, event: AssignmentStored) -> None:
        plain(draft, replace(event, generation=draft.group.generation))

    patch.setattr(decisions, "assignment_stored", stored)


def loaded_groups_have_no_sessions(patch: pytest.MonkeyPatch) -> None:
    """Members that were lost during the change of the coordinator stay forever."""
    plain = decisions.decide

    def decide(group: Any, event: Any, **rest: Any) -> Any:
        decision = plain(group, event, **rest)
        return replace(decision, effects=()) if isinstance(event, Loaded) else decision

    patch.setattr(shard, "decide", decide)


def new_members_have_no_timeout(patch: pytest.MonkeyPatch) -> None:
    """A new member that is silent is not removed before it is in a generation."""
    plain = joining._add

    def add(draft: Draft, event: Any, member_id: str) -> None:
        plain(draft, replace(event, session_timeout_ms=10**9), member_id)

    patch.setattr(joining, "_add", add)


def empty_generations_are_not_stored(patch: pytest.MonkeyPatch) -> None:
    """The log keeps the last generation with members."""
    plain = decisions.decide

    def decide(group: Any, event: Any, **rest: Any) -> Any:
        decision = plain(group, event, **rest)
        kept = tuple(
            effect
            for effect in decision.effects
            if not (isinstance(effect, Append) and effect.record.value and effect.record.value.protocol is None)
        )
        assert all(isinstance(effect, Append | Reply) or effect in kept for effect in decision.effects)
        return replace(decision, effects=kept)

    patch.setattr(shard, "decide", decide)


PLANTED: Mapping[str, Plant] = {
    plant.__name__: plant
    for plant in (
        visible_before_replication,
        applied_in_the_order_of_results,
        refused_appends_count,
        offsets_above_the_high_watermark_are_loaded,
        tombstones_and_commits_do_not_replace,
        older_joins_are_forgotten,
        joins_of_removed_members_are_forgotten,
        joins_are_answered_twice,
        unloaded_groups_forget_their_requests,
        every_member_assigns,
        assignments_of_older_generations_count,
        loaded_groups_have_no_sessions,
        new_members_have_no_timeout,
        empty_generations_are_not_stored,
    )
}
