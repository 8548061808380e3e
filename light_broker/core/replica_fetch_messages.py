"""Requests of a follower to its leader, Fetch and ListOffsets, and their answers as values.

From version 13 of Fetch on topics are named by their ids, from version 15 on the request has the broker epoch of the follower (KIP-903).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from kafka_log.format.epochs import EpochStart
from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire import Body, ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.offset_search import SpecialTimestamp
from light_broker.core.replica_fetch import FetchAnswer, FollowerLog, ReplicaFetchSettings
from light_broker.core.replica_fetch_session import FetchedName, SessionRequest, Wanted

TOPIC_IDS_FROM = 13
REPLICA_STATE_FROM = 15
FETCH_VERSIONS = (12, 18)
"""The leader returns a diverging epoch from version 12 on, which every Kafka since 2.7 has."""
NAMED_VERSIONS = (12, 12)
"""Versions of Fetch where a topic has no id: topics of ZooKeeper mode from before ids existed."""
OFFSETS_VERSIONS = (5, 9)
"""Versions of ListOffsets with leader epochs; later ones differ only for tiered storage."""


class Asked(NamedTuple):
    """A partition in a request, with the log that it was made for."""

    topic_id: UUID
    leader_epoch: int
    log: FollowerLog


def fetch_versions(partitions: Iterable[Asked]) -> tuple[int, int]:
    """Return the versions of Fetch that can name the partitions."""
    return NAMED_VERSIONS if any(partition.topic_id == NO_TOPIC_ID for partition in partitions) else FETCH_VERSIONS


def wanted_partitions(
    partitions: Mapping[TopicPartition, Asked], max_bytes: int, *, uses_topic_ids: bool
) -> dict[FetchedName, Wanted]:
    """Return what a follower wants of its partitions: at most `max_bytes` of each, from the end of its log on."""
    wanted = {}
    for named, (topic_id, leader_epoch, log) in partitions.items():
        name = FetchedName(named.topic, topic_id if uses_topic_ids else NO_TOPIC_ID, named.partition)
        wanted[name] = Wanted(leader_epoch, log.end_offset, log.last_epoch, log.start_offset, max_bytes)
    return wanted


def fetch_request(
    version: int, request: SessionRequest, settings: ReplicaFetchSettings, *, broker_id: int, broker_epoch: int
) -> Body:
    """Return the Fetch request of a follower."""
    topics: dict[tuple[str, UUID], list[Body]] = {}
    for name, wanted in request.changed.items():
        topics.setdefault((name.topic, name.topic_id), []).append(
            {
                "partition": name.partition,
                "current_leader_epoch": wanted.leader_epoch,
                "fetch_offset": wanted.fetch_offset,
                "last_fetched_epoch": wanted.last_fetched_epoch,
                "log_start_offset": wanted.log_start_offset,
                "partition_max_bytes": wanted.max_bytes,
            }
        )
    forgotten: dict[tuple[str, UUID], list[int]] = {}
    for name in request.forgotten:
        forgotten.setdefault((name.topic, name.topic_id), []).append(name.partition)
    replica: Body = {"replica_id": broker_id}
    if version >= REPLICA_STATE_FROM:
        replica = {"replica_state": {"replica_id": broker_id, "replica_epoch": broker_epoch}}
    return {
        **replica,
        "max_wait_ms": settings.max_wait_ms,
        "min_bytes": settings.min_bytes,
        "max_bytes": settings.response_max_bytes,
        "isolation_level": 0,
        "session_id": request.session_id,
        "session_epoch": request.epoch,
        "topics": _by_topic(topics),
        "forgotten_topics_data": _by_topic(forgotten),
        "rack_id": "",
    }


def _by_topic(partitions: Mapping[tuple[str, UUID], list[Body] | list[int]]) -> list[Body]:
    return [
        {"topic": topic, "topic_id": topic_id, "partitions": entries}
        for (topic, topic_id), entries in partitions.items()
    ]


def fetch_answers(
    body: Body, version: int, name_of: Callable[[UUID], str | None]
) -> tuple[ErrorCode, dict[TopicPartition, FetchAnswer]]:
    """Return the error of the whole response, and the answer about each partition. `name_of` returns the name of a topic's id in the request."""
    answers = {}
    for topic in body["responses"]:
        name = name_of(topic["topic_id"]) if version >= TOPIC_IDS_FROM else topic["topic"]
        if name is None:
            continue
        for partition in topic["partitions"]:
            diverging = partition["diverging_epoch"]
            answers[TopicPartition(name, partition["partition_index"])] = FetchAnswer(
                ErrorCode.of(partition["error_code"]),
                partition["high_watermark"],
                partition["log_start_offset"],
                partition["records"] or b"",
                EpochStart(diverging["epoch"], diverging["end_offset"]) if diverging["epoch"] >= 0 else None,
            )
    return ErrorCode.of(body["error_code"]), answers


def offsets_request(partitions: Mapping[TopicPartition, Asked], timestamp: SpecialTimestamp, *, broker_id: int) -> Body:
    """Return the ListOffsets request of a follower: it is answered up to the log's end."""
    topics: dict[str, list[Body]] = {}
    for named, asked in partitions.items():
        topics.setdefault(named.topic, []).append(
            {
                "partition_index": named.partition,
                "current_leader_epoch": asked.leader_epoch,
                "timestamp": timestamp,
            }
        )
    return {
        "replica_id": broker_id,
        "isolation_level": 0,
        "topics": [{"name": topic, "partitions": requested} for topic, requested in topics.items()],
    }


def offsets_answers(body: Body) -> dict[TopicPartition, tuple[ErrorCode, int]]:
    """Return the error and the offset of each partition."""
    return {
        TopicPartition(topic["name"], partition["partition_index"]): (
            ErrorCode.of(partition["error_code"]),
            partition["offset"],
        )
        for topic in body["topics"]
        for partition in topic["partitions"]
    }
