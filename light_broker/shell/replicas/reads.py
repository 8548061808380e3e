"""Reads of clients, followers and coordinators from the partitions on this broker: Fetch, ListOffsets and descriptions of logs.

Source: Kafka's ReplicaManager.fetchMessages, readFromLog and fetchOffset.
"""

import logging
from collections.abc import Mapping, Sized

from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire import ErrorCode
from kafka_wire.failures import WireError
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.fetch_plan import Budget, answers_at_once
from light_broker.core.metadata_view import NO_EPOCH
from light_broker.core.replica_requests import (
    ActiveProducer,
    EpochEnd,
    FetchParams,
    FetchPartition,
    FoundOffset,
    ReadLimit,
    ReadResult,
)
from light_broker.core.replication_quota import Side
from light_broker.shell.replicas.delayed import DelayedFetch
from light_broker.shell.replicas.follower_writes import DISK_ERRORS
from light_broker.shell.replicas.hosted_partitions import HostedPartitions
from light_broker.shell.replicas.isr_proposals import IsrProposals
from light_broker.shell.replicas.offset_search import list_offset
from light_broker.shell.replicas.throttles import ReplicationThrottles

log = logging.getLogger(__name__)


class ReplicaReads:
    """Reads of logs, and what the fetches of followers change."""

    def __init__(self, partitions: HostedPartitions, proposals: IsrProposals) -> None:
        self._partitions = partitions
        self._proposals = proposals
        self._throttles: ReplicationThrottles | None = None

    def throttle_by(self, throttles: ReplicationThrottles) -> None:
        """Hold back what followers fetch."""
        self._throttles = throttles

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
        await self._partitions.waiting.wait(operation, partitions, params.max_wait_ms)
        return self._read_all(params, partitions)

    def read(self, partition: TopicPartition, offset: int, max_bytes: int) -> tuple[ReadResult, bytes]:
        """Read up to the log's end, as a coordinator that loads its state; the second value is the records."""
        params = FetchParams(limit=ReadLimit.LOG_END, max_bytes=max_bytes)
        request = FetchPartition(NO_TOPIC_ID, offset, max_bytes)
        result = self._read_one(partition, request, params, Budget(max_bytes), as_bytes=True)
        assert isinstance(result.records, bytes)
        return result, result.records

    def _read_all(
        self, params: FetchParams, partitions: Mapping[TopicPartition, FetchPartition]
    ) -> dict[TopicPartition, ReadResult]:
        budget = Budget(params.max_bytes)
        return {
            partition: self._read_one(partition, request, params, budget) for partition, request in partitions.items()
        }

    def _read_one(
        self,
        partition: TopicPartition,
        request: FetchPartition,
        params: FetchParams,
        budget: Budget,
        *,
        as_bytes: bool = False,
    ) -> ReadResult:
        """Return where the records are, which are read while the response is sent, or the records, `as_bytes`."""
        hosted = self._partitions.get(partition)
        if hosted is None:
            return ReadResult(self._partitions.missing(partition))
        if request.topic_id not in {NO_TOPIC_ID, hosted.topic_id}:
            return ReadResult(ErrorCode.INCONSISTENT_TOPIC_ID)
        try:
            given = Budget(0, is_empty=False) if self._holds_back(partition, params) else budget
            result, batches = hosted.read(request, params, given, self._partitions.now_ms())
            if batches is None or not batches.size_bytes:
                return result
            records: Sized = batches.read() if as_bytes else batches.slice_for(self._partitions.disk_runner(partition))
            if params.is_from_follower and self._throttles is not None:
                self._throttles.add(Side.LEADER, partition, len(records))
            if params.limit is not ReadLimit.LAST_STABLE_OFFSET:
                return result.with_records(records, None)
            return result.with_records(records, hosted.aborted_transactions(request.fetch_offset, batches))
        except DISK_ERRORS as error:
            self._partitions.fail(partition, error)
            return ReadResult(ErrorCode.KAFKA_STORAGE_ERROR)

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
        now_ms = self._partitions.now_ms()
        for partition, request in partitions.items():
            result, hosted = results[partition], self._partitions.get(partition)
            if hosted is None or result.error is not ErrorCode.NONE or result.diverging is not None:
                continue
            pending = hosted.fetched_by(
                params.replica_id, params.replica_epoch, request, self._partitions.eligible(), now_ms
            )
            if pending is not None:
                self._proposals.propose(hosted, pending)
            self._partitions.after_progress(partition)

    def _readable_bytes(self, partition: TopicPartition, request: FetchPartition, params: FetchParams) -> int | None:
        hosted = self._partitions.get(partition)
        size = None if hosted is None else hosted.readable_bytes(request, params)
        return 0 if size and self._holds_back(partition, params) else size

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
        hosted = self._partitions.get(partition)
        if hosted is None:
            return FoundOffset(self._partitions.missing(partition))
        error = hosted.access_error(current_leader_epoch, only_leader=only_leader)
        if error is not ErrorCode.NONE:
            return FoundOffset(error)
        try:
            return list_offset(hosted, timestamp_ms, limit)
        except DISK_ERRORS as failure:
            self._partitions.fail(partition, failure)
            return FoundOffset(ErrorCode.KAFKA_STORAGE_ERROR)
        except WireError as failure:
            extra = {"partition": str(partition), "error": str(failure)}
            log.warning("Failed to read a batch to search a timestamp", extra=extra)
            return FoundOffset(ErrorCode.UNKNOWN_SERVER_ERROR)

    def end_of_epoch(self, partition: TopicPartition, epoch: int, *, current_leader_epoch: int = NO_EPOCH) -> EpochEnd:
        """Return where an epoch ends in the leader's log (OffsetForLeaderEpoch)."""
        hosted = self._partitions.get(partition)
        if hosted is None:
            return EpochEnd(self._partitions.missing(partition))
        return hosted.end_of_epoch(epoch, current_leader_epoch)

    def active_producers(self, partition: TopicPartition) -> list[ActiveProducer] | ErrorCode:
        """Return the producers in a partition's log (DescribeProducers)."""
        hosted = self._partitions.get(partition)
        return self._partitions.missing(partition) if hosted is None else hosted.active_producers()
