"""Sizes of replicas, by one DescribeLogDirs request to each broker; the response has 22 bytes per replica.

While a replica moves between log directories of a broker, only the current one counts, not the future one (KIP-113).
"""

import numpy as np

from balance_analytics.sampling.missing_data import DataKind, MissingData, Reason, reason_of, reason_of_failure
from balance_analytics.sampling.sample_builder import SampleBuilder
from kafka_wire import ApiKey, ErrorCode
from kafka_wire.columns.log_dirs import LogDirColumns, decode_log_dirs
from kafka_wire.net.client import Node, RequestFailed
from kafka_wire.net.cluster import REQUEST_ATTEMPTS
from kafka_wire.net.connection import plain

VERSIONS = (1, 5)
"""Of DescribeLogDirs; the last one is that of Kafka 4.3. Only since version 3 does the response report that the user lacks the right."""


async def read_sizes(
    broker: Node, broker_id: int, builder: SampleBuilder, missing_data: MissingData, *, deadline: float
) -> None:
    """Read the sizes of a broker's replicas into their rows."""
    try:
        found = await broker.request(
            ApiKey.DESCRIBE_LOG_DIRS,
            {"topics": None},
            plain(decode_log_dirs),
            deadline=deadline,
            versions=VERSIONS,
            attempts=REQUEST_ATTEMPTS,
        )
    except RequestFailed as error:
        missing_data.add(DataKind.SIZES, reason_of_failure(error), _replica_count(builder, broker_id), str(error))
        return
    if found.error_code != ErrorCode.NONE:
        message = f"{broker.name} returned no sizes: {ErrorCode.of(found.error_code).name}"
        missing_data.add(DataKind.SIZES, reason_of(found.error_code), _replica_count(builder, broker_id), message)
        return
    _fill(found, broker_id, builder)
    missing = int(((builder.replicas == broker_id) & (builder.size_bytes < 0)).sum())
    offline = [log_dir.path for log_dir in found.log_dirs if log_dir.error_code != ErrorCode.NONE]
    if offline:
        missing_data.add(DataKind.SIZES, Reason.LOG_DIR, missing, f"{broker.name}, offline: {', '.join(offline)}"[:300])
    else:
        missing_data.add(
            DataKind.SIZES, Reason.ABSENT, missing, f"{broker.name} did not return the sizes of {missing} replicas"
        )


def count_missing_broker(broker_id: int, builder: SampleBuilder, missing_data: MissingData) -> None:
    """Count the replicas of a broker that is not in the metadata."""
    count = _replica_count(builder, broker_id)
    message = f"broker {broker_id} is not in the metadata: sizes of {count} replicas are missing"
    missing_data.add(DataKind.SIZES, Reason.CONNECTION, count, message)


def _replica_count(builder: SampleBuilder, broker_id: int) -> int:
    return int((builder.replicas == broker_id).sum())


def _fill(found: LogDirColumns, broker_id: int, builder: SampleBuilder) -> None:
    rows = builder.rows.find(found.topics, found.topic_rows, found.partition_index)
    good = (rows >= 0) & ~found.is_future & (found.size_bytes >= 0)
    rows, sizes = rows[good], found.size_bytes[good]
    is_replica = builder.replicas[rows] == broker_id
    assigned = is_replica.any(axis=1) if is_replica.shape[1] else np.zeros(len(rows), np.bool_)
    place = is_replica[assigned].argmax(axis=1) if assigned.any() else np.zeros(0, np.int64)
    builder.size_bytes[rows[assigned], place] = sizes[assigned]
