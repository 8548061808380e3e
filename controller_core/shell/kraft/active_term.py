"""One active term of KRaft mode: from a decision to its records in the log, and to the reply once they are committed (ADR 59).

    event ──► decide ──► change_records ──► append ──► apply at once ──► then … ──► committed ──► rest … ──► reply

A decision, its append and its application are one step, in which nothing is awaited: so the offsets of its records are known before it is
made, and no event needs to wait for another. What is not committed is visible to later decisions only: each reply, also one that changes
nothing, waits until everything that it may rest on is committed (C18). A term that ends forgets its state; the follower of the log
rebuilds it from what is committed.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from controller_core.metadata import column_records, replayed_records
from controller_core.metadata.activation import activation_write
from controller_core.metadata.change_records import change_records
from controller_core.metadata.partition_changes import MESSAGE as PARTITION_CHANGES
from controller_core.metadata.payloads import Part, Payload, payloads
from controller_core.metadata.record_decision import RecordDecision
from controller_core.model import Cluster, changes, events, quorum_changes, quorum_events
from controller_core.model.decision import Decision
from controller_core.quorum.ready import AppendResult
from controller_core.quorum_mode.decide import decide
from controller_core.quorum_mode.sessions import Sessions
from controller_core.quorum_mode.transitions import apply
from controller_core.shell import active, state_log
from controller_core.shell.kraft.metrics import KRaftMetrics
from kafka_metadata import metadata_versions, records
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_log import MARKERS, MetadataLog, apply_records
from kafka_wire import ErrorCode, Failure
from kafka_wire.columns.record_encoder import RecordColumns
from kafka_wire.net.failures import CloseConnection

log = logging.getLogger(__name__)

MAX_FOLLOW_UPS = 1_000
"""Events that follow from one event before it counts as endless: a defect."""

MAX_WAITING = 10_000
"""Requests that wait for a commit: with a quorum that commits, they wait for milliseconds."""

ATOMIC = (
    events.AlterReassignments,
    events.CreatePartitions,
    events.CreateTopics,
    events.DeleteTopics,
    quorum_events.ChangeConfigs,
)
"""Requests whose changes are in the log whole or not at all, as in Kafka (ControllerResult.atomicOf)."""


class Quorum(Protocol):
    """The node of the quorum, as an active term uses it."""

    @property
    def now_ms(self) -> int:
        """A time that advances evenly."""

    @property
    def end_offset(self) -> int:
        """Offset of the next record of the log."""

    @property
    def kraft_version(self) -> int:
        """Level of kraft.version."""

    def leads_in(self, epoch: int) -> bool:
        """Whether the node leads in an epoch."""

    def append_now(self, epoch: int, payload: bytes, record_count: int) -> AppendResult:
        """Append a batch at the end of the log."""

    async def committed(self, offset: int) -> bool:
        """Wait until a record of this leader is committed; False when it may be lost."""

    def fail(self, error: Exception) -> None:
        """End the node because of an error."""


class _Pending(NamedTuple):
    """Successive records, and the offset of the first."""

    offset: int
    part: Part

    @property
    def end_offset(self) -> int:
        return self.offset + len(self.part)

    def records_from(self, offset: int) -> Sequence[records.MetadataRecord]:
        """Return the records from an offset on."""
        part = self.part[offset - self.offset :]
        return list(column_records.partition_records(part)) if isinstance(part, RecordColumns) else part


class Outcome(NamedTuple):
    """What a step decided."""

    reply: Any
    """Not final before `settled`, nor while there is a rest."""
    rest: tuple[events.Event, ...]
    """Events for the next step, once this one is committed: what one step would take too long for."""


class ActiveTerm:
    """The state of one term. All methods but `settled` run without an await."""

    def __init__(self, quorum: Quorum, epoch: int, cluster: Cluster, sessions: Sessions, metrics: KRaftMetrics) -> None:
        self.epoch = epoch
        self.cluster = cluster
        self.sessions = sessions
        self.end_offset = quorum.end_offset
        """Behind the last record of this term."""
        self._quorum = quorum
        self._metrics = metrics
        self._waiting = 0
        self._pending: deque[_Pending] = deque()
        """Records that the committed image may not have; changes of partition states are not among them."""
        self._newest: tuple[int, int, MetadataImage] | None = None
        """End of the committed log, end of the pending records, and the image of both."""

    def activate(
        self, committed: MetadataLog, bootstrap: Sequence[records.MetadataRecord], min_insync_replicas: int
    ) -> None:
        """Begin the term: give each broker a whole session, and append the first records. Raises MetadataError, TermEndedError."""
        self.cluster.controller_epoch = self.epoch
        self.sessions.begin(self.cluster.brokers.values(), self._quorum.now_ms)
        write, metadata_version = activation_write(committed, bootstrap, min_insync_replicas)
        offset = self._append_parts([write.records], metadata_version, is_atomic=write.is_atomic)
        content = [record for record in write.records if not isinstance(record, MARKERS)]
        with self._applying():
            replayed_records.replay_records(self.cluster, content, offset)

    def process(self, *begin: events.Event) -> Outcome:
        """Decide on events and on everything that follows from them. Raises TermEndedError, RefusedWriteError."""
        reply, rest, waiting = None, list[events.Event](), deque(begin)
        for _ in range(MAX_FOLLOW_UPS):
            if not waiting:
                return Outcome(reply, tuple(rest))
            following = self._completed(waiting.popleft())
            with self._metrics.deciding(type(following).__name__):
                made = decide(self.cluster, following)
                self._carry_out(made, is_atomic=isinstance(following, ATOMIC))
            waiting.extendleft(reversed(made.then))
            waiting.extend(made.later)
            rest += made.rest
            reply = reply if made.reply is None else made.reply
        raise AssertionError(f"{begin} cause more than {MAX_FOLLOW_UPS} events")

    def write(self, committed: MetadataLog, decide_records: Callable[[MetadataImage], RecordDecision]) -> Any:
        """Decide on the newest image, append the records and apply them; return the reply, as `process`."""
        decision = decide_records(self.newest_image(committed))
        offset = self._append_parts([decision.records], self._metadata_version, is_atomic=decision.is_atomic)
        with self._applying():
            replayed_records.replay_records(self.cluster, decision.records, offset)
        return decision.reply

    def newest_image(self, committed: MetadataLog) -> MetadataImage:
        """Return the committed image with the pending records."""
        while self._pending and self._pending[0].end_offset <= committed.end_offset:
            self._pending.popleft()
        if not self._pending:
            return committed.newest_image
        ends = (committed.end_offset, self.end_offset)
        if self._newest is None or self._newest[:2] != ends:
            newest = committed
            for write in self._pending:
                offset = max(write.offset, committed.end_offset)
                newest = apply_records(newest, offset, write.records_from(offset))
            self._newest = (*ends, newest.newest_image)
        return self._newest[2]

    def admit(self) -> None:
        """Raise OverloadedError while too many requests wait. The controller's own events are admitted without a check."""
        if self._waiting >= MAX_WAITING:
            raise active.OverloadedError("too many requests wait for the quorum")

    async def settled(self) -> None:
        """Wait until everything that this term has appended so far is committed. Raises TermEndedError."""
        self._waiting += 1
        try:
            is_committed = await self._quorum.committed(self.end_offset - 1)
        finally:
            self._waiting -= 1
        if not is_committed:
            raise active.TermEndedError(
                "this process lost the leadership of the quorum before the records were committed"
            )

    @property
    def _metadata_version(self) -> int:
        return self.cluster.features[metadata_versions.METADATA_VERSION]

    def _completed(self, event: events.Event) -> events.Event:
        """Return an event with what is known only when it is decided: the end of the log, and whether a session is valid."""
        match event:
            case quorum_events.RegisterBroker(broker=broker):
                known, now_ms = self.cluster.brokers.get(broker), self._quorum.now_ms
                is_valid = known is not None and self.sessions.is_valid(broker, known.epoch, now_ms)
                quorum = self._quorum
                return replace(
                    event, log_end=quorum.end_offset, session_is_valid=is_valid, kraft_version=quorum.kraft_version
                )
            case quorum_events.NoteShutdownOffset():
                return replace(event, log_end=self._quorum.end_offset)
            case _:
                return event

    def _carry_out(self, made: Decision[Any], *, is_atomic: bool) -> None:
        """Append the records of all changes, which are computed on the state before; then apply them."""
        parts = change_records(made.changes, self.cluster)
        self._append_parts(parts, self.cluster.features.get(metadata_versions.METADATA_VERSION, 0), is_atomic=is_atomic)
        with self._applying():
            for change in made.changes:
                state_log.log_change(self.cluster, change)
                self._metrics.changing(self.cluster, change)
                self._end_session(change)
                apply(self.cluster, change)

    def _end_session(self, change: changes.Change) -> None:
        """End the session of an incarnation that is fenced, replaced or unregistered, before the change is applied."""
        match change:
            case quorum_changes.BrokerChanged(broker=broker, broker_epoch=epoch, fenced=True):
                self.sessions.end(broker, epoch)
            case changes.BrokerUnregistered(broker=broker, broker_epoch=epoch):
                self.sessions.end(broker, epoch)
            case quorum_changes.BrokerRegistered(broker=registered):
                known = self.cluster.brokers.get(registered.id)
                if known is not None and known.epoch != registered.epoch:
                    self.sessions.end(known.id, known.epoch)

    def _append_parts(self, parts: Sequence[Part], metadata_version: int, *, is_atomic: bool) -> int:
        """Append records, and return the offset of the first. Raises TermEndedError, and RefusedWriteError before anything is appended."""
        begin = self._quorum.end_offset
        if not any(map(len, parts)):
            return begin
        batches = payloads(parts, metadata_version, self._quorum.now_ms, is_atomic=is_atomic)
        if isinstance(batches, Failure):
            raise active.RefusedWriteError(batches)
        self._append(batches[0])
        with self._applying():
            for batch in batches[1:]:
                self._append(batch)
        offset = begin
        for part in parts:
            if len(part) and not (isinstance(part, RecordColumns) and part.message == PARTITION_CHANGES):
                self._pending.append(_Pending(offset, part))
            offset += len(part)
        return begin

    @contextmanager
    def _applying(self) -> Iterator[None]:
        """End the node if records are in the log and cannot all be appended or applied: the state is not that of the log any more."""
        try:
            yield
        except active.TermEndedError:
            raise
        except Exception as error:
            self._quorum.fail(error)
            raise active.TermEndedError("records of this process could not be applied") from error

    def _append(self, batch: Payload) -> None:
        expected = self._quorum.end_offset
        try:
            result = self._quorum.append_now(self.epoch, batch.data, batch.record_count)
        except CloseConnection as error:
            raise active.TermEndedError(error.reason) from error
        if result.error is ErrorCode.RECORD_LIST_TOO_LARGE:
            raise active.RefusedWriteError(Failure(ErrorCode.POLICY_VIOLATION, "The change is too large for the log."))
        if result.error is not ErrorCode.NONE:
            raise active.TermEndedError("this process does not lead the quorum any more")
        assert result.base_offset == expected, "nothing else is appended within a step"
        self.end_offset = expected + batch.record_count
