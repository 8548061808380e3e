"""Loading of a partition of `__consumer_offsets`: its records are replayed into the state of its coordinator.

Source: Kafka's CoordinatorLoaderImpl.
"""

import asyncio
import logging
from collections import Counter

from kafka_wire import ErrorCode
from kafka_wire.records import NO_PRODUCER, ControlType, RecordBatch, control_type, decode_batches
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.groups.records import UnknownRecord, decode_record
from light_broker.core.groups.shard import Shard, TransactionEnd
from light_broker.shell.replicas.manager import ReplicaManager

log = logging.getLogger(__name__)

RECORDS_PER_STEP = 1_000
"""Records that are replayed before the event loop runs other tasks: some 10 ms."""


class LoadFailedError(Exception):
    """A partition that cannot be loaded; the text has the reason."""


async def load(partition: TopicPartition, replicas: ReplicaManager, shard: Shard, *, buffer_bytes: int) -> int:
    """Replay the log of a partition up to its end, and return the number of records.

    Offsets above the high watermark become visible with it. Raises LoadFailedError, WireError and MalformedRecordError: a record that cannot
    be read might be a committed offset, so that it is not skipped.
    """
    skipped: Counter[int] = Counter()
    records, offset = 0, 0
    while True:
        result, data = replicas.reads.read(partition, offset, buffer_bytes)
        if result.error is ErrorCode.OFFSET_OUT_OF_RANGE and offset < result.log_start_offset:
            offset = result.log_start_offset
            continue
        if result.error is not ErrorCode.NONE:
            raise LoadFailedError(f"Reading {partition} from offset {offset} failed with {result.error.name}.")
        end = offset
        for batch in decode_batches(data):
            for start in range(0, len(batch.records), RECORDS_PER_STEP):
                _replay(shard, batch, start, result.high_watermark, skipped)
                await asyncio.sleep(0)
            records += len(batch.records)
            end = batch.header.last_offset + 1
        if end == offset:
            break
        offset = end
    if skipped:
        # Consumer, share and streams groups (KIP-848, KIP-932, KIP-1071), which another broker wrote.
        log.warning(
            "Skipped records of types of groups that are not served",
            extra={"partition": str(partition), "types": dict(skipped)},
        )
    return records


def _replay(shard: Shard, batch: RecordBatch, start: int, high_watermark: int, skipped: Counter[int]) -> None:
    header = batch.header
    producer_id = header.producer_id if header.is_transactional and header.producer_id != NO_PRODUCER else None
    for record in batch.records[start : start + RECORDS_PER_STEP]:
        is_committed = record.offset < high_watermark
        if header.is_control:
            kind = control_type(record)
            if kind in {ControlType.COMMIT, ControlType.ABORT}:
                end = TransactionEnd(header.producer_id, kind is ControlType.COMMIT)
                shard.replay_marker(record.offset, end, is_committed=is_committed)
            continue
        decoded = decode_record(record.key, record.value)
        if isinstance(decoded, UnknownRecord):
            skipped[decoded.type] += 1
        else:
            shard.replay(record.offset, decoded, producer_id=producer_id, is_committed=is_committed)
