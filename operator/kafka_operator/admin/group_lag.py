"""Lag of consumer groups: the records between a group's committed offsets and the ends of the partitions.

Each group's coordinator is queried for the group's offsets, then each leader for the ends of its partitions. An error of one group is a
Failure in the result and does not affect the others.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from kafka_operator.admin.brokers import ask_broker, ask_each
from kafka_operator.admin.connection import Connection
from kafka_operator.admin.requests import Request, failure_of, topics_of
from kafka_operator.decide.kafka.observed import NO_LEADER, Failure, KafkaTopic
from kafka_operator.resources.reassignment import Partition
from kafka_wire import ApiKey, Body, ErrorCode

GROUP = 0
"""Key type of FindCoordinator (FindCoordinatorRequest.CoordinatorType)."""

NO_REPLICA = -1
"""Replica id of a client (ListOffsetsRequest.CONSUMER_REPLICA_ID)."""

LATEST = -1
"""Timestamp of ListOffsets for the end of a partition: the high watermark (ListOffsetsRequest.LATEST_TIMESTAMP)."""

Offsets = Mapping[Partition, int]


async def query_group_lags(connection: Connection, groups: Collection[str]) -> Mapping[str, int | Failure]:
    """Query the lag of each group, in records over all partitions with a committed offset."""
    answers = await asyncio.gather(*(_query_committed(connection, group) for group in groups))
    committed = dict(zip(groups, answers, strict=True))
    named = {partition for found in answers if not isinstance(found, Failure) for partition in found}
    ends = await _query_ends(connection, named) if named else {}
    return {group: found if isinstance(found, Failure) else lag_of(found, ends) for group, found in committed.items()}


def lag_of(committed: Offsets, ends: Mapping[Partition, int | Failure]) -> int | Failure:
    """Return the lag of a group; a Failure if the end of a partition is not known, since the sum would be too low."""
    lag = 0
    for partition, offset in committed.items():
        end = ends[partition] if partition in ends else _without_leader(partition)
        if isinstance(end, Failure):
            return end
        lag += max(0, end - offset)
    return lag


async def _query_committed(connection: Connection, group: str) -> Offsets | Failure:
    found = await connection.to_any(Request(ApiKey.FIND_COORDINATOR, {"key": group, "key_type": GROUP}))
    failure = failure_of(found["error_code"], found["error_message"])
    if failure is not None:
        return failure
    request = Request(ApiKey.OFFSET_FETCH, {"group_id": group, "topics": None})
    return await ask_broker(connection, found["node_id"], request, lambda answer: committed_of(answer, group))


def committed_of(response: Body, group: str) -> Offsets | Failure:
    """Read an OffsetFetch answer about one group; a group without a committed offset is a Failure: its lag is unknown, not 0."""
    parts = [(topic["name"], item) for topic in response["topics"] for item in topic["partitions"]]
    codes = [response["error_code"], *(item["error_code"] for _, item in parts)]
    failure = next((found for code in codes if (found := failure_of(code)) is not None), None)
    if failure is not None:
        return failure
    offsets = {
        Partition(name, item["partition_index"]): int(item["committed_offset"])
        for name, item in parts
        if item["committed_offset"] >= 0
    }
    code = ErrorCode.GROUP_ID_NOT_FOUND
    return offsets or Failure(code, code.name, f"Group {group} has no committed offsets: check its name.")


async def _query_ends(connection: Connection, partitions: Collection[Partition]) -> Mapping[Partition, int | Failure]:
    topics = topics_of(await connection.topics(sorted({partition.topic for partition in partitions})))
    led: dict[int, list[Partition]] = defaultdict(list)
    for topic in topics.values():
        for item in topic.partitions if isinstance(topic, KafkaTopic) else ():
            partition = Partition(topic.name, item.index)
            if item.leader != NO_LEADER and partition in partitions:
                led[item.leader].append(partition)
    wanted = {leader: list_offsets_request(held) for leader, held in led.items()}
    ends: dict[Partition, int | Failure] = {}
    for leader, found in (await ask_each(connection, wanted, ends_of)).items():
        ends |= dict.fromkeys(led[leader], found) if isinstance(found, Failure) else found
    return ends


def list_offsets_request(partitions: Iterable[Partition]) -> Request:
    """Build a request for the ends of partitions, for their leader."""
    by_topic: dict[str, list[Body]] = defaultdict(list)
    for partition in partitions:
        by_topic[partition.topic].append({"partition_index": partition.index, "timestamp": LATEST})
    topics = [{"name": name, "partitions": held} for name, held in by_topic.items()]
    return Request(ApiKey.LIST_OFFSETS, {"replica_id": NO_REPLICA, "topics": topics})


def ends_of(response: Body) -> Mapping[Partition, int | Failure]:
    """Read a ListOffsets answer."""
    return {
        Partition(topic["name"], item["partition_index"]): failure_of(item["error_code"]) or int(item["offset"])
        for topic in response["topics"]
        for item in topic["partitions"]
    }


def _without_leader(partition: Partition) -> Failure:
    code = ErrorCode.LEADER_NOT_AVAILABLE
    return Failure(code, code.name, f"Partition {partition} has no leader.")
