"""A simulated broker with one replica: the pure core of light_broker on a log in memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_log.format.epochs import EpochStart, LeaderEpochs
from kafka_wire import ErrorCode
from light_broker.core import partition, truncation
from light_broker.core.follower_progress import FollowerProgress
from light_broker.core.isr import AfterAnswer, AlterPartitionAnswer, Pending
from light_broker.core.partition import Follower, IsrRules, Leader, Role
from light_broker.core.purgatory import Purgatory
from tests.light_broker.sim.controller import Metadata

MAX_LAG_MS = 300
FETCH_RECORDS = 5
"""Records of a response, so that followers catch up in several steps."""


class Entry(NamedTuple):
    """A record in a log."""

    epoch: int
    value: int


class FetchRequest(NamedTuple):
    """A follower's fetch."""

    broker_id: int
    broker_epoch: int
    leader_epoch: int
    offset: int
    last_epoch: int


class FetchResponse(NamedTuple):
    """The leader's answer."""

    leader_epoch: int
    error: ErrorCode
    high_watermark: int = 0
    entries: tuple[Entry, ...] = ()
    diverging: EpochStart | None = None


@dataclass(frozen=True)
class Rules:
    """The functions that are simulated. A planted bug replaces one."""

    access_error: Callable[..., ErrorCode] = partition.access_error
    follower_error: Callable[..., ErrorCode] = partition.follower_error
    next_high_watermark: Callable[..., int] = partition.next_high_watermark
    expansion: Callable[..., Pending | None] = partition.expansion
    shrink: Callable[..., Pending | None] = partition.shrink
    answered: Callable[..., tuple[Leader, AfterAnswer]] = partition.answered
    produce_error: Callable[..., ErrorCode] = partition.produce_error
    replication_error: Callable[..., ErrorCode | None] = partition.replication_error
    truncation_after: Callable[..., truncation.Truncation] = truncation.truncation_after
    is_diverging: Callable[..., bool] = truncation.is_diverging
    purgatory: Callable[[], Purgatory[str]] = Purgatory


class Produce:
    """A produce with acks=all that waits in the purgatory."""

    def __init__(self, replica: "Replica", value: int, offset: int) -> None:
        self._replica = replica
        self.value = value
        self.offset = offset
        self.error: ErrorCode | None = None
        self.answers = 0

    def is_satisfied(self, key: str | None) -> bool:  # noqa: ARG002
        """Examine the high watermark."""
        self.error = self._replica.replication_error(self.offset + 1)
        return self.error is not None

    def complete(self, *, expired: bool) -> None:
        """Answer the producer."""
        self.answers += 1
        assert self.answers == 1, "B6: a produce is answered twice"
        if not expired and self.error is ErrorCode.NONE:
            self._replica.on_acknowledged(self.offset, self.value)


