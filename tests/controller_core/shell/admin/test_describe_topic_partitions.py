"""DescribeTopicPartitions (KIP-966, DescribeTopicPartitionsRequestHandler)."""

import numpy as np
import pytest

from controller_core.model import Origin
from controller_core.model.changes import TopicAdded
from controller_core.zookeeper_mode.transitions import apply
from kafka_wire import ApiKey, Body, ErrorCode
from tests.controller_core.shell.admin.api_calls import active_with_topic, add_topic, call, only
from tests.controller_core.shell.admin.fake_active import FakeActive, active_with, broker

THREE = {0: (1,), 1: (2,), 2: (3,)}


async def active() -> FakeActive:
    """Topics a, b and c of three partitions each."""
    started = await active_with_topic("b", THREE)
    await add_topic(started, "a", THREE)
    await add_topic(started, "c", THREE)
    return started


def request(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Body:
    """Return a request."""
    return {
        "topics": [{"name": name} for name in names],
        "response_partition_limit": limit,
        "cursor": None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]},
    }


def partitions(response: Body) -> dict[str, list[int]]:
    """Return the topics and their described partitions, in order."""
    return {
        topic["name"]: [partition["partition_index"] for partition in topic["partitions"]]
        for topic in response["topics"]
    }


async def test_empty_list_describes_all_topics_in_order_of_names() -> None:
    """An empty list means all topics."""
    response = await call(await active(), ApiKey.DESCRIBE_TOPIC_PARTITIONS, request())

    assert (list(partitions(response)), response["next_cursor"]) == (["a", "b", "c"], None)


async def test_partition_is_described() -> None:
    """The fields of Metadata, and no eligible leader replicas in ZooKeeper mode."""
    started = await active_with_topic("a", {0: (2, 1)})
    started.brokers_are(broker(2))

    topic = only(await call(started, ApiKey.DESCRIBE_TOPIC_PARTITIONS, request("a")), "topics")

    assert started.cluster.topics["a"].topic_id == topic["topic_id"]
    assert only(topic, "partitions") == {
        "error_code": ErrorCode.NONE,
        "partition_index": 0,
        "leader_id": 2,
        "leader_epoch": 0,
        "replica_nodes": [2, 1],
        "isr_nodes": [2, 1],
        "eligible_leader_replicas": [],
        "last_known_elr": [],
        "offline_replicas": [1],
    }


async def test_missing_leader_is_not_an_error() -> None:
    """Unlike in Metadata: the leader is -1 (KRaftMetadataCache.getPartitionMetadataForDescribeTopicResponse)."""
    started = await active_with_topic("a", {0: (2,)})
    started.brokers_are(broker(1))

    partition = only(await call(started, ApiKey.DESCRIBE_TOPIC_PARTITIONS, request("a")), "topics", "partitions")

    assert (partition["error_code"], partition["leader_id"]) == (ErrorCode.NONE, -1)


@pytest.mark.parametrize(
    ("name", "code"),
    [("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("bad/name", ErrorCode.INVALID_TOPIC_EXCEPTION)],
)
async def test_unknown_topic_is_answered_with_an_error(name: str, code: ErrorCode) -> None:
    """Named topics are answered one by one."""
    topic = only(await call(active_with(), ApiKey.DESCRIBE_TOPIC_PARTITIONS, request(name)), "topics")

    assert (code, name) == (topic["error_code"], topic["name"])


async def test_cursors_lead_through_all_pages() -> None:
    """Each page ends at the limit and the next one begins there; no partition is missing or repeated."""
    started, cursor, pages = await active(), None, []
    while True:
        response = await call(started, ApiKey.DESCRIBE_TOPIC_PARTITIONS, request(limit=4, cursor=cursor))
        pages.append(partitions(response))
        if response["next_cursor"] is None:
            break
        cursor = (response["next_cursor"]["topic_name"], response["next_cursor"]["partition_index"])

    assert pages == [{"a": [0, 1, 2], "b": [0]}, {"b": [1, 2], "c": [0, 1]}, {"c": [2]}]


async def test_cursor_after_a_complete_topic_is_the_next_topic() -> None:
    """The first partition of the next topic."""
    response = await call(await active(), ApiKey.DESCRIBE_TOPIC_PARTITIONS, request("a", "b", limit=3))

    assert (
        partitions(response),
        response["next_cursor"],
    ) == ({"a": [0, 1, 2]}, {"topic_name": "b", "partition_index": 0})


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_page_has_at_least_one_partition(limit: int) -> None:
    """Otherwise a client would never reach the end."""
    response = await call(await active(), ApiKey.DESCRIBE_TOPIC_PARTITIONS, request(limit=limit))

    assert partitions(response) == {"a": [0]}


async def test_page_is_limited_by_the_server() -> None:
    """max.request.partition.size.limit."""
    started = active_with()
    await add_topic(started, "a", dict.fromkeys(range(2_001), (1,)))

    response = await call(started, ApiKey.DESCRIBE_TOPIC_PARTITIONS, request(limit=1_000_000))

    assert response["next_cursor"] == {"topic_name": "a", "partition_index": 2_000}


async def test_cursor_in_a_deleted_topic_continues_with_the_next_topic() -> None:
    """Topics may be deleted between two pages."""
    response = await call(await active(), ApiKey.DESCRIBE_TOPIC_PARTITIONS, request(cursor=("aa", 2)))

    assert partitions(response) == {"b": [0, 1, 2], "c": [0, 1, 2]}


@pytest.mark.parametrize("cursor", [("c", 0), ("a", -1)])
async def test_invalid_cursor_is_refused(cursor: tuple[str, int]) -> None:
    """INVALID_REQUEST for every named topic."""
    response = await call(await active(), ApiKey.DESCRIBE_TOPIC_PARTITIONS, request("a", "b", cursor=cursor))

    assert [topic["error_code"] for topic in response["topics"]] == [ErrorCode.INVALID_REQUEST] * 2


async def test_topics_without_partitions_do_not_end_the_pages() -> None:
    """They do not count for the limit of partitions, but the number of topics per page is limited as well."""
    started = active_with()
    for number in range(7):
        none = TopicAdded(f"empty-{number}", None, np.zeros(0, np.int32), np.zeros((0, 1), np.int32), Origin.OBSERVED)
        apply(started.cluster, none)
    found: list[str] = []
    cursor = None
    while True:
        response = await call(started, ApiKey.DESCRIBE_TOPIC_PARTITIONS, request(limit=1, cursor=cursor))
        found += [topic["name"] for topic in response["topics"]]
        if response["next_cursor"] is None:
            break
        cursor = (response["next_cursor"]["topic_name"], response["next_cursor"]["partition_index"])
    assert found == [f"empty-{number}" for number in range(7)]
