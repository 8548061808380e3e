"""Coordinator of the groups of one partition of `__consumer_offsets`: carries out their effects on the log (`writes`) and the clock.

Decisions are made on the loop, and their appends start in the order of the decisions. An answer that depends on an append waits until the high
watermark has passed it. Source: Kafka's CoordinatorRuntime.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from itertools import count

from kafka_wire import ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.groups.commits import (
    FetchedTopic,
    OffsetCommit,
    RequestedTopic,
    commit_records,
    fetch_offsets,
    refuse_commit,
    refuse_deletion_of_group,
    refuse_deletion_of_offsets,
    tombstones,
)
from light_broker.core.groups.decide import refusal
from light_broker.core.groups.effects import Answer, Append, Effect, Noted, Reply, StartTimer, StopTimer
from light_broker.core.groups.events import Event, Loaded, Request, SessionExpired, Stored, Timer
from light_broker.core.groups.records import OffsetRecord
from light_broker.core.groups.settings import GroupSettings
from light_broker.core.groups.shard import Shard, result_of
from light_broker.core.groups.states import Group, PreparingRebalance, Stable
from light_broker.core.groups.timers import Timers
from light_broker.shell.groups.writes import GroupWrites, answer_code
from light_broker.shell.replicas.manager import ReplicaManager

log = logging.getLogger(__name__)

RECORDS_PER_WRITE = 1_000
"""Expired or orphaned offsets that are deleted by one batch: some 100 KiB, far below message.max.bytes."""

GROUPS_PER_STEP = 100
"""Groups that are checked for expiry before the event loop runs other tasks."""


class GroupCoordinator:
    """Groups and offsets of one partition that this broker leads."""

    def __init__(
        self,
        partition: TopicPartition,
        replicas: ReplicaManager,
        settings: GroupSettings,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Begin without groups; `clock` returns the time of day in seconds."""
        self.shard = Shard(settings)
        self._writes = GroupWrites(partition, replicas, self.shard, self._now_ms)
        self._clock = clock
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._timers: Timers[tuple[str, Timer]] = Timers()
        self._alarm: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def _settings(self) -> GroupSettings:
        return self.shard.settings

    def start(self) -> None:
        """Begin to serve the groups that were replayed."""
        for group_id in list(self.shard.groups):
            self._handle(group_id, Loaded())

    def close(self) -> None:
        """End all groups: another broker leads the partition, or the process stops. Requests that wait are answered."""
        self._is_closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        for effect in self.shard.unload(now_ms=self._now_ms()):
            if isinstance(effect, Reply):
                self._answer(effect.request_id, effect.answer)

    # Members

    async def ask(self, group_id: str, make_request: Callable[[int], Request]) -> Answer:
        """Carry out a request of a member; `make_request` gets its number."""
        request_id = next(self._numbers)
        request = make_request(request_id)
        if self._is_closed:
            return refusal(request, ErrorCode.NOT_COORDINATOR)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        try:
            self._handle(group_id, request)
            return await answer
        finally:
            del self._waiting[request_id]

    def _handle(self, group_id: str, event: Event) -> None:
        effects = self.shard.handle(group_id, event, now_ms=self._now_ms())
        self._carry_out(group_id, effects)

    def _carry_out(self, group_id: str, effects: Sequence[Effect]) -> None:
        stored: asyncio.Future[ErrorCode] | None = None
        for effect in effects:
            match effect:
                case Append(record=record, then=then):
                    stored = self._writes.write([record])
                    stored.add_done_callback(self._reporting(group_id, then))
                case Reply(request_id=request_id, answer=answer, is_stored=True) if stored is not None:
                    stored.add_done_callback(self._answering(request_id, answer))
                case Reply(request_id=request_id, answer=answer):
                    self._answer(request_id, answer)
                case StartTimer(timer=timer, delay_ms=delay_ms):
                    self._timers.start((group_id, timer), self._monotonic_ms() + delay_ms)
                case StopTimer(timer=timer):
                    self._timers.stop((group_id, timer))
                case Noted(message=message, values=values):
                    log.info(message, extra=dict(values))
        self._set_alarm()

    def _reporting(self, group_id: str, then: Stored) -> Callable[[asyncio.Future[ErrorCode]], None]:
        def report(outcome: asyncio.Future[ErrorCode]) -> None:
            if not self._is_closed:
                error = outcome.result()
                self._handle(group_id, result_of(then, error, answer_code(error)))

        return report

    def _answering(self, request_id: int, answer: Answer) -> Callable[[asyncio.Future[ErrorCode]], None]:
        def send(outcome: asyncio.Future[ErrorCode]) -> None:
            error = answer_code(outcome.result())
            self._answer(request_id, type(answer)(error) if error else answer)

        return send

    def _answer(self, request_id: int, answer: Answer) -> None:
        """Answer a request, unless its client has gone."""
        waiting = self._waiting.get(request_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    # Timers

    def _set_alarm(self) -> None:
        """Wake up at the next timer."""
        next_ms = self._timers.next_ms
        if next_ms is None or self._is_closed or (self._alarm is not None and self._alarm.when() * 1000 <= next_ms):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_at(next_ms / 1000, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        try:
            while (due := self._timers.pop_due(self._monotonic_ms())) is not None:
                self._handle(*due)
        finally:
            self._set_alarm()

    # Offsets

    async def commit(self, commit: OffsetCommit) -> tuple[ErrorCode, ...]:
        """Commit offsets, and return the error of each partition once they are replicated."""
        self._writes.advance()
        group = self.shard.groups.get(commit.group_id)
        if error := self._refuse_write() or refuse_commit(group, commit):
            return (error,) * len(commit.partitions)
        if group is not None:
            self._restart_session(group, commit.member_id)
        records, errors = commit_records(commit, now_ms=self._now_ms(), settings=self._settings)
        if records and (error := await self._writes.stored(records)):
            return (error,) * len(commit.partitions)
        return errors

    def _restart_session(self, group: Group, member_id: str) -> None:
        """Take a commit for a sign of life, as Kafka does while a member is not expected to send SyncGroup."""
        member = group.members.get(member_id)
        if member is not None and isinstance(group.state, Stable | PreparingRebalance):
            self._carry_out(group.id, [StartTimer(SessionExpired(member_id), member.session_timeout_ms)])

    async def fetch(
        self, group_id: str, topics: Sequence[RequestedTopic] | None, *, require_stable: bool
    ) -> tuple[FetchedTopic, ...] | ErrorCode:
        """Return the offsets of a group; with `require_stable` after all writes that began before, or an error."""
        self._writes.advance()
        if require_stable and self.shard.pending:
            last = self.shard.pending[-1]
            await self._writes.wait()
            self._writes.advance()
            if self._is_closed or last in self.shard.pending:
                # Kafka's answer: clients before 3.9 retry no other one.
                return ErrorCode.NOT_COORDINATOR
        return fetch_offsets(self.shard.offsets, group_id, topics, require_stable=require_stable)

    async def delete_offsets(
        self, group_id: str, partitions: Sequence[tuple[str, int]]
    ) -> tuple[ErrorCode, ...] | ErrorCode:
        """Delete offsets of topics that no member subscribes to; return the error of each partition, or of the group."""
        self._writes.advance()
        group = self.shard.visible_group(group_id)
        if (error := self._refuse_write() or refuse_deletion_of_offsets(group)) or group is None:
            return error
        errors = tuple(
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed_to(topic) else ErrorCode.NONE
            for topic, _ in partitions
        )
        known = set(self.shard.offsets_of(group_id))
        deleted = [place for place, error in zip(partitions, errors, strict=True) if not error and place in known]
        if deleted and (error := await self._writes.stored(tombstones(group_id, deleted))):
            return error
        return errors

    # Administration

    def group(self, group_id: str) -> Group | None:
        """Return a group that the log contains."""
        self._writes.advance()
        return self.shard.visible_group(group_id)

    def groups(self) -> list[Group]:
        """Return all groups that the log contains."""
        self._writes.advance()
        return [group for group in self.shard.groups.values() if group.is_stored]

    async def delete_group(self, group_id: str) -> ErrorCode:
        """Delete an empty group with all its offsets."""
        self._writes.advance()
        group = self.shard.visible_group(group_id)
        if (error := self._refuse_write() or refuse_deletion_of_group(group)) or group is None:
            return error
        log.info("Deleting a group", extra={"group_id": group_id})
        return answer_code(await self._writes.append(self.shard.begin_deletion(group)))

    async def expire(self) -> None:
        """Delete the offsets and groups that have expired."""
        for index, group_id in enumerate(list(self.shard.groups)):
            if index % GROUPS_PER_STEP == GROUPS_PER_STEP - 1:
                await asyncio.sleep(0)
            if self._is_closed or self.shard.is_full:
                return
            places, goes = self.shard.expired(group_id, now_ms=self._now_ms())
            if places or goes:
                log.info("Deleting expired offsets", extra={"group_id": group_id, "partitions": len(places)})
            if goes and len(places) <= RECORDS_PER_WRITE:
                await self._writes.append(self.shard.begin_deletion(self.shard.groups[group_id]))
            else:
                await self._store_each(tombstones(group_id, places))

    async def delete_offsets_of_topic(self, records: Sequence[OffsetRecord]) -> None:
        """Delete offsets for a topic that was deleted."""
        await self._store_each(records)

    async def _store_each(self, records: Sequence[OffsetRecord]) -> None:
        """Append records in several batches; one that fails is tried again at the next check."""
        for start in range(0, len(records), RECORDS_PER_WRITE):
            await self._writes.stored(records[start : start + RECORDS_PER_WRITE])

    def _refuse_write(self) -> ErrorCode:
        if self._is_closed:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if self.shard.is_full else ErrorCode.NONE

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _monotonic_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)
