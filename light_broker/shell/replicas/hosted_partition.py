"""A partition that this broker hosts: its role, its high watermark and its log.

Only the replica manager calls it, on the event loop. Decisions are those of `core`; this module applies them to the log. Source: Kafka's
Partition, and UnifiedLog for the high watermark.
"""

from collections.abc import Mapping
from uuid import UUID

from kafka_log.errors import InvalidAppendError, OffsetOutOfRangeError, RefusedAppendError
from kafka_log.files.log import LogSlice
from kafka_log.files.partition_log import PartitionLog
from kafka_log.format.epochs import EpochStart
from kafka_log.format.producers import Origin
from kafka_log.format.transaction_index import AbortedTransaction
from kafka_wire import ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.fetch_plan import Budget, last_stable_offset, limit_offset
from light_broker.core.follower_progress import FollowerProgress
from light_broker.core.isr import Pending
from light_broker.core.metadata_view import PartitionView
from light_broker.core.partition import (
    IsrRules,
    Leader,
    Role,
    access_error,
    expansion,
    follow,
    follower_error,
    lead,
    low_watermark,
    next_high_watermark,
    produce_error,
    shrink,
    with_isr,
    with_progress,
)
from light_broker.core.read_replica import preferred_read_replica
from light_broker.core.replica_requests import (
    ACKS_ALL,
    NO_OFFSET,
    ActiveProducer,
    AppendResult,
    DeletedRecords,
    EpochEnd,
    FetchParams,
    FetchPartition,
    ReadLimit,
    ReadResult,
)
from light_broker.core.truncation import is_diverging

