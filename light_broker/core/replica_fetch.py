"""Replication of a partition from its leader: what a follower asks for, and what follows from each answer.

    FETCHING ── records ────────────────────────► append, FETCHING
       │  ├───── diverging epoch ───────────────► truncate, FETCHING
       │  ├───── FENCED_LEADER_EPOCH ───────────► FAILED, until the control plane has another leader epoch
       │  ├───── OFFSET_OUT_OF_RANGE ───────────► LOCATING: ListOffsets asks where the leader's log begins and ends
       │  └───── other errors, no answer ───────► FETCHING again, after replica.fetch.backoff.ms
    LOCATING ─── the leader's end is lower ─────► truncate, FETCHING
          ├───── the leader's start is higher ──► remove everything and start there, FETCHING
          └───── otherwise ─────────────────────► FETCHING again, after replica.fetch.backoff.ms

The offset of a fetch is always the end of the follower's log, and names the epoch of its last record, so that the leader finds where both logs
diverge (KIP-595; Fetch from version 12 on). Source: Kafka's AbstractFetcherThread and ReplicaFetcherThread.
"""

from dataclasses import dataclass, replace
from enum import Enum
from uuid import UUID

from kafka_log.format.epochs import EpochStart, LeaderEpochs
from kafka_node.configs.layered_settings import Settings
from kafka_wire import ErrorCode
from light_broker.core.metadata_view import NO_EPOCH
from light_broker.core.replica_requests import NO_OFFSET
from light_broker.core.truncation import truncation_after


@dataclass(frozen=True, slots=True)
class ReplicaFetchSettings:
    """Settings of a broker's fetches from leaders, with Kafka's defaults."""

    partition_max_bytes: int = 1_048_576
    response_max_bytes: int = 10_485_760
    min_bytes: int = 1
    max_wait_ms: int = 500
    backoff_ms: int = 1_000
    timeout_ms: int = 30_000


def replica_fetch_settings(settings: Settings) -> ReplicaFetchSettings:
    """Return the settings by Kafka's names."""
    return ReplicaFetchSettings(
        partition_max_bytes=settings.number("replica.fetch.max.bytes"),
        response_max_bytes=settings.number("replica.fetch.response.max.bytes"),
        min_bytes=settings.number("replica.fetch.min.bytes"),
        max_wait_ms=settings.number("replica.fetch.wait.max.ms"),
        backoff_ms=settings.number("replica.fetch.backoff.ms"),
        timeout_ms=settings.number("replica.socket.timeout.ms"),
    )


class Stage(Enum):
    """What a follower asks its leader for next."""

    FETCHING = "records"
    LOCATING = "the offsets at which the leader's log begins and ends"
    FAILED = "nothing, until the control plane has another leader epoch"


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """A partition that is fetched from its leader."""

    topic_id: UUID
    leader_epoch: int
    stage: Stage = Stage.FETCHING
    retry_at_ms: int = 0
    """Time before which it is not asked for: it is delayed after an error."""

    def is_due(self, now_ms: int) -> bool:
        """Return whether the leader is asked now."""
        return self.stage is not Stage.FAILED and self.retry_at_ms <= now_ms

    def at(self, stage: Stage) -> "FetchedPartition":
        """Return the partition in a stage, without a delay."""
        return replace(self, stage=stage, retry_at_ms=0)

    def delayed(self, until_ms: int) -> "FetchedPartition":
        """Return the partition at the same stage, with a delay."""
        return replace(self, retry_at_ms=until_ms)


@dataclass(frozen=True, slots=True)
class FollowerLog:
    """State of the follower's log."""

    start_offset: int
    end_offset: int
    high_watermark: int
    epochs: LeaderEpochs

    @property
    def last_epoch(self) -> int:
        """Latest epoch, NO_EPOCH in a log that never had a record."""
        return NO_EPOCH if self.epochs.latest is None else self.epochs.latest


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """The leader's answer about one partition."""

    error: ErrorCode = ErrorCode.NONE
    high_watermark: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    records: bytes | memoryview = b""
    diverging: EpochStart | None = None


# What the follower does


@dataclass(frozen=True, slots=True)
class Append:
    """Append the records, and adopt the leader's high watermark and log start offset."""

    records: bytes | memoryview
    high_watermark: int
    log_start_offset: int


@dataclass(frozen=True, slots=True)
class Truncate:
    """Remove the records from `offset` on."""

    offset: int


@dataclass(frozen=True, slots=True)
class StartAt:
    """Remove all records; the log is empty and starts at `offset`."""

    offset: int


@dataclass(frozen=True, slots=True)
class Locate:
    """Ask for the offsets at which the leader's log begins and ends."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Ask again after a delay."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class Fail:
    """Ask nothing until the control plane has another leader epoch."""

    error: ErrorCode


Step = Append | Truncate | StartAt | Locate | Retry | Fail


def after_fetch(answer: FetchAnswer, log: FollowerLog) -> Step:
    """Return what follows from the answer to a fetch from the end of `log`."""
    if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
        return Locate()
    if answer.error is ErrorCode.FENCED_LEADER_EPOCH:
        # The leader has a newer epoch, which this broker will get.
        return Fail(answer.error)
    if answer.error is not ErrorCode.NONE:
        return Retry(answer.error)
    if answer.diverging is not None:
        offset = truncation_after(answer.diverging, log.epochs, end_offset=log.end_offset).offset
        is_changed = offset < log.end_offset or log.epochs.truncate_from_end(offset) != log.epochs
        # Without a change the same request would get the same answer, at once.
        return _truncate(offset, log) if is_changed else Retry(ErrorCode.INVALID_REQUEST)
    return Append(answer.records, answer.high_watermark, answer.log_start_offset)


def after_offsets(error: ErrorCode, *, leader_start: int, leader_end: int, log: FollowerLog) -> Step:
    """Return what follows from the offsets of the leader's log, after a fetch from the end of `log` was out of its range.

    A leader that ends below was elected although it lacked records (unclean election). A leader that starts above has deleted what the follower
    lacks. If neither is so the leader's log has changed since the fetch, which is repeated.
    """
    if error is ErrorCode.FENCED_LEADER_EPOCH:
        return Fail(error)
    if error is not ErrorCode.NONE:
        return Retry(error)
    if leader_end < log.end_offset:
        return _truncate(leader_end, log)
    if leader_start > log.end_offset:
        return StartAt(leader_start)
    return Retry(ErrorCode.OFFSET_OUT_OF_RANGE)


def _truncate(offset: int, log: FollowerLog) -> Truncate | StartAt:
    """Return the truncation to an offset, below the log's start as an empty log."""
    return StartAt(offset) if offset < log.start_offset else Truncate(offset)


def first_step(log: FollowerLog) -> Truncate | None:
    """Return what precedes the first fetch.

    A log whose epochs are unknown cannot be compared with the leader's: only what is below the high watermark is certainly equal (KIP-101).
    """
    if log.epochs.latest is None and log.end_offset > log.high_watermark:
        return Truncate(log.high_watermark)
    return None


def next_high_watermark(log: FollowerLog, leader_high_watermark: int) -> int:
    """Return the follower's high watermark after the leader's, which is at most the end of its log and never falls (B2).

    Kafka's follower lowers it where a new leader has not learnt it yet; nothing needs that, since both are below what was committed.
    """
    return max(log.high_watermark, min(leader_high_watermark, log.end_offset))
