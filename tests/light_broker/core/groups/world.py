"""A coordinator of one partition on a log in memory, with a clock that the test moves.

It carries out effects as the shell does. Appends end with `settle`, or at once with `replicates_at_once`.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kafka_wire import ErrorCode
from light_broker.core.groups.effects import Answer, Append, Effect, Noted, Reply, StartTimer, StopTimer
from light_broker.core.groups.events import Event, Loaded, Request, Stored, Timer
from light_broker.core.groups.records import CoordinatorRecord, GroupRecord, OffsetRecord, decode_record, encode_record
from light_broker.core.groups.settings import GroupSettings
from light_broker.core.groups.shard import Shard, Write, result_of
from light_broker.core.groups.states import Group
from light_broker.core.groups.timers import Timers

START_MS = 1_000_000


@dataclass
class Pending:
    """An append that has not ended."""

    write: Write
    base_offset: int
    then: tuple[str, Stored] | None = None
    replies: list[Reply] = field(default_factory=list)


@dataclass
class World:
    """The coordinator, its log and what it has answered."""

    settings: GroupSettings = field(default_factory=GroupSettings)
    replicates_at_once: bool = True
    now_ms: int = START_MS
    log: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    high_watermark: int = 0
    answers: dict[int, list[Answer]] = field(default_factory=lambda: defaultdict(list))
    happened: list[str | Reply | CoordinatorRecord | tuple[str, Timer, int]] = field(default_factory=list)
    """Effects since they were taken, for golden scripts."""

    def __post_init__(self) -> None:
        self.shard = Shard(self.settings)
        self.timers: Timers[tuple[str, Timer]] = Timers()
        self.appends: list[Pending] = []
        self._requests = 0

    # Requests

    def next_request(self) -> int:
        """Return the number of the next request."""
        self._requests += 1
        return self._requests

    def ask(self, group_id: str, request: Request) -> list[Answer]:
        """Send a request, and return its answers up to now: none, or one."""
        self.handle(group_id, request)
        return self.answers[request.request_id]

    def handle(self, group_id: str, event: Event) -> None:
        """Let an event happen, and carry out its effects."""
        self._carry_out(group_id, self.shard.handle(group_id, event, now_ms=self.now_ms))

    def _carry_out(self, group_id: str, effects: Sequence[Effect]) -> None:
        began: list[Pending] = []
        for effect in effects:
            match effect:
                case Append(record=record, then=then):
                    began.append(self.append([record], then=(group_id, then)))
                case Reply(is_stored=True) if began:
                    began[-1].replies.append(effect)
                case Reply():
                    self._reply(effect)
                case StartTimer(timer=timer, delay_ms=delay_ms):
                    self.timers.start((group_id, timer), self.now_ms + delay_ms)
                case StopTimer(timer=timer):
                    self.timers.stop((group_id, timer))
                case Noted():
                    pass
        if self.replicates_at_once:
            self.settle()

    def _reply(self, reply: Reply) -> None:
        self.answers[reply.request_id].append(reply.answer)
        self.happened.append(reply)

    # Log

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        *,
        deleted: Sequence[Group] = (),
        then: tuple[str, Stored] | None = None,
    ) -> Pending:
        """Append records to the log; the append ends later."""
        pending = Pending(self.shard.begin(records, deleted=deleted), len(self.log), then)
        return self._appended(pending)

    def delete(self, group_id: str) -> Pending:
        """Delete an empty group."""
        return self._appended(Pending(self.shard.begin_deletion(self.shard.groups[group_id]), len(self.log)))

    def _appended(self, pending: Pending) -> Pending:
        for record in pending.write.records:
            assert isinstance(record, OffsetRecord | GroupRecord)
            self.log.append(encode_record(record))
            self.happened.append(record)
        self.appends.append(pending)
        return pending

    def commit(self, records: Sequence[OffsetRecord]) -> Pending:
        """Append committed offsets."""
        pending = self.append(records)
        if self.replicates_at_once:
            self.settle()
        return pending

    def settle(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """End all appends, by default successfully."""
        while self.appends:
            self.end_append(0, error)

    def end_append(self, index: int, error: ErrorCode = ErrorCode.NONE) -> None:
        """End one append. A refused one never was in the log; only the last one can be refused, as its log had not changed yet."""
        pending = self.appends.pop(index)
        if error == ErrorCode.NONE:
            self.high_watermark = max(self.high_watermark, pending.base_offset + len(pending.write.records))
        elif error != ErrorCode.REQUEST_TIMED_OUT:
            assert self.is_last(pending)
            del self.log[pending.base_offset :]
        self.shard.finish(pending.write, error, pending.base_offset)
        for reply in pending.replies:
            self._reply(reply)
        if pending.then is not None:
            group_id, event = pending.then
            self.handle(group_id, result_of(event, error, error))

    def is_last(self, pending: Pending) -> bool:
        """Return whether nothing was appended behind an append."""
        return pending.base_offset + len(pending.write.records) == len(self.log)

    def replicate_all(self) -> None:
        """Let the high watermark pass the whole log, also the appends that timed out."""
        self.settle()
        self.high_watermark = len(self.log)
        self.shard.advance(self.high_watermark)

    def reload(self, *, lost_records: int = 0) -> None:
        """Load another coordinator from the log, as after a change of the leader; records above the high watermark may be lost."""
        end = max(len(self.log) - lost_records, self.high_watermark)
        del self.log[end:]
        for effect in self.shard.unload(now_ms=self.now_ms):
            if isinstance(effect, Reply):
                self._reply(effect)
        for pending in self.appends:
            for reply in pending.replies:
                self._reply(reply)
        self.appends.clear()
        self.timers = Timers()
        self.shard = loaded(self.log, self.settings, self.high_watermark)
        for group_id in list(self.shard.groups):
            self.handle(group_id, Loaded())

    # Time

    def advance(self, delay_ms: int) -> None:
        """Move the clock, and let timers happen at their times."""
        end_ms = self.now_ms + delay_ms
        while (next_ms := self.timers.next_ms) is not None and next_ms <= end_ms:
            self.now_ms = max(self.now_ms, next_ms)
            due = self.timers.pop_due(self.now_ms)
            if due is not None:
                group_id, timer = due
                self.happened.append((group_id, timer, self.now_ms - START_MS))
                self.handle(group_id, timer)
        self.now_ms = end_ms

    def expire(self) -> None:
        """Delete expired offsets and groups, as the periodic check does."""
        for group_id in list(self.shard.groups):
            places, goes = self.shard.expired(group_id, now_ms=self.now_ms)
            if goes:
                self.delete(group_id)
            elif places:
                self.append([OffsetRecord(group_id, topic, partition, None) for topic, partition in places])
            if self.replicates_at_once:
                self.settle()

    def stored(self) -> Iterator[CoordinatorRecord]:
        """Iterate over the records of the log."""
        for key, value in self.log:
            record = decode_record(key, value)
            assert isinstance(record, OffsetRecord | GroupRecord)
            yield record


def loaded(log: Sequence[tuple[bytes, bytes | None]], settings: GroupSettings, high_watermark: int) -> Shard:
    """Return the state that a log has."""
    shard = Shard(settings)
    for offset, (key, value) in enumerate(log):
        record = decode_record(key, value)
        assert isinstance(record, OffsetRecord | GroupRecord)
        shard.replay(offset, record, is_committed=offset < high_watermark)
    return shard
