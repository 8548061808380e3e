"""The groups and offsets of one partition of `__consumer_offsets`, and its writes that are not committed yet.

    request ─► records ─► begin ─► (append to the log) ─► finish ─► applied in the order of the log

A write changes the offsets that clients read when its records are below the high watermark, and in the order in which it began: a reader
never sees an offset that a failure could take back (B7). Kafka's coordinator has the same effect by snapshots of its state
(CoordinatorRuntime). Groups change at once: only their members see that, and after a failure another broker has them from its log.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire import ErrorCode
from light_broker.core.groups.commits import tombstones
from light_broker.core.groups.decide import decide
from light_broker.core.groups.effects import Effect
from light_broker.core.groups.events import Event, GroupCreated, Stored, Unloaded
from light_broker.core.groups.expiry import expired_offsets
from light_broker.core.groups.offsets import CommittedOffsets
from light_broker.core.groups.records import CoordinatorRecord, GroupRecord, OffsetRecord, StoredGroup
from light_broker.core.groups.settings import GroupSettings
from light_broker.core.groups.states import Dead, Empty, Group, Member, Protocol, Stable
from light_broker.core.groups.subscriptions import subscribed_topics

IN_LOG = {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
"""Errors after which the records are in the log: they may be committed later."""

MAX_PENDING_WRITES = 10_000
"""Writes of a partition that wait for the high watermark. With more, further ones are refused: replicas do not keep up."""

NO_OFFSET = -1


def result_of(then: Stored, error: ErrorCode, answered: ErrorCode) -> Stored:
    """Return the result of an append as the event that was to come; `answered` is the error as clients get it.

    A new group whose record is in the log exists, although its replication timed out.
    """
    return then if isinstance(then, GroupCreated) and error in IN_LOG else replace(then, error=answered)


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """A marker of the log, which ends a transaction."""

    producer_id: int
    commits: bool


@dataclass(slots=True, eq=False)
class Write:
    """Records that are appended together."""

    number: int
    records: tuple[CoordinatorRecord | TransactionEnd, ...]
    deleted: tuple[Group, ...] = ()
    """Groups that it deletes, as they were before."""
    base_offset: int = NO_OFFSET
    error: ErrorCode | None = None
    """None: the append has not ended."""
    is_applied: bool = False
    """Whether readers see it."""

    @property
    def end_offset(self) -> int:
        """Offset after the last record, if it is known."""
        return self.base_offset + len(self.records) if self.base_offset != NO_OFFSET else NO_OFFSET


@dataclass(slots=True)
class Shard:
    """State of one partition."""

    settings: GroupSettings
    groups: dict[str, Group] = field(default_factory=dict)
    offsets: CommittedOffsets = field(default_factory=CommittedOffsets)
    """Offsets below the high watermark."""
    pending: deque[Write] = field(default_factory=deque)
    """Writes that are not applied, in the order of the log."""
    _writes: int = 0
    """Number of writes so far."""
    _committed: int = 0
    """Number of the newest write below the high watermark: all before it that are in the log are, too."""

    # Groups

    def handle(self, group_id: str, event: Event, *, now_ms: int) -> tuple[Effect, ...]:
        """Decide on an event of a group, and return the effects."""
        decision = decide(self.groups.get(group_id), event, now_ms=now_ms, settings=self.settings)
        group = decision.group
        if group is None or (isinstance(group.state, Dead) and not self._is_being_deleted(group_id)):
            self.groups.pop(group_id, None)
        else:
            self.groups[group_id] = group
        return decision.effects

    def unload(self, *, now_ms: int) -> Iterator[Effect]:
        """End all groups, because another broker leads the partition; yields the answers to their requests."""
        for group_id in list(self.groups):
            yield from self.handle(group_id, Unloaded(), now_ms=now_ms)

    def visible_group(self, group_id: str) -> Group | None:
        """Return a group that the log contains."""
        group = self.groups.get(group_id)
        return group if group is not None and group.is_stored else None

    def _is_being_deleted(self, group_id: str) -> bool:
        return any(group.id == group_id for write in self.pending for group in write.deleted)

    # Writes

    @property
    def is_full(self) -> bool:
        """Whether too many writes wait for the high watermark."""
        return len(self.pending) >= MAX_PENDING_WRITES

    def begin(self, records: Sequence[CoordinatorRecord], *, deleted: Sequence[Group] = ()) -> Write:
        """Note a write that is being appended; the calls are in the order of the appends."""
        return self._queue(Write(self._next_number(), tuple(records), tuple(deleted)))

    def finish(self, write: Write, error: ErrorCode, base_offset: int = NO_OFFSET) -> tuple[Write, ...]:
        """Note the result of an append; NONE: the high watermark has passed it. Returns the writes that are visible now."""
        write.error = error
        write.base_offset = base_offset
        if error == ErrorCode.NONE:
            self._committed = max(self._committed, write.number)
        elif error not in IN_LOG:
            self.pending.remove(write)
            for group in write.deleted:
                self.groups[group.id] = group
        return self._apply_committed()

    def advance(self, high_watermark: int) -> tuple[Write, ...]:
        """Note the high watermark, for writes whose appends ended before it passed them; returns those that are visible now."""
        for write in self.pending:
            if write.error is None or write.end_offset == NO_OFFSET or write.end_offset > high_watermark:
                break
            self._committed = max(self._committed, write.number)
        return self._apply_committed()

    def _next_number(self) -> int:
        self._writes += 1
        return self._writes

    def _queue(self, write: Write) -> Write:
        self.pending.append(write)
        return write

    def _apply_committed(self) -> tuple[Write, ...]:
        """Apply the first writes that are committed, up to one whose result is on the way."""
        applied = []
        while self.pending and self.pending[0].number <= self._committed and self.pending[0].error is not None:
            write = self.pending.popleft()
            write.is_applied = True
            applied.append(write)
            for index, record in enumerate(write.records):
                self._apply(write.base_offset + index, record)
        return tuple(applied)

    def _apply(self, record_offset: int, record: CoordinatorRecord | TransactionEnd) -> None:
        """Apply a committed record. Groups have changed before, except that deleted ones go now."""
        match record:
            case OffsetRecord():
                self._apply_offset(record_offset, record)
            case TransactionEnd():
                for group_id in self.offsets.end_transaction(record.producer_id, commits=record.commits):
                    self.groups.setdefault(group_id, Group(group_id))
            case GroupRecord(value=None):
                group = self.groups.get(record.group_id)
                if group is not None and isinstance(group.state, Dead):
                    del self.groups[record.group_id]

    def _apply_offset(self, record_offset: int, record: OffsetRecord, producer_id: int | None = None) -> None:
        self.offsets.replay(record_offset, record, producer_id=producer_id)
        if record.value is not None and record.group_id not in self.groups:
            # Clients that assign themselves partitions only commit offsets: a simple group.
            self.groups[record.group_id] = Group(record.group_id)

    # Deletion and expiry

    def offsets_of(self, group_id: str) -> tuple[tuple[str, int], ...]:
        """Return the partitions for which a group has offsets, or will have once its writes are committed."""
        known: dict[tuple[str, int], bool] = {
            (topic, partition): True for topic, partition, _ in self.offsets.of_group(group_id)
        }
        known |= dict.fromkeys(self.offsets.unstable_places(group_id), True)
        for write in self.pending:
            for record in write.records:
                if isinstance(record, OffsetRecord) and record.group_id == group_id:
                    known[record.topic, record.partition] = record.value is not None
        return tuple(place for place, is_there in known.items() if is_there)

    def begin_deletion(self, group: Group) -> Write:
        """Begin to delete an empty group with all its offsets. Until the end it is Dead: its clients try again."""
        records: list[CoordinatorRecord] = [
            *tombstones(group.id, self.offsets_of(group.id)),
            GroupRecord(group.id, None),
        ]
        write = self.begin(records, deleted=[group])
        self.groups[group.id] = Group(group.id, Dead())
        return write

    def expired(self, group_id: str, *, now_ms: int) -> tuple[tuple[tuple[str, int], ...], bool]:
        """Return the expired offsets of a group, and whether the group has expired with them."""
        group = self.groups.get(group_id)
        if group is None or isinstance(group.state, Dead):
            return (), False
        places, is_last = expired_offsets(
            self.offsets, group, now_ms=now_ms, retention_ms=self.settings.offsets_retention_ms
        )
        goes = is_last and isinstance(group.state, Empty) and set(self.offsets_of(group_id)) <= set(places)
        return places, goes

    def offsets_of_deleted_topic(self, topic: str, topic_id: UUID) -> tuple[OffsetRecord, ...]:
        """Return the records that delete the offsets for a deleted topic; old offsets have no topic id."""
        return tuple(
            OffsetRecord(group_id, topic, partition, None)
            for group_id, partition, offset in self.offsets.of_topic(topic)
            if offset.topic_id in {NO_TOPIC_ID, topic_id}
        )

    # Loading

    def replay(
        self,
        record_offset: int,
        record: CoordinatorRecord,
        *,
        producer_id: int | None = None,
        is_committed: bool = True,
    ) -> None:
        """Replay a record of the log; an offset above the high watermark becomes visible with it."""
        if isinstance(record, GroupRecord):
            if record.value is None:
                self.groups.pop(record.group_id, None)
            else:
                self.groups[record.group_id] = restored_group(record.group_id, record.value)
        elif producer_id is not None:
            self._apply_offset(record_offset, record, producer_id)
        else:
            self._replay(record_offset, record, is_committed=is_committed)

    def replay_marker(self, record_offset: int, end: TransactionEnd, *, is_committed: bool = True) -> None:
        """Replay the end of a transaction."""
        self._replay(record_offset, end, is_committed=is_committed)

    def _replay(self, record_offset: int, record: CoordinatorRecord | TransactionEnd, *, is_committed: bool) -> None:
        if is_committed:
            self._apply(record_offset, record)
        else:
            self._queue(Write(self._next_number(), (record,), (), record_offset, ErrorCode.REQUEST_TIMED_OUT))


def restored_group(group_id: str, stored: StoredGroup) -> Group:
    """Return a group as its record has it: stable with members, else empty."""
    members: Mapping[str, Member] = {
        member.id: Member(
            member.id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            stored.protocol_type,
            (Protocol(stored.protocol or "", member.subscription),),
            member.assignment,
        )
        for member in stored.members
    }
    group = Group(
        group_id,
        Stable() if members else Empty(),
        None if stored.state_since_ms == -1 else stored.state_since_ms,
        stored.generation,
        stored.protocol_type or None,
        stored.protocol,
        stored.leader,
        members,
        {member.instance_id: member.id for member in members.values() if member.instance_id is not None},
    )
    return replace(group, subscribed_topics=subscribed_topics(group))
