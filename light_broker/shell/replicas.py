"""Replica manager: the partitions that this broker hosts, and the only writer of their state and logs.

Everything runs on the event loop, in the order of the calls: a call appends or reads before its coroutine first waits, so that the
requests of a connection take effect in their order. Source: Kafka's ReplicaManager.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from kafka_log.format.producers import Origin
from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire.errors import ErrorCode
from kafka_wire.failures import WireError
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.port import ControlPlane
from light_broker.core.fetch_plan import Budget, answers_at_once
from light_broker.core.metadata_view import NO_EPOCH, NO_LEADER, MetadataView, PartitionView
from light_broker.core.partition import Follower, IsrRules, low_watermark, replication_error
from light_broker.core.replica_requests import (
    ACKS_ALL,
    ActiveProducer,
    AppendResult,
    DeletedRecords,
    EpochEnd,
    FetchParams,
    FetchPartition,
    FoundOffset,
    ReadLimit,
    ReadResult,
)
from light_broker.core.replication_quota import Side
from light_broker.shell.delayed import DelayedDeleteRecords, DelayedFetch, DelayedProduce
from light_broker.shell.follower_writes import DISK_ERRORS, FollowerWrites
from light_broker.shell.hosted_partition import HostedPartition
from light_broker.shell.isr_proposals import IsrProposals
from light_broker.shell.log_errors import OfflineLogError, WrongTopicIdError
from light_broker.shell.log_manager import LogManager
from light_broker.shell.offset_search import list_offset
from light_broker.shell.replication_throttles import ReplicationThrottles
from light_broker.shell.waiting import WaitingRequests

log = logging.getLogger(__name__)

VALID_ACKS = frozenset({-1, 0, 1})


class Fetchers(Protocol):
    """Fetchers that replicate what this broker follows (`ReplicaFetchers`)."""

    def follow(self, partition: TopicPartition, topic_id: UUID, leader_id: int, leader_epoch: int) -> None:
        """Replicate a partition from its leader."""

    def forget(self, partition: TopicPartition) -> None:
        """Stop replicating a partition."""


class NoFetchers:
    """A broker that is alone."""

    def follow(self, partition: TopicPartition, topic_id: UUID, leader_id: int, leader_epoch: int) -> None:
        """Replicate nothing."""

    def forget(self, partition: TopicPartition) -> None:
        """Replicate nothing."""


class ReplicaManager:
    """Partitions on this broker."""

    def __init__(
        self,
        broker_id: int,
        logs: LogManager,
        control: ControlPlane,
        *,
        view: Callable[[], MetadataView],
        isr_rules: Callable[[str], IsrRules],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Host nothing yet. `view` returns the present metadata, `isr_rules` the present settings of a topic for its ISR."""
        self._broker_id = broker_id
        self._logs = logs
        self._view = view
        self._isr_rules = isr_rules
        self._clock = clock
        self._hosted: dict[TopicPartition, HostedPartition] = {}
        self._offline: dict[TopicPartition, UUID] = {}
        self._waiting = WaitingRequests(self.now_ms)
        self._epochs_of: MetadataView | None = None
        self._eligible_epochs: dict[int, int] = {}
        self._proposals = IsrProposals(control, self._eligible, self._after_change)
        self._fetchers: Fetchers = NoFetchers()
        self._throttles: ReplicationThrottles | None = None
        self.follower_writes = FollowerWrites(self._hosted, logs, self._fail, self._waiting.wake)
        """Changes of logs by what leaders returned."""

    def replicate_by(self, fetchers: Fetchers) -> None:
        """Let fetchers replicate what this broker follows, from the next change of a role on."""
        self._fetchers = fetchers

    def throttle_by(self, throttles: ReplicationThrottles) -> None:
        """Hold back what followers fetch."""
        self._throttles = throttles

    # Called by the control plane

    async def lead(
        self, partition: TopicPartition, topic_id: UUID, state: PartitionView, *, is_new: bool = False
    ) -> ErrorCode:
        """Lead a partition, or take over another state; its log is created if it is missing.

        `is_new`: the partition was just created, so that it has no log in a directory that cannot be read. A state with a lower partition
        epoch than the present one is ignored. Return NONE, or why the broker does not lead it.
        """
        return await self._take_role(partition, topic_id, state, leads=True, is_new=is_new)

    async def follow(
        self, partition: TopicPartition, topic_id: UUID, state: PartitionView, *, is_new: bool = False
    ) -> ErrorCode:
        """Follow a partition's leader, or take over another state; as `lead`. Requests that wait are answered."""
        return await self._take_role(partition, topic_id, state, leads=False, is_new=is_new)

    async def _take_role(
        self, partition: TopicPartition, topic_id: UUID, state: PartitionView, *, leads: bool, is_new: bool
    ) -> ErrorCode:
        try:
            hosted = await self._host(partition, topic_id, is_new=is_new)
            taken = hosted.lead(state, self._broker_id, self.now_ms()) if leads else hosted.follow(state)
        except WrongTopicIdError as error:
            log.warning("Refusing to serve a partition", extra={"partition": _name(partition), "error": str(error)})
            return ErrorCode.INCONSISTENT_TOPIC_ID
        except (OfflineLogError, *DISK_ERRORS) as error:
            self._offline[partition] = topic_id
            self._fail(partition, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        if not taken:
            log.info("Ignoring an older state of a partition", extra={"partition": _name(partition)})
            return ErrorCode.NONE
        self._set_fetcher(hosted)
        self._after_change(partition)
        return ErrorCode.NONE

    def _set_fetcher(self, hosted: HostedPartition) -> None:
        role = hosted.role
        if isinstance(role, Follower):
            self._fetchers.follow(hosted.name, hosted.topic_id, role.leader_id, role.leader_epoch)
        else:
            self._fetchers.forget(hosted.name)

    async def _host(self, partition: TopicPartition, topic_id: UUID, *, is_new: bool) -> HostedPartition:
        opened = await self._logs.create(partition, None if topic_id == NO_TOPIC_ID else topic_id, is_new=is_new)
        hosted = self._hosted.get(partition)
        if hosted is None or hosted.log is not opened:
            hosted = HostedPartition(
                partition,
                topic_id,
                opened,
                self._isr_rules(partition.topic),
                high_watermark=self._logs.checkpointed_high_watermark(partition),
            )
            self._hosted[partition] = hosted
            self._offline.pop(partition, None)
        if hosted.topic_id == NO_TOPIC_ID:
            hosted.topic_id = topic_id  # The controller gives ids to topics from before ids existed.
        return hosted

    async def stop(self, partition: TopicPartition, *, delete: bool) -> ErrorCode:
        """Stop hosting a partition; with `delete` its log is deleted. Return NONE, or why it is not deleted."""
        self._fetchers.forget(partition)
        self._hosted.pop(partition, None)
        self._offline.pop(partition, None)
        self._waiting.wake(partition)
        if not delete:
            return ErrorCode.NONE
        try:
            await self._logs.delete(partition)
        except (OfflineLogError, *DISK_ERRORS) as error:
            log.warning(
                "Failed to delete the log of a partition", extra={"partition": _name(partition), "error": str(error)}
            )
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def log_directory_failed(self, partitions: Sequence[TopicPartition]) -> None:
        """Take partitions offline: their requests are answered with KAFKA_STORAGE_ERROR."""
        for partition in partitions:
            hosted = self._hosted.pop(partition, None)
            self._fetchers.forget(partition)
            if hosted is not None:
                self._offline[partition] = hosted.topic_id
                self._waiting.wake(partition)

    def reconfigure(self, topic: str) -> None:
        """Take over changed settings of a topic for its ISR."""
        rules = self._isr_rules(topic)
        for partition, hosted in list(self._hosted.items()):
            if partition.topic == topic:
                hosted.rules = rules
                self._after_change(partition)

    def shrink_isrs(self) -> None:
        """Propose ISRs without followers that lag for too long. Called periodically, each half of replica.lag.time.max.ms."""
        now_ms = self.now_ms()
        for hosted in list(self._hosted.values()):
            if (pending := hosted.shrink(now_ms)) is not None:
                self._proposals.propose(hosted, pending)

    async def close(self) -> None:
        """End timers and proposals. Requests that still wait are answered by their cancellation."""
        self._waiting.close()
        await self._proposals.close()

    # Produce

    async def append(
        self,
        records: Mapping[TopicPartition, bytes],
        *,
        acks: int,
        timeout_ms: int,
        origin: Origin = Origin.CLIENT,
        allow_internal: bool = False,
    ) -> dict[TopicPartition, AppendResult]:
        """Append one batch to each partition, before the first wait.

        Returns at once with acks 0 and 1, or after a flush if flush.messages requires one. With acks -1 it returns when the high watermarks
        have passed the batches, or after `timeout_ms` with REQUEST_TIMED_OUT for the partitions that wait still. `allow_internal` is for
        coordinators and brokers.
        """
        if acks not in VALID_ACKS:
            return dict.fromkeys(records, AppendResult(ErrorCode.INVALID_REQUIRED_ACKS))
        results = {
            partition: self._append_one(partition, data, acks, origin, allow_internal=allow_internal)
            for partition, data in records.items()
        }
        for partition, result in results.items():
            if result.error is ErrorCode.NONE:
                self._after_change(partition)
        await self._flush_due(results)
        if acks == ACKS_ALL and any(result.error is ErrorCode.NONE for result in results.values()):
            await self._waiting.wait(DelayedProduce(results, self._replication_error), results, timeout_ms)
        return results

    async def _flush_due(self, results: dict[TopicPartition, AppendResult]) -> None:
        """Write the logs to the disk in which as many records as flush.messages wait for it. A failure is the result of the append."""
        due = [
            partition
            for partition, result in results.items()
            if result.error is ErrorCode.NONE
            and (hosted := self._hosted.get(partition)) is not None
            and hosted.log.is_flush_due_by_messages()
        ]
        flushed = await asyncio.gather(*map(self._logs.flush, due), return_exceptions=True) if due else ()
        for partition, outcome in zip(due, flushed, strict=True):
            if isinstance(outcome, OfflineLogError):
                results[partition] = AppendResult(ErrorCode.KAFKA_STORAGE_ERROR)
            elif isinstance(outcome, BaseException):
                raise outcome

    def _append_one(
        self, partition: TopicPartition, data: bytes, acks: int, origin: Origin, *, allow_internal: bool
    ) -> AppendResult:
        if not allow_internal and self._is_internal(partition.topic):
            return AppendResult(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Clients do not write to {partition.topic}.")
        hosted = self._hosted.get(partition)
        if hosted is None:
            return AppendResult(self._missing(partition))
        try:
            return hosted.append(data, acks, origin)
        except DISK_ERRORS as error:
            self._fail(partition, error)
            return AppendResult(ErrorCode.KAFKA_STORAGE_ERROR)

    def _replication_error(self, partition: TopicPartition, required_offset: int) -> ErrorCode | None:
        hosted = self._hosted.get(partition)
        if hosted is None or hosted.role is None:
            return self._missing(partition)
        return replication_error(
            hosted.role, hosted.rules, high_watermark=hosted.high_watermark, required_offset=required_offset
        )

    # Fetch

    async def fetch(
        self, params: FetchParams, partitions: Mapping[TopicPartition, FetchPartition]
    ) -> dict[TopicPartition, ReadResult]:
        """Read from partitions in their order; waits up to `max_wait_ms` for `min_bytes`, a failure or a diverging epoch.

        A follower's fetch advances its progress, and with it the high watermark and the ISR.
        """
        results = self._read_all(params, partitions)
        if params.is_from_follower:
            self._note_progress(params, partitions, results)
        size_bytes = sum(len(result.records) for result in results.values())
        if answers_at_once(params, list(results.values()), size_bytes):
            return results
        operation = DelayedFetch(params, partitions, self._readable_bytes)
        await self._waiting.wait(operation, partitions, params.max_wait_ms)
        return self._read_all(params, partitions)

    def read(self, partition: TopicPartition, offset: int, max_bytes: int) -> ReadResult:
        """Read up to the log's end, as a coordinator that loads its state."""
        params = FetchParams(limit=ReadLimit.LOG_END, max_bytes=max_bytes)
        request = FetchPartition(NO_TOPIC_ID, offset, max_bytes)
        return self._read_all(params, {partition: request})[partition]

    def _read_all(
        self, params: FetchParams, partitions: Mapping[TopicPartition, FetchPartition]
    ) -> dict[TopicPartition, ReadResult]:
        budget = Budget(params.max_bytes)
        return {
            partition: self._read_one(partition, request, params, budget) for partition, request in partitions.items()
        }

    def _read_one(
        self, partition: TopicPartition, request: FetchPartition, params: FetchParams, budget: Budget
    ) -> ReadResult:
        hosted = self._hosted.get(partition)
        if hosted is None:
            return ReadResult(self._missing(partition))
        if request.topic_id not in {NO_TOPIC_ID, hosted.topic_id}:
            return ReadResult(ErrorCode.INCONSISTENT_TOPIC_ID)
        try:
            given = Budget(0, is_empty=False) if self._holds_back(partition, params) else budget
            result, found = hosted.read(request, params, given, self.now_ms())
            if found is None:
                return result
            records = found.read()
            if params.is_from_follower and self._throttles is not None:
                self._throttles.add(Side.LEADER, partition, len(records))
        except DISK_ERRORS as error:
            self._fail(partition, error)
            return ReadResult(ErrorCode.KAFKA_STORAGE_ERROR)
        if params.limit is not ReadLimit.LAST_STABLE_OFFSET:
            return result.with_records(records, None)
        return result.with_records(records, hosted.aborted_transactions(request.fetch_offset, records))

    def _holds_back(self, partition: TopicPartition, params: FetchParams) -> bool:
        """Return whether a follower gets no records of a partition now (KIP-73)."""
        return (
            params.is_from_follower
            and self._throttles is not None
            and self._throttles.holds_back(Side.LEADER, partition, params.replica_id)
        )

    def _note_progress(
        self,
        params: FetchParams,
        partitions: Mapping[TopicPartition, FetchPartition],
        results: Mapping[TopicPartition, ReadResult],
    ) -> None:
        now_ms = self.now_ms()
        for partition, request in partitions.items():
            result, hosted = results[partition], self._hosted.get(partition)
            if hosted is None or result.error is not ErrorCode.NONE or result.diverging is not None:
                continue
            pending = hosted.fetched_by(params.replica_id, params.replica_epoch, request, self._eligible(), now_ms)
            if pending is not None:
                self._proposals.propose(hosted, pending)
            self._after_progress(partition)

    def _readable_bytes(self, partition: TopicPartition, request: FetchPartition, params: FetchParams) -> int | None:
        hosted = self._hosted.get(partition)
        size = None if hosted is None else hosted.readable_bytes(request, params)
        return 0 if size and self._holds_back(partition, params) else size

    # ListOffsets, OffsetForLeaderEpoch, DeleteRecords, DescribeProducers

    def list_offset(
        self,
        partition: TopicPartition,
        timestamp_ms: int,
        limit: ReadLimit,
        *,
        current_leader_epoch: int = NO_EPOCH,
        only_leader: bool = True,
    ) -> FoundOffset:
        """Search an offset by timestamp or special timestamp. `limit` LOG_END is for replicas: clients see nothing above their limit.

        A client gets OFFSET_NOT_AVAILABLE from a leader that does not know yet where the records of earlier epochs end.
        """
        hosted = self._hosted.get(partition)
        if hosted is None:
            return FoundOffset(self._missing(partition))
        error = hosted.access_error(current_leader_epoch, only_leader=only_leader)
        if error is not ErrorCode.NONE:
            return FoundOffset(error)
        try:
            return list_offset(hosted, timestamp_ms, limit)
        except DISK_ERRORS as failure:
            self._fail(partition, failure)
            return FoundOffset(ErrorCode.KAFKA_STORAGE_ERROR)
        except WireError as failure:
            extra = {"partition": _name(partition), "error": str(failure)}
            log.warning("Failed to read a batch to search a timestamp", extra=extra)
            return FoundOffset(ErrorCode.UNKNOWN_SERVER_ERROR)

    def end_of_epoch(self, partition: TopicPartition, epoch: int, *, current_leader_epoch: int = NO_EPOCH) -> EpochEnd:
        """Return where an epoch ends in the leader's log (OffsetForLeaderEpoch)."""
        hosted = self._hosted.get(partition)
        if hosted is None:
            return EpochEnd(self._missing(partition))
        return hosted.end_of_epoch(epoch, current_leader_epoch)

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int
    ) -> dict[TopicPartition, DeletedRecords]:
        """Move the starts of logs up, and wait until the logs of all live replicas start there (DeleteRecords)."""
        results, required = {}, {}
        for partition, offset in offsets.items():
            results[partition], required[partition] = self._delete_records_of(partition, offset)
        operation = DelayedDeleteRecords(results, required, self._low_watermark)
        await self._waiting.wait(operation, offsets, timeout_ms)
        return results

    def _delete_records_of(self, partition: TopicPartition, offset: int) -> tuple[DeletedRecords, int]:
        if self._is_internal(partition.topic):
            return DeletedRecords(ErrorCode.INVALID_TOPIC_EXCEPTION), offset
        hosted = self._hosted.get(partition)
        if hosted is None:
            return DeletedRecords(self._missing(partition)), offset
        try:
            return hosted.delete_records(offset, self._eligible())
        except DISK_ERRORS as error:
            self._fail(partition, error)
            return DeletedRecords(ErrorCode.KAFKA_STORAGE_ERROR), offset

    def _low_watermark(self, partition: TopicPartition) -> DeletedRecords:
        hosted = self._hosted.get(partition)
        if hosted is None:
            return DeletedRecords(self._missing(partition))
        if hosted.leader is None:
            return DeletedRecords(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return DeletedRecords(low_watermark=low_watermark(hosted.leader, hosted.log.start_offset, self._eligible()))

    def active_producers(self, partition: TopicPartition) -> list[ActiveProducer] | ErrorCode:
        """Return the producers in a partition's log (DescribeProducers)."""
        hosted = self._hosted.get(partition)
        return self._missing(partition) if hosted is None else hosted.active_producers()

    # State

    def leader_of(self, partition: TopicPartition) -> tuple[int, int]:
        """Return id and epoch of a partition's leader as this broker knows them, for the answers of KIP-951; -1 for none."""
        hosted = self._hosted.get(partition)
        if hosted is not None and hosted.role is not None:
            return hosted.role.leader_id, hosted.role.leader_epoch
        known = self._view().partition(partition)
        return (NO_LEADER, NO_EPOCH) if known is None else (known.leader, known.leader_epoch)

    def is_leader(self, partition: TopicPartition) -> bool:
        """Return whether this broker leads a partition."""
        hosted = self._hosted.get(partition)
        return hosted is not None and hosted.leader is not None

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """Return the high watermark of a hosted partition."""
        hosted = self._hosted.get(partition)
        return None if hosted is None else hosted.high_watermark

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Return the high watermarks of all hosted partitions, for their checkpoint file."""
        return {partition: hosted.high_watermark for partition, hosted in self._hosted.items()}

    def hosted(self) -> Mapping[TopicPartition, HostedPartition]:
        """Return the partitions with a log here."""
        return self._hosted

    # Changes and waits

    def _after_change(self, partition: TopicPartition) -> None:
        """Raise the high watermark where followers allow it, and answer the requests that a changed partition satisfies."""
        hosted = self._hosted.get(partition)
        if hosted is not None:
            hosted.advance(self._eligible(), self.now_ms())
        self._waiting.wake(partition)

    def _after_progress(self, partition: TopicPartition) -> None:
        """Answer the requests that a follower's progress satisfies. A fetch waits only for the high watermark."""
        hosted = self._hosted[partition]
        if hosted.advance(self._eligible(), self.now_ms()):
            self._waiting.wake(partition)
        else:
            self._waiting.wake_deletions(partition)

    # Helpers

    def _missing(self, partition: TopicPartition) -> ErrorCode:
        """Return the error for a partition that is not hosted here."""
        if partition in self._offline or self._logs.offline_reason(partition) is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self._view().partition(partition) is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _is_internal(self, topic: str) -> bool:
        known = self._view().topics.get(topic)
        return known is not None and known.is_internal

    def _eligible(self) -> Mapping[int, int]:
        """Return the broker epochs of the brokers that may join an ISR (Partition.isReplicaIsrEligible)."""
        view = self._view()
        if view is not self._epochs_of:
            self._epochs_of = view
            self._eligible_epochs = {
                each.id: each.epoch
                for each in view.brokers.values()
                if not each.is_fenced and not each.is_shutting_down
            }
        return self._eligible_epochs

    def _fail(self, partition: TopicPartition, error: Exception) -> None:
        log.error("Failed to use the log of a partition", extra={"partition": _name(partition), "error": str(error)})
        self._logs.report_failure(partition, error)
        self.log_directory_failed([partition])

    def now_ms(self) -> int:
        """Return the time since some fixed point in milliseconds."""
        return int(self._clock() * 1000)


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"
