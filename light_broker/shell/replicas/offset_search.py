"""Search for offsets in a partition's log by timestamp (ListOffsets). Source: Kafka's UnifiedLog.fetchOffsetByTimestamp."""

from collections.abc import Callable

from kafka_log.files.partition_log import PartitionLog
from kafka_log.format.batches import Batch
from kafka_wire import ErrorCode
from kafka_wire.records import NO_TIMESTAMP, Record, decode_batches
from light_broker.core.metadata_view import NO_EPOCH
from light_broker.core.offset_search import SpecialTimestamp
from light_broker.core.replica_requests import FoundOffset, ReadLimit
from light_broker.shell.replicas.hosted_partition import HostedPartition


def list_offset(hosted: HostedPartition, timestamp_ms: int, limit: ReadLimit) -> FoundOffset:
    """Return an offset by timestamp or special timestamp, as a reader with this limit sees it.

    A client gets OFFSET_NOT_AVAILABLE from a leader that does not know yet where the records of earlier epochs end. Raises WireError, as
    find_offset.
    """
    assert hosted.role is not None
    leader = hosted.leader
    is_lagging = (
        limit is not ReadLimit.LOG_END and leader is not None and leader.epoch_start_offset > hosted.high_watermark
    )
    last_fetchable = hosted.limit(limit)
    if timestamp_ms == SpecialTimestamp.LATEST:
        if is_lagging:
            return FoundOffset(ErrorCode.OFFSET_NOT_AVAILABLE)
        return FoundOffset(offset=last_fetchable, leader_epoch=hosted.role.leader_epoch)
    found = find_offset(hosted.log, timestamp_ms)
    if timestamp_ms in {SpecialTimestamp.EARLIEST, SpecialTimestamp.EARLIEST_LOCAL} or found.offset < last_fetchable:
        return found
    return FoundOffset(ErrorCode.OFFSET_NOT_AVAILABLE if is_lagging else ErrorCode.NONE)


def find_offset(log: PartitionLog, timestamp_ms: int) -> FoundOffset:
    """Return the first record whose timestamp is at least `timestamp_ms`, or what a special timestamp other than LATEST means.

    Nothing found is an offset of -1. Raises WireError for a batch that cannot be read, such as one of a codec that is not installed.
    """
    match timestamp_ms:
        case SpecialTimestamp.EARLIEST | SpecialTimestamp.EARLIEST_LOCAL:
            return _earliest(log)
        case SpecialTimestamp.LATEST_TIERED | SpecialTimestamp.EARLIEST_PENDING_UPLOAD:
            return FoundOffset()
        case SpecialTimestamp.MAX_TIMESTAMP:
            return _largest_timestamp(log)
    batch = log.log.find_by_timestamp(timestamp_ms)
    while batch is not None:
        if batch.max_timestamp_ms >= timestamp_ms and (
            found := _first(log, batch, lambda record: record.timestamp_ms >= timestamp_ms)
        ):
            return found
        batch = log.log.batch_with(batch.last_offset + 1)
    return FoundOffset()


def _earliest(log: PartitionLog) -> FoundOffset:
    first = log.log.epochs.entries[0] if log.log.epochs.entries else None
    epoch = first.epoch if first is not None and first.start_offset <= log.start_offset else NO_EPOCH
    return FoundOffset(offset=log.start_offset, leader_epoch=epoch)


def _largest_timestamp(log: PartitionLog) -> FoundOffset:
    # The first one of equal timestamps
    largest = max((segment.max_timestamp for segment in log.log.segments), key=lambda maximum: maximum.timestamp_ms)
    if largest.timestamp_ms == NO_TIMESTAMP or (batch := log.log.batch_with(largest.offset)) is None:
        return FoundOffset()
    found = _first(log, batch, lambda record: record.timestamp_ms == largest.timestamp_ms)
    return found or FoundOffset()


def _first(log: PartitionLog, batch: Batch, is_searched: Callable[[Record], bool]) -> FoundOffset | None:
    """Return the first record of a batch that meets a condition, at or above the log's start."""
    # A limit of 0 bytes reads one whole batch.
    for decoded in decode_batches(log.log.read(batch.last_offset, 0)):
        for record in decoded.records:
            if record.offset >= log.start_offset and is_searched(record):
                return FoundOffset(
                    offset=record.offset, timestamp_ms=record.timestamp_ms, leader_epoch=batch.leader_epoch
                )
    return None
