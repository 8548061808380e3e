"""Writes of clients and coordinators to partitions that this broker leads: Produce and DeleteRecords.

A call changes the logs before its coroutine first waits, so that the requests of a connection take effect in their order. Source: Kafka's
ReplicaManager.appendRecords and deleteRecords.
"""

import asyncio
from collections.abc import Mapping

from kafka_log.format.producers import Origin
from kafka_wire import ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.partition import low_watermark, replication_error
from light_broker.core.replica_requests import ACKS_ALL, AppendResult, DeletedRecords
from light_broker.shell.logs.errors import OfflineLogError
from light_broker.shell.logs.manager import LogManager
from light_broker.shell.replicas.delayed import DelayedDeleteRecords, DelayedProduce
from light_broker.shell.replicas.follower_writes import DISK_ERRORS
from light_broker.shell.replicas.hosted_partitions import HostedPartitions

VALID_ACKS = frozenset({-1, 0, 1})


class LeaderWrites:
    """Changes of the logs of leaders."""

    def __init__(self, partitions: HostedPartitions, logs: LogManager) -> None:
        self._partitions = partitions
        self._logs = logs

    async def append(
        self,
        records: Mapping[TopicPartition, bytes | memoryview],
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
        appended = [partition for partition, result in results.items() if result.error is ErrorCode.NONE]
        for partition in appended:
            self._partitions.after_change(partition)
        if due := [partition for partition in appended if self._is_flush_due(partition)]:
            await self._flush(due, results)
        if acks == ACKS_ALL and any(result.error is ErrorCode.NONE for result in results.values()):
            await self._partitions.waiting.wait(DelayedProduce(results, self._replication_error), results, timeout_ms)
        return results

    def _is_flush_due(self, partition: TopicPartition) -> bool:
        """Return whether as many records as flush.messages wait for the disk."""
        hosted = self._partitions.get(partition)
        return hosted is not None and hosted.log.is_flush_due_by_messages()

    async def _flush(self, due: list[TopicPartition], results: dict[TopicPartition, AppendResult]) -> None:
        """Write logs to the disk. A failure is the result of the append."""
        flushed = await asyncio.gather(*map(self._logs.flush, due), return_exceptions=True)
        for partition, outcome in zip(due, flushed, strict=True):
            if isinstance(outcome, OfflineLogError):
                results[partition] = AppendResult(ErrorCode.KAFKA_STORAGE_ERROR)
            elif isinstance(outcome, BaseException):
                raise outcome

    def _append_one(
        self, partition: TopicPartition, data: bytes | memoryview, acks: int, origin: Origin, *, allow_internal: bool
    ) -> AppendResult:
        if not allow_internal and self._partitions.is_internal(partition.topic):
            return AppendResult(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Clients do not write to {partition.topic}.")
        hosted = self._partitions.get(partition)
        if hosted is None:
            return AppendResult(self._partitions.missing(partition))
        try:
            return hosted.append(data, acks, origin)
        except DISK_ERRORS as error:
            self._partitions.fail(partition, error)
            return AppendResult(ErrorCode.KAFKA_STORAGE_ERROR)

    def _replication_error(self, partition: TopicPartition, required_offset: int) -> ErrorCode | None:
        hosted = self._partitions.get(partition)
        if hosted is None or hosted.role is None:
            return self._partitions.missing(partition)
        return replication_error(
            hosted.role, hosted.rules, high_watermark=hosted.high_watermark, required_offset=required_offset
        )

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int
    ) -> dict[TopicPartition, DeletedRecords]:
        """Move the starts of logs up, and wait until the logs of all live replicas start there (DeleteRecords)."""
        results, required = {}, {}
        for partition, offset in offsets.items():
            results[partition], required[partition] = self._delete_records_of(partition, offset)
        operation = DelayedDeleteRecords(results, required, self._low_watermark)
        await self._partitions.waiting.wait(operation, offsets, timeout_ms)
        return results

    def _delete_records_of(self, partition: TopicPartition, offset: int) -> tuple[DeletedRecords, int]:
        if self._partitions.is_internal(partition.topic):
            return DeletedRecords(ErrorCode.INVALID_TOPIC_EXCEPTION), offset
        hosted = self._partitions.get(partition)
        if hosted is None:
            return DeletedRecords(self._partitions.missing(partition)), offset
        try:
            return hosted.delete_records(offset, self._partitions.eligible())
        except DISK_ERRORS as error:
            self._partitions.fail(partition, error)
            return DeletedRecords(ErrorCode.KAFKA_STORAGE_ERROR), offset

    def _low_watermark(self, partition: TopicPartition) -> DeletedRecords:
        hosted = self._partitions.get(partition)
        if hosted is None:
            return DeletedRecords(self._partitions.missing(partition))
        if hosted.leader is None:
            return DeletedRecords(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return DeletedRecords(
            low_watermark=low_watermark(hosted.leader, hosted.log.start_offset, self._partitions.eligible())
        )