UNREADABLE_BATCHES = frozenset(
    {ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
)
"""Errors of an append that are answered without the log's start (ReplicaManager.appendToLocalLog)."""

HIGH_WATERMARK = -1
"""Offset in DeleteRecords that means the high watermark."""


class HostedPartition:
    """An online partition. A failed write of its log raises LogWriteError or FlushFailedError, and takes it offline."""

    def __init__(
        self, name: TopicPartition, topic_id: UUID, log: PartitionLog, rules: IsrRules, *, high_watermark: int
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.rules = rules
        self.role: Role | None = None
        self.high_watermark = min(max(high_watermark, log.start_offset), log.end_offset)
        log.producers.advance_high_watermark(self.high_watermark)

    # State

    def lead(self, view: PartitionView, broker_id: int, now_ms: int) -> bool:
        """Become the leader, or apply another state; return whether `view` is not older than the current state."""
        leader = lead(self.role, view, broker_id, end_offset=self.log.end_offset, now_ms=now_ms)
        if leader is None:
            return False
        if not isinstance(self.role, Leader) or leader.leader_epoch != self.role.leader_epoch:
            # A follower may have records of a later epoch than the last one here: it must find where this epoch begins.
            self.log.log.assign_epoch(leader.leader_epoch)
        self.role = leader
        return True

    def follow(self, view: PartitionView) -> bool:
        """Become a follower, or apply another state; return whether `view` is not older than the current state."""
        follower = follow(self.role, view)
        if follower is None:
            return False
        self.role = follower
        return True

    @property
    def leader(self) -> Leader | None:
        """The state of the leader, None on a follower."""
        return self.role if isinstance(self.role, Leader) else None

    def stable_offset(self) -> int:
        """Return the last stable offset."""
        return last_stable_offset(self.log.producers.first_unstable_offset, self.high_watermark)

    def limit(self, limit: ReadLimit) -> int:
        """Return the offset up to which a read sees records."""
        return limit_offset(
            limit,
            end_offset=self.log.end_offset,
            high_watermark=self.high_watermark,
            stable_offset=self.stable_offset() if limit is ReadLimit.LAST_STABLE_OFFSET else self.high_watermark,
        )

    def access_error(self, current_leader_epoch: int, *, only_leader: bool) -> ErrorCode:
        """Return why a request may not be served here, NONE if it may."""
        if self.role is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return access_error(self.role, current_leader_epoch, only_leader=only_leader)

    def advance(self, eligible_epochs: Mapping[int, int], now_ms: int) -> bool:
        """Raise the leader's high watermark as far as its followers allow; return whether it rose."""
        if not isinstance(self.role, Leader):
            return False
        high_watermark = next_high_watermark(
            self.role,
            self.high_watermark,
            self.rules,
            eligible_epochs,
            end_offset=self.log.end_offset,
            now_ms=now_ms,
        )
        return self.take_high_watermark(high_watermark)

    def take_high_watermark(self, high_watermark: int) -> bool:
        """Set another high watermark; return whether it changed."""
        if high_watermark == self.high_watermark:
            return False
        self.high_watermark = high_watermark
        self.log.producers.advance_high_watermark(high_watermark)
        return True

    def truncated(self) -> None:
        """Keep the high watermark within the log after records were removed."""
        self.high_watermark = min(max(self.high_watermark, self.log.start_offset), self.log.end_offset)
        self.log.producers.advance_high_watermark(self.high_watermark)

    # Appending

    def append(self, data: bytes | memoryview, acks: int, origin: Origin) -> AppendResult:
        """Append one batch."""
        leader = self.leader
        if leader is None:
            return AppendResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if acks == ACKS_ALL and (error := produce_error(leader, self.rules)) is not ErrorCode.NONE:
            return AppendResult(error, log_start_offset=self.log.start_offset)
        try:
            appended = self.log.append_as_leader(data, leader.leader_epoch, origin)
        except RefusedAppendError as error:
            start_offset = NO_OFFSET if error.error_code in UNREADABLE_BATCHES else self.log.start_offset
            return AppendResult(
                error.error_code, str(error), log_start_offset=start_offset, record_errors=error.record_errors
            )
        except InvalidAppendError as error:
            return AppendResult(ErrorCode.CORRUPT_MESSAGE, str(error))
        return AppendResult(
            base_offset=appended.first_offset,
            last_offset=appended.last_offset,
            log_append_time_ms=appended.log_append_time_ms,
            log_start_offset=self.log.start_offset,
        )

    # Reading

    def read(
        self, request: FetchPartition, params: FetchParams, budget: Budget, now_ms: int
    ) -> tuple[ReadResult, LogSlice | None]:
        """Return what a Fetch request gets, without the records, and where these are."""
        only_leader = params.is_from_follower or not params.reads_from_followers
        error = self.access_error(request.current_leader_epoch, only_leader=only_leader)
        if error is ErrorCode.NONE and params.is_from_follower and self.leader is not None:
            error = follower_error(self.leader, params.replica_id, params.replica_epoch, request.current_leader_epoch)
        if error is not ErrorCode.NONE:
            return ReadResult(error), None
        stable_offset = self.stable_offset()
        start_offset = self.log.start_offset
        known = ReadResult(
            high_watermark=self.high_watermark,
            last_stable_offset=stable_offset,
            log_start_offset=start_offset,
            aborted=() if params.limit is ReadLimit.LAST_STABLE_OFFSET else None,
        )
        if request.last_fetched_epoch >= 0:
            end = self._end_of(request.last_fetched_epoch)
            if end is None or request.fetch_offset < start_offset:
                return ReadResult(ErrorCode.OFFSET_OUT_OF_RANGE), None
            if is_diverging(end, fetch_offset=request.fetch_offset, last_fetched_epoch=request.last_fetched_epoch):
                return known.with_divergence(end), None
        if (preferred := self._preferred(request, params, now_ms)) is not None:
            return known.with_preferred(preferred), None
        limit_bytes = budget.limit(request.max_bytes)
        try:
            found = self.log.log.locate(request.fetch_offset, limit_bytes, up_to=self.limit(params.limit))
        except OffsetOutOfRangeError:
            return ReadResult(ErrorCode.OFFSET_OUT_OF_RANGE), None
        if not budget.takes(found.size_bytes, limit_bytes):
            return known, None
        return known, found

    def _preferred(self, request: FetchPartition, params: FetchParams, now_ms: int) -> int | None:
        """Return the follower that the consumer should read from, None for this broker."""
        if not params.racks or self.leader is None:
            return None
        return preferred_read_replica(self.leader, params.racks, params.rack, request.fetch_offset, now_ms=now_ms)

    def aborted_transactions(self, fetch_offset: int, found: LogSlice) -> list[AbortedTransaction]:
        """Return the aborted transactions that may have records among those that were found from `fetch_offset` on."""
        return self.log.aborted_transactions(fetch_offset, self.log.log.upper_bound_offset(found))

    def readable_bytes(self, request: FetchPartition, params: FetchParams) -> int | None:
        """Return how many bytes a waiting Fetch request gets now; None if it has to be answered whatever it gets."""
        only_leader = params.is_from_follower or not params.reads_from_followers
        if self.access_error(request.current_leader_epoch, only_leader=only_leader) is not ErrorCode.NONE:
            return None
        if request.last_fetched_epoch >= 0:
            end = self._end_of(request.last_fetched_epoch)
            if end is None or is_diverging(
                end, fetch_offset=request.fetch_offset, last_fetched_epoch=request.last_fetched_epoch
            ):
                return None
        up_to = self.limit(params.limit)
        if request.fetch_offset == up_to:
            return 0
        if request.fetch_offset > up_to or request.fetch_offset < self.log.start_offset:
            return None
        if params.min_bytes <= 1:
            return 1
        found = self.log.log.locate(request.fetch_offset, request.max_bytes, up_to=up_to)
        # A read ends with its segment, so that one of an older segment gets no more by waiting.
        return None if found.segment is not self.log.log.segments[-1] else min(found.size_bytes, request.max_bytes)

    def end_of_epoch(self, epoch: int, current_leader_epoch: int) -> EpochEnd:
        """Return where an epoch ends in the leader's log."""
        error = self.access_error(current_leader_epoch, only_leader=True)
        if error is not ErrorCode.NONE:
            return EpochEnd(error)
        end = self._end_of(epoch)
        return EpochEnd() if end is None else EpochEnd(epoch=end.epoch, end_offset=end.start_offset)

    def _end_of(self, epoch: int) -> EpochStart | None:
        """Return the largest epoch of the log up to `epoch`, and its end."""
        return self.log.log.epochs.end_offset_for(epoch, self.log.end_offset) if epoch >= 0 else None

    def active_producers(self) -> list[ActiveProducer]:
        """Return the producers in the log."""
        return [
            ActiveProducer(
                entry.producer_id,
                entry.epoch,
                entry.last_sequence,
                entry.last_timestamp_ms,
                entry.coordinator_epoch,
                NO_OFFSET if entry.transaction_first_offset is None else entry.transaction_first_offset,
            )
            for entry in self.log.producers.entries.values()
        ]

    # Removing

    def delete_records(self, offset: int, live_brokers: Mapping[int, int]) -> tuple[DeletedRecords, int]:
        """Move the log's start up to `offset`; return the low watermark then, and the offset that it has to reach."""
        leader = self.leader
        if leader is None:
            return DeletedRecords(ErrorCode.NOT_LEADER_OR_FOLLOWER), offset
        settings = self.log.settings
        if settings.append.is_compacted and not settings.retention.deletes:
            return DeletedRecords(ErrorCode.POLICY_VIOLATION), offset
        if offset == HIGH_WATERMARK:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            return DeletedRecords(ErrorCode.OFFSET_OUT_OF_RANGE), offset
        self.log.raise_start_offset(offset, high_watermark=self.high_watermark)
        return DeletedRecords(low_watermark=low_watermark(leader, self.log.start_offset, live_brokers)), offset

    # Followers

    def fetched_by(
        self,
        broker_id: int,
        broker_epoch: int,
        request: FetchPartition,
        eligible_epochs: Mapping[int, int],
        now_ms: int,
    ) -> Pending | None:
        """Note the progress of a follower that fetched; return a change of the ISR that the controller is to be asked for."""
        leader = self.leader
        if leader is None or broker_id not in leader.followers:
            return None
        progress: FollowerProgress = leader.followers[broker_id].after_fetch(
            fetch_offset=request.fetch_offset,
            start_offset=request.log_start_offset,
            leader_end_offset=self.log.end_offset,
            broker_epoch=broker_epoch,
            now_ms=now_ms,
        )
        leader = with_progress(leader, broker_id, progress)
        pending = expansion(leader, broker_id, self.high_watermark, eligible_epochs)
        self.role = leader if pending is None else with_isr(leader, pending)
        return pending

    def shrink(self, now_ms: int) -> Pending | None:
        """Return the change of the ISR that removes followers which lag for too long."""
        leader = self.leader
        if leader is None:
            return None
        pending = shrink(leader, self.rules, end_offset=self.log.end_offset, now_ms=now_ms)
        if pending is not None:
            self.role = with_isr(leader, pending)
        return pending
