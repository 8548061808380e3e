"""Requests to individual brokers: sizes and directories of logs, and settings of single brokers.

Each broker has its own connection; a broker that does not answer is a Failure in the result and does not delay the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from kafka_operator.admin.connection import Connection
from kafka_operator.admin.requests import (
    BROKER,
    Request,
    describe_configs_request,
    failure_of,
    incremental_alter_configs_request,
)
from kafka_operator.decide.kafka.layout import BrokerDisks, BrokerSizes, Disks
from kafka_operator.decide.kafka.log_dirs import UNKNOWN_BYTES, BrokerLogDirs, LogDir
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.decide.kafka.replica_dirs import BrokerReplicaDirs, DirectoryLogs, Targets
from kafka_operator.decide.reassignments.reassignment_steps import AlterBroker
from kafka_operator.resources.reassignment import Partition
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import RequestFailed
from kafka_wire.net.cluster import for_each_broker

DYNAMIC_BROKER_CONFIG = 2
"""ConfigSource (KIP-226): set on this broker by an Admin client."""

T = TypeVar("T")


async def query_logs(
    connection: Connection, broker_ids: Collection[int], partitions: Collection[Partition] | None
) -> BrokerSizes:
    """Query the bytes of brokers' logs of these partitions, or (None) of all."""
    request = log_dirs_request(partitions)
    return await ask_each(connection, dict.fromkeys(broker_ids, request), logs_of)


def log_dirs_request(partitions: Collection[Partition] | None) -> Request:
    """Build a DescribeLogDirs request; a null list means all partitions."""
    if partitions is None:
        return Request(ApiKey.DESCRIBE_LOG_DIRS, {"topics": None})
    by_topic: dict[str, list[int]] = defaultdict(list)
    for partition in partitions:
        by_topic[partition.topic].append(partition.index)
    topics = [{"topic": name, "partitions": sorted(held)} for name, held in by_topic.items()]
    return Request(ApiKey.DESCRIBE_LOG_DIRS, {"topics": topics})


def logs_of(response: Body) -> Mapping[Partition, int] | Failure:
    """Read a DescribeLogDirs answer; a log that is being copied to another disk of the same broker is not counted twice."""
    codes = [response["error_code"], *(item["error_code"] for item in response["results"])]
    failure = next((found for code in codes if (found := failure_of(code)) is not None), None)
    logs = {
        Partition(topic["name"], item["partition_index"]): int(item["partition_size"])
        for directory in response["results"]
        for topic in directory["topics"]
        for item in topic["partitions"]
        if not item["is_future_key"]
    }
    return failure if failure is not None and not logs else logs


async def query_disks(connection: Connection, broker_ids: Collection[int]) -> BrokerDisks:
    """Query the disks of brokers; the request names no partition, so that the answers are short."""
    found = await ask_each(connection, dict.fromkeys(broker_ids, log_dirs_request(())), disks_of)
    return {broker_id: disks for broker_id, disks in found.items() if disks is not None}


def disks_of(response: Body) -> Disks | Failure | None:
    """Read the disks of a DescribeLogDirs answer; None if the broker does not report them (before version 4).

    Directories with the same total and usable bytes count once: they are on one volume.
    """
    failure = failure_of(response["error_code"])
    if failure is not None:
        return failure
    volumes = {
        (int(item["total_bytes"]), int(item["usable_bytes"]))
        for item in response["results"]
        if item.get("total_bytes", UNKNOWN_BYTES) != UNKNOWN_BYTES
    }
    if not volumes:
        return None
    return Disks(sum(total for total, _ in volumes), sum(usable for _, usable in volumes))


async def query_log_dirs(connection: Connection, broker_ids: Collection[int]) -> BrokerLogDirs:
    """Query the states of brokers' log directories; the request names no partition, so that the answers are short."""
    return await ask_each(connection, dict.fromkeys(broker_ids, log_dirs_request(())), log_dirs_of)


def log_dirs_of(response: Body) -> tuple[LogDir, ...] | Failure:
    """Read the log directories of a DescribeLogDirs response; one with an error of its own (KAFKA_STORAGE_ERROR) is offline."""
    return failure_of(response["error_code"]) or tuple(
        LogDir(
            item["log_dir"],
            item["error_code"] == ErrorCode.NONE,
            int(item.get("total_bytes", UNKNOWN_BYTES)),
            int(item.get("usable_bytes", UNKNOWN_BYTES)),
            bool(item.get("is_cordoned")),
        )
        for item in response["results"]
    )


async def query_replica_dirs(
    connection: Connection, broker_ids: Collection[int], partitions: Collection[Partition] | None
) -> BrokerReplicaDirs:
    """Query brokers' log directories with the logs of these partitions, or (None) of all."""
    return await ask_each(connection, dict.fromkeys(broker_ids, log_dirs_request(partitions)), replica_dirs_of)


