"""Lag of consumer groups: the records between a group's committed offsets and the ends of the partitions.

Each group's coordinator is queried for the group's offsets, then each leader for the ends of its partitions. An error of one group is a
Failure in the result and does not affect the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kafka.protocol.consumer.group import OffsetFetchRequest
from kafka.protocol.consumer.offsets import ListOffsetsRequest
from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest

from kafka_operator.admin.brokers import ask_broker
from kafka_operator.admin.connection import Connection
from kafka_operator.admin.requests import failure_of, metadata_of
from kafka_operator.decide.observed import NO_LEADER, Failure
from kafka_operator.resources.reassignment import Partition

LATEST = -1
"""Timestamp of ListOffsets for the end of a partition: the high watermark."""

NO_REPLICA = -1
GROUP = 0
"""Key type of FindCoordinator."""

GROUP_ID_NOT_FOUND = 69
LEADER_NOT_AVAILABLE = 5

Offsets = Mapping[Partition, int]


def query_group_lags(connection: Connection, groups: Collection[str]) -> Mapping[str, int | Failure]:
    """Query the lag of each group, in records over all partitions with a committed offset."""
    committed = {group: _committed(connection, group) for group in groups}
    named = {partition for found in committed.values() if not isinstance(found, Failure) for partition in found}
    ends = _ends(connection, named) if named else {}
    return {group: found if isinstance(found, Failure) else lag_of(found, ends) for group, found in committed.items()}


def lag_of(committed: Offsets, ends: Mapping[Partition, int | Failure]) -> int | Failure:
    """Return the lag of a group; a Failure if the end of a partition is not known."""
    lag = 0
    for partition, offset in committed.items():
        end = ends.get(partition, Failure(LEADER_NOT_AVAILABLE, "LEADER_NOT_AVAILABLE", f"{partition} has no leader."))
        if isinstance(end, Failure):
            return end
        lag += max(0, end - offset)
    return lag


def _committed(connection: Connection, group: str) -> Offsets | Failure:
    found = connection.to_any(FindCoordinatorRequest(key=group, key_type=GROUP, max_version=3))
    failure = failure_of(found.error_code, found.error_message)
    if failure is not None:
        return failure
    request = OffsetFetchRequest(group_id=group, topics=None, require_stable=False, min_version=2, max_version=7)
    answer = ask_broker(connection, request, int(found.node_id))
    return answer if isinstance(answer, Failure) else committed_of(answer, group)


def committed_of(response: Any, group: str) -> Offsets | Failure:
    """Read an OffsetFetch answer; a group without a committed offset is a Failure, since nothing can be said of it."""
    failure = failure_of(response.error_code)
    if failure is not None:
        return failure
    offsets: dict[Partition, int] = {}
    for topic in response.topics:
        for item in topic.partitions:
            failure = failure_of(item.error_code)
            if failure is not None:
                return failure
            if item.committed_offset >= 0:
                offsets[Partition(topic.name, item.partition_index)] = int(item.committed_offset)
    return offsets or Failure(GROUP_ID_NOT_FOUND, "GROUP_ID_NOT_FOUND", f"Group {group} has no committed offsets.")


def _ends(connection: Connection, partitions: Iterable[Partition]) -> Mapping[Partition, int | Failure]:
    wanted = frozenset(partitions)
    response = metadata_of(connection, sorted({partition.topic for partition in wanted}))
    by_leader: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for topic in response.topics:
        for item in topic.partitions:
            if item.leader_id != NO_LEADER and Partition(topic.name, item.partition_index) in wanted:
                by_leader[int(item.leader_id)][topic.name].append(int(item.partition_index))
    ends: dict[Partition, int | Failure] = {}
    for leader, indexes in by_leader.items():
        answer = ask_broker(connection, list_offsets_request(indexes), leader)
        if isinstance(answer, Failure):
            ends |= {Partition(name, index): answer for name, held in indexes.items() for index in held}
        else:
            ends |= ends_of(answer)
    return ends


def list_offsets_request(indexes: Mapping[str, Iterable[int]]) -> Any:
    """Build a ListOffsets request for the ends of these partitions."""
    topic = ListOffsetsRequest.ListOffsetsTopic
    partition = topic.ListOffsetsPartition
    topics = [
        topic(name=name, partitions=[partition(partition_index=index, timestamp=LATEST) for index in held])
        for name, held in indexes.items()
    ]
    return ListOffsetsRequest(replica_id=NO_REPLICA, isolation_level=0, topics=topics, min_version=1)


def ends_of(response: Any) -> Mapping[Partition, int | Failure]:
    """Read a ListOffsets answer."""
    return {
        Partition(topic.name, item.partition_index): failure_of(item.error_code) or int(item.offset)
        for topic in response.topics
        for item in topic.partitions
    }