@dataclass
class Replica:
    """One broker. Its log and its checkpoint survive a kill; everything else is lost with the process."""

    broker_id: int
    rules: Rules
    isr_rules: IsrRules
    on_acknowledged: Callable[[int, int], None]
    on_truncated: Callable[[int, int], None]
    """Called with the broker id and the offset."""
    log: list[Entry] = field(default_factory=list)
    epochs: LeaderEpochs = field(default_factory=LeaderEpochs)
    checkpoint: int = 0
    """The high watermark on the disk."""
    is_alive: bool = False
    broker_epoch: int = -1
    role: Role | None = None
    high_watermark: int = 0
    version: int = 0
    live: dict[int, int] = field(default_factory=dict)

    def start(self) -> None:
        """Begin a process on the log."""
        self.is_alive, self.role, self.version, self.live = True, None, 0, {}
        self.high_watermark = min(self.checkpoint, len(self.log))
        self.purgatory = self.rules.purgatory()

    def lose_disk(self) -> None:
        """Lose everything."""
        self.log, self.epochs, self.checkpoint = [], LeaderEpochs(), 0

    @property
    def leader(self) -> Leader | None:
        """The state of a leader."""
        return self.role if isinstance(self.role, Leader) else None

    def learn(self, metadata: Metadata, now_ms: int) -> None:
        """Apply metadata, unless later metadata came first."""
        if metadata.version <= self.version:
            return
        self.version, self.live = metadata.version, metadata.live
        state = metadata.state
        if state.leader == self.broker_id:
            leader = partition.lead(self.role, state, self.broker_id, end_offset=len(self.log), now_ms=now_ms)
            if leader is not None:
                if not isinstance(self.role, Leader) or self.role.leader_epoch != leader.leader_epoch:
                    self.epochs = self.epochs.assign(leader.leader_epoch, len(self.log))
                self.role = leader
        else:
            self.role = partition.follow(self.role, state) or self.role
        self.advance(now_ms)

    def advance(self, now_ms: int) -> None:
        """Raise the high watermark, and answer producers."""
        if self.leader is not None:
            self._raise_high_watermark(
                self.rules.next_high_watermark(
                    self.leader,
                    self.high_watermark,
                    self.isr_rules,
                    self.live,
                    end_offset=len(self.log),
                    now_ms=now_ms,
                )
            )
        self.purgatory.check("partition")

    def _raise_high_watermark(self, high_watermark: int) -> None:
        assert high_watermark >= self.high_watermark, "B2: the high watermark fell"
        self.high_watermark = high_watermark

    # Leader

    def produce(self, value: int, now_ms: int, timeout_ms: int) -> Produce | None:
        """Append a record with acks=all; None if it is refused."""
        leader = self.leader
        if leader is None or self.rules.produce_error(leader, self.isr_rules) is not ErrorCode.NONE:
            return None
        waiting = Produce(self, value, len(self.log))
        self.log.append(Entry(leader.leader_epoch, value))
        self.advance(now_ms)
        self.purgatory.add(waiting, ["partition"], now_ms + timeout_ms)
        return waiting

    def replication_error(self, required_offset: int) -> ErrorCode | None:
        """Return the result of a produce that ends at an offset."""
        assert self.role is not None
        return self.rules.replication_error(
            self.role, self.isr_rules, high_watermark=self.high_watermark, required_offset=required_offset
        )

    def serve(self, request: FetchRequest, now_ms: int) -> tuple[FetchResponse, Pending | None]:
        """Answer a follower's fetch; return also the change of the ISR that follows."""
        if self.role is None:
            return FetchResponse(request.leader_epoch, ErrorCode.NOT_LEADER_OR_FOLLOWER), None
        error = self.rules.access_error(self.role, request.leader_epoch, only_leader=True)
        leader = self.leader
        if error is ErrorCode.NONE and leader is not None:
            error = self.rules.follower_error(leader, request.broker_id, request.broker_epoch, request.leader_epoch)
        if error is not ErrorCode.NONE or leader is None or request.broker_id not in leader.followers:
            return FetchResponse(request.leader_epoch, error or ErrorCode.NOT_LEADER_OR_FOLLOWER), None
        if request.last_epoch >= 0:
            end = self.epochs.end_offset_for(request.last_epoch, len(self.log))
            if end is None:
                return FetchResponse(request.leader_epoch, ErrorCode.OFFSET_OUT_OF_RANGE), None
            if self.rules.is_diverging(end, fetch_offset=request.offset, last_fetched_epoch=request.last_epoch):
                return FetchResponse(request.leader_epoch, error, self.high_watermark, diverging=end), None
        if request.offset > len(self.log):
            return FetchResponse(request.leader_epoch, ErrorCode.OFFSET_OUT_OF_RANGE), None
        progress: FollowerProgress = leader.followers[request.broker_id].after_fetch(
            fetch_offset=request.offset,
            start_offset=0,
            leader_end_offset=len(self.log),
            broker_epoch=request.broker_epoch,
            now_ms=now_ms,
        )
        leader = partition.with_progress(leader, request.broker_id, progress)
        pending = self.rules.expansion(leader, request.broker_id, self.high_watermark, self.live)
        self.role = leader if pending is None else partition.with_isr(leader, pending)
        self.advance(now_ms)
        entries = tuple(self.log[request.offset : request.offset + FETCH_RECORDS])
        return FetchResponse(request.leader_epoch, ErrorCode.NONE, self.high_watermark, entries), pending

    def find_slow(self, now_ms: int) -> Pending | None:
        """Return the change of the ISR that removes slow followers."""
        leader = self.leader
        if leader is None:
            return None
        pending = self.rules.shrink(leader, self.isr_rules, end_offset=len(self.log), now_ms=now_ms)
        if pending is not None:
            self.role = partition.with_isr(leader, pending)
        return pending

    def take_answer(self, pending: Pending, answer: AlterPartitionAnswer, now_ms: int) -> bool:
        """Apply the controller's answer; return whether the change is sent again."""
        if self.leader is None:
            return False
        self.role, outcome = self.rules.answered(self.leader, pending, answer)
        self.advance(now_ms)
        return outcome is AfterAnswer.RETRY

    # Follower

    def next_fetch(self) -> FetchRequest | None:
        """Return the fetch of a follower that knows its leader."""
        if not isinstance(self.role, Follower) or self.role.leader_id < 0:
            return None
        last = self.log[-1].epoch if self.log else -1
        return FetchRequest(self.broker_id, self.broker_epoch, self.role.leader_epoch, len(self.log), last)

    def take(self, request: FetchRequest, response: FetchResponse) -> None:
        """Apply a response, unless the leader or the log has changed since the request."""
        if not isinstance(self.role, Follower) or self.next_fetch() != request:
            return
        if response.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._truncate(self.high_watermark)
        if response.error is not ErrorCode.NONE:
            return
        if response.diverging is not None:
            self._truncate(
                self.rules.truncation_after(response.diverging, self.epochs, end_offset=len(self.log)).offset
            )
            return
        for entry in response.entries:
            self.epochs = self.epochs.assign(entry.epoch, len(self.log))
            self.log.append(entry)
        self._raise_high_watermark(max(self.high_watermark, min(response.high_watermark, len(self.log))))

    def _truncate(self, offset: int) -> None:
        assert offset >= self.high_watermark, "B1: a log is truncated below the high watermark"
        del self.log[offset:]
        self.epochs = self.epochs.truncate_from_end(len(self.log))
        self.on_truncated(self.broker_id, offset)
