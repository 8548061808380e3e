"""Changes of a follower's log by what its leader returned. Source: Kafka's ReplicaFetcherThread, and Partition for the follower's log.

Each call checks first that the broker still follows in the leader epoch of the request: the control plane may have changed the role since.
"""

import logging
from collections.abc import Callable
from enum import Enum

from kafka_log.errors import CorruptLogError, FlushFailedError, InvalidAppendError, LogWriteError
from kafka_log.format.batches import batch_at
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.partition import Follower
from light_broker.core.replica_fetch import Append, FollowerLog, StartAt, Truncate, next_high_watermark
from light_broker.shell.logs.errors import OfflineLogError
from light_broker.shell.logs.manager import LogManager
from light_broker.shell.replicas.hosted_partition import HostedPartition
from light_broker.shell.replicas.hosted_partitions import HostedPartitions

log = logging.getLogger(__name__)

DISK_ERRORS = (LogWriteError, FlushFailedError, CorruptLogError, OSError)
"""Errors of a log that then goes offline, with its whole directory if the disk failed."""


class Written(Enum):
    """Outcome of a change."""

    DONE = "the log was changed"
    INVALID = (
        "the leader's batches cannot be appended: they are fetched again after a delay, as a transfer may damage them"
    )
    OFFLINE = "the log cannot be written; the partition is offline"
    STALE = "the broker does not follow in this leader epoch any more"


class FollowerWrites:
    """Logs of the partitions that this broker follows."""

    def __init__(self, partitions: HostedPartitions, logs: LogManager) -> None:
        self._partitions = partitions
        self._logs = logs

    def log_of(self, partition: TopicPartition, leader_epoch: int) -> FollowerLog | None:
        """Return the state of a log; None if the broker does not follow in this leader epoch."""
        hosted = self._following(partition, leader_epoch)
        return None if hosted is None else _state(hosted)

    def append(self, partition: TopicPartition, leader_epoch: int, step: Append) -> Written:
        """Append the leader's batches as they are, and adopt its high watermark and log start offset."""
        return self._change(partition, leader_epoch, lambda hosted: self._append(hosted, leader_epoch, step))

    def truncate(self, partition: TopicPartition, leader_epoch: int, step: Truncate | StartAt) -> Written:
        """Remove records that the leader does not have."""
        return self._change(partition, leader_epoch, lambda hosted: _truncate(hosted, step))

    async def flush_due(self, partition: TopicPartition) -> None:
        """Write a log to the disk if as many records as flush.messages wait for it."""
        hosted = self._partitions.get(partition)
        if hosted is None or not hosted.log.is_flush_due_by_messages():
            return
        try:
            await self._logs.flush(partition)
        except OfflineLogError:
            return  # its requests are answered with KAFKA_STORAGE_ERROR already

    def _following(self, partition: TopicPartition, leader_epoch: int) -> HostedPartition | None:
        hosted = self._partitions.get(partition)
        if hosted is None or not isinstance(hosted.role, Follower) or hosted.role.leader_epoch != leader_epoch:
            return None
        return hosted

    def _change(
        self, partition: TopicPartition, leader_epoch: int, change: Callable[[HostedPartition], None]
    ) -> Written:
        hosted = self._following(partition, leader_epoch)
        if hosted is None:
            return Written.STALE
        try:
            change(hosted)
        except InvalidAppendError as error:
            extra = {"partition": str(partition), "error": str(error)}
            log.warning("Failed to append the batches of the leader; fetching them again", extra=extra)
            return Written.INVALID
        except DISK_ERRORS as error:
            self._partitions.fail(partition, error)
            return Written.OFFLINE
        return Written.DONE

    def _append(self, hosted: HostedPartition, leader_epoch: int, step: Append) -> None:
        if step.records:
            _begin_within_a_batch(hosted, step.records)
            hosted.log.append_as_follower(step.records, leader_epoch)
        if hosted.take_high_watermark(next_high_watermark(_state(hosted), step.high_watermark)):
            self._partitions.waiting.wake(hosted.name)
        # Deletion of records, and retention: the leader's start is at most its high watermark, and the fetch began above it.
        start = min(step.log_start_offset, hosted.high_watermark)
        hosted.log.raise_start_offset(start, high_watermark=hosted.high_watermark)


def _state(hosted: HostedPartition) -> FollowerLog:
    opened = hosted.log
    return FollowerLog(opened.start_offset, opened.end_offset, hosted.high_watermark, opened.log.epochs)


def _begin_within_a_batch(hosted: HostedPartition, records: bytes | memoryview) -> None:
    """Let an empty log begin with the whole batch that has its start, where the leader's log starts within a batch.

    Source: Partition.appendRecordsToFollowerOrFutureReplica, UnexpectedAppendOffsetException.
    """
    opened = hosted.log
    start = opened.start_offset
    first, _ = batch_at(records, 0)
    if first is None or opened.end_offset != start or not first.base_offset < start <= first.last_offset:
        return
    opened.truncate_fully_and_start_at(first.base_offset)


def _truncate(hosted: HostedPartition, step: Truncate | StartAt) -> None:
    if step.offset < hosted.high_watermark:
        extra = {"partition": str(hosted.name), "offset": step.offset, "high_watermark": hosted.high_watermark}
        log.warning("Truncating below the high watermark: the leader lacks records that were committed", extra=extra)
    if isinstance(step, StartAt):
        hosted.log.truncate_fully_and_start_at(step.offset)
    else:
        hosted.log.truncate_to(step.offset)
    hosted.truncated()
