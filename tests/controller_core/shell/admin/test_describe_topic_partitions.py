"""DescribeTopicPartitions (KIP-966, DescribeTopicPartitionsRequestHandler)."""

import numpy as np
import pytest

from controller_core.decisions.transition import apply
from controller_core.model.changes import Origin, TopicAdded
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from tests.controller_core.shell.admin.asking import active_with_topic, add_topic, ask, only
from tests.controller_core.shell.admin.fake_active import FakeActive, active_with, broker

THREE = {0: (1,), 1: (2,), 2: (3,)}


async def active() -> FakeActive:
    """Topics a, b and c of three partitions each."""
    started = await active_with_topic("b", THREE)
    await add_topic(started, "a", THREE)
    await add_topic(started, "c", THREE)
    return started


def asking(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Body:
    """A request."""
    return {
        "topics": [{"name": name} for name in names],
        "response_partition_limit": limit,
        "cursor": None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]},
    }


def partitions(response: Body) -> dict[str, list[int]]:
    """Topics and the partitions described of each, in order."""
    return {
        topic["name"]: [partition["partition_index"] for partition in topic["partitions"]]
        for topic in response["topics"]
    }


async def test_all_topics_in_the_order_of_their_names() -> None:
    """An empty list asks for all."""
    response = await ask(await active(), ApiKey.DESCRIBE_TOPIC_PARTITIONS, asking())

    assert (list(partitions(response)), response["next_cursor"]) == (["a", "b", "c"], None)


async def test_a_partition() -> None:
    """The fields of Metadata, and no eligible leader replicas in ZooKeeper mode."""
    started = await active_with_topic("a", {0: (2, 1)})
    started.brokers_are(broker(2))

    topic = only(await ask(started, ApiKey.DESCRIBE_TOPIC_PARTITIONS, asking("a")), "topics")

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


async def test_a_missing_leader_is_no_error() -> None:
    """Unlike in Metadata: -1 says it (KRaftMetadataCache.getPartitionMetadataForDescribeTopicResponse)."""
    started = await active_with_topic("a", {0: (2,)})
    started.brokers_are(broker(1))

    partition = only(await ask(started, ApiKey.DESCRIBE_TOPIC_PARTITIONS, asking("a")), "topics", "partitions")

    assert (partition["error_code"], partition["leader_id"]) == (ErrorCode.NONE, -1)


@pytest.mark.parametrize(
    ("name", "code"),
    [("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("bad/name", ErrorCode.INVALID_TOPIC_EXCEPTION)],
)
async def test_a_name_that_no_topic_has(name: str, code: ErrorCode) -> None:
    """Named topics are answered one by one."""
    topic = only(await ask(active_with(), ApiKey.DESCRIBE_TOPIC_PARTITIONS, asking(name)), "topics")

    assert (code, name) == (topic["error_code"], topic["name"])


async def test_pages_follow_each_other_by_their_cursors() -> None:
    """Each page ends at the limit, each cursor begins where it ended, and nothing is left out or told twice."""
    started, cursor, pages = await active(), None, []
    while True:
        response = await ask(started, ApiKey.DESCRIBE_TOPIC_PARTITIONS, asking(limit=4, cursor=cursor))
        pages.append(partitions(response))
        if response["next_cursor"] is None:
            break
        cursor = (response["next_cursor"]["topic_name"], response["next_cursor"]["partition_index"])

    assert pages == [{"a": [0, 1, 2], "b": [0]}, {"b": [1, 2], "c": [0, 1]}, {"c": [2]}]


async def test_a_page_that_ends_with_a_topic_points_to_the_next() -> None:
    """The cursor names the next topic's first partition."""
    response = await ask(await active(), ApiKey.DESCRIBE_TOPIC_PARTITIONS, asking("a", "b", limit=3))

    assert (
        partitions(response),
        response["next_cursor"],
    ) == ({"a": [0, 1, 2]}, {"topic_name": "b", "partition_index": 0})


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_page_has_at_least_one_partition(limit: int) -> None:
    """Or a client would ask for ever."""
    response = await ask(await active(), ApiKey.DESCRIBE_TOPIC_PARTITIONS, asking(limit=limit))

    assert partitions(response) == {"a": [0]}


async def test_a_page_has_no_more_than_the_servers_limit() -> None:
    """max.request.partition.size.limit."""
    started = active_with()
    await add_topic(started, "a", dict.fromkeys(range(2_001), (1,)))

    response = await ask(started, ApiKey.DESCRIBE_TOPIC_PARTITIONS, asking(limit=1_000_000))

    assert response["next_cursor"] == {"topic_name": "a", "partition_index": 2_000}


async def test_a_cursor_in_a_topic_that_is_gone_goes_on_with_the_next() -> None:
    """Topics may be deleted between two pages."""
    response = await ask(await active(), ApiKey.DESCRIBE_TOPIC_PARTITIONS, asking(cursor=("aa", 2)))

    assert partitions(response) == {"b": [0, 1, 2], "c": [0, 1, 2]}


@pytest.mark.parametrize("cursor", [("c", 0), ("a", -1)])
async def test_a_cursor_that_no_page_can_have_ended_with_is_refused(cursor: tuple[str, int]) -> None:
    """INVALID_REQUEST for every topic that is named."""
    response = await ask(await active(), ApiKey.DESCRIBE_TOPIC_PARTITIONS, asking("a", "b", cursor=cursor))

    assert [topic["error_code"] for topic in response["topics"]] == [ErrorCode.INVALID_REQUEST] * 2


async def test_topics_without_partitions_do_not_end_the_pages() -> None:
    """They take no room on a page, and yet only so many topics are sorted for one: the cursor leads on."""
    started = active_with()
    for number in range(7):
        none = TopicAdded(f"empty-{number}", None, np.zeros(0, np.int32), np.zeros((0, 1), np.int32), Origin.OBSERVED)
        apply(started.cluster, none)
    found: list[str] = []
    cursor = None
    while True:
        response = await ask(started, ApiKey.DESCRIBE_TOPIC_PARTITIONS, asking(limit=1, cursor=cursor))
        found += [topic["name"] for topic in response["topics"]]
        if response["next_cursor"] is None:
            break
        cursor = (response["next_cursor"]["topic_name"], response["next_cursor"]["partition_index"])
    assert found == [f"empty-{number}" for number in range(7)]