def replica_dirs_of(response: Body) -> tuple[DirectoryLogs, ...] | Failure:
    """Read the log directories of a DescribeLogDirs response with their logs."""
    directories = log_dirs_of(response)
    if isinstance(directories, Failure):
        return directories
    pairs = zip(directories, response["results"], strict=True)
    return tuple(
        DirectoryLogs(directory, _sizes_in(result, is_future=False), _sizes_in(result, is_future=True))
        for directory, result in pairs
    )


def _sizes_in(directory: Body, *, is_future: bool) -> Mapping[Partition, int]:
    return {
        Partition(topic["name"], item["partition_index"]): int(item["partition_size"])
        for topic in directory["topics"]
        for item in topic["partitions"]
        if item["is_future_key"] == is_future
    }


async def change_log_dirs(connection: Connection, targets: Targets) -> Mapping[Partition, Failure]:
    """Move replicas to other log directories; return the failures, one for each partition."""
    wanted = {broker_id: alter_log_dirs_request(paths) for broker_id, paths in targets.items()}
    failures: dict[Partition, Failure] = {}
    for broker_id, found in (await ask_each(connection, wanted, refused_log_dirs)).items():
        failures |= dict.fromkeys(targets[broker_id], found) if isinstance(found, Failure) else found
    return failures


def alter_log_dirs_request(paths: Mapping[Partition, str]) -> Request:
    """Build an AlterReplicaLogDirs request for one broker."""
    dirs: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for partition, path in paths.items():
        dirs[path][partition.topic].append(partition.index)
    body = [
        {"path": path, "topics": [{"name": name, "partitions": sorted(held)} for name, held in topics.items()]}
        for path, topics in dirs.items()
    ]
    return Request(ApiKey.ALTER_REPLICA_LOG_DIRS, {"dirs": body})


def refused_log_dirs(response: Body) -> Mapping[Partition, Failure]:
    """Read the rejected partitions of an AlterReplicaLogDirs response."""
    return {
        Partition(topic["topic_name"], item["partition_index"]): failure
        for topic in response["results"]
        for item in topic["partitions"]
        if (failure := failure_of(item["error_code"])) is not None
    }


async def query_broker_configs(
    connection: Connection, broker_ids: Collection[int], names: Sequence[str]
) -> Mapping[int, Mapping[str, str] | Failure]:
    """Query which of these settings are set on the brokers themselves."""
    wanted = {broker_id: describe_configs_request(BROKER, {str(broker_id): names}) for broker_id in broker_ids}
    return await ask_each(connection, wanted, broker_config_of)


def broker_config_of(response: Body) -> Mapping[str, str] | Failure:
    """Read a DescribeConfigs response about one broker: its own settings, without inherited ones."""
    (result,) = response["results"]
    return failure_of(result["error_code"], result["error_message"]) or {
        entry["name"]: entry["value"]
        for entry in result["configs"]
        if entry["config_source"] == DYNAMIC_BROKER_CONFIG and entry["value"] is not None
    }


async def change_broker_configs(connection: Connection, changes: Sequence[AlterBroker]) -> Mapping[int, Failure]:
    """Change settings of single brokers; return the failures."""
    wanted = {change.broker_id: broker_configs_request(change) for change in changes}
    found = await ask_each(connection, wanted, _refusal)
    return {broker_id: failure for broker_id, failure in found.items() if failure is not None}


def broker_configs_request(change: AlterBroker) -> Request:
    """Set and reset single settings of a broker."""
    return incremental_alter_configs_request(BROKER, {str(change.broker_id): change.changes})


def _refusal(response: Body) -> Failure | None:
    (result,) = response["responses"]
    return failure_of(result["error_code"], result["error_message"])


async def ask_each(
    connection: Connection, wanted: Mapping[int, Request], read: Callable[[Body], T]
) -> dict[int, T | Failure]:
    """Send each broker its request, and return what is read from the answers, in order."""

    async def ask(broker_id: int) -> T | Failure:
        return await ask_broker(connection, broker_id, wanted[broker_id], read)

    return dict(zip(wanted, await for_each_broker(wanted, ask), strict=True))


async def ask_broker(
    connection: Connection, broker_id: int, request: Request, read: Callable[[Body], T]
) -> T | Failure:
    """Send a broker a request, and return what is read from the answer; a Failure if the broker does not answer."""
    try:
        return read(await connection.to_node(request, broker_id))
    except RequestFailed as error:
        code = ErrorCode.BROKER_NOT_AVAILABLE  # for every way in which a broker may fail to answer
        return Failure(code, code.name, f"Broker {broker_id} does not respond: {error.reason}.")
