"""DescribeLogDirs: the sizes of logs, and the space of the file systems they are on (KIP-113, KIP-827).

Source: KafkaApis.handleDescribeLogDirsRequest, ReplicaManager.describeLogDirs.
"""

from collections.abc import Collection

from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.shell.broker import Broker
from light_broker.shell.logs.directory import LogDirectory
from light_broker.shell.logs.errors import OfflineLogError

VERSIONS = (1, 5)

UNKNOWN_LAG = -1
"""Lag of a log that no replica on this broker uses."""


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Return the log directories with the requested logs in them, without a list with all logs."""
    if not broker.may(context)(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "results": []}
    topics = body["topics"]
    requested = (
        None
        if topics is None
        else {TopicPartition(topic["topic"], number) for topic in topics for number in topic["partitions"]}
    )
    return {"results": [await _result(broker, directory, requested) for directory in broker.logs.directories]}


async def _result(broker: Broker, directory: LogDirectory, requested: Collection[TopicPartition] | None) -> Body:
    failed = {"error_code": ErrorCode.KAFKA_STORAGE_ERROR, "log_dir": str(directory.path), "topics": []}
    try:
        space = await directory.run(directory.space)
    except OfflineLogError:
        return failed
    except OSError as error:
        broker.logs.fail(directory, error)
        return failed
    topics: dict[str, list[Body]] = {}
    for partition, opened in directory.logs.items():
        if requested is None or partition in requested:
            high_watermark = broker.replicas.high_watermark(partition)
            lag = UNKNOWN_LAG if high_watermark is None else max(high_watermark - opened.end_offset, 0)
            topics.setdefault(partition.topic, []).append(
                {
                    "partition_index": partition.partition,
                    "partition_size": opened.log.size_bytes,
                    "offset_lag": lag,
                    "is_future_key": False,
                }
            )
    return {
        "error_code": ErrorCode.NONE,
        "log_dir": str(directory.path),
        "topics": [{"name": name, "partitions": partitions} for name, partitions in topics.items()],
        "total_bytes": space.total_bytes,
        "usable_bytes": space.usable_bytes,
    }
