"""Metadata and DescribeTopicPartitions. Source: KafkaApis.handleTopicMetadataRequest, KRaftMetadataCache."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from kafka_wire import ApiKey, ErrorCode
from light_broker.core.metadata_view import BrokerView, MetadataView
from tests.light_broker.fixed_control import partition_view, topic_view, view_of
from tests.light_broker.shell.apis.calls import broker_with, call

ORDERS = topic_view("orders", partition_view(leader=1, replicas=(1, 2), isr=(1,)), number=1)


async def topics(view: MetadataView, version: int = 13, **request: Any) -> list[Any]:
    """Return the topics of a response."""
    answer = await call(broker_with(view), ApiKey.METADATA, request, version=version)
    assert answer is not None
    return list(answer["topics"])


@pytest.mark.parametrize("version", range(14))
async def test_every_version_describes_a_topic(version: int) -> None:
    """0 to 13; a field that a version lacks is left out."""
    asked = await topics(view_of(ORDERS, brokers=(1, 2)), version, topics=[{"name": "orders"}])

    assert [(topic["name"], topic["error_code"]) for topic in asked] == [("orders", ErrorCode.NONE)]
    assert [
        (partition["leader_id"], partition["replica_nodes"], partition["isr_nodes"])
        for partition in asked[0]["partitions"]
    ] == [(1, [1, 2], [1])]


async def test_all_topics_are_described_to_a_request_without_a_list() -> None:
    """Null; in version 0 an empty list. An empty list of later versions is for the brokers only."""
    view = view_of(ORDERS, topic_view("events", number=2))

    assert [topic["name"] for topic in await topics(view, topics=None)] == ["orders", "events"]
    assert [topic["name"] for topic in await topics(view, 0, topics=[])] == ["orders", "events"]
    assert await topics(view, topics=[]) == []


@pytest.mark.parametrize(
    ("leader", "error"),
    [
        (-1, ErrorCode.LEADER_NOT_AVAILABLE),
        (9, ErrorCode.LEADER_NOT_AVAILABLE),
        (2, ErrorCode.LEADER_NOT_AVAILABLE),
        (3, ErrorCode.LISTENER_NOT_FOUND),
    ],
)
async def test_a_leader_that_the_client_cannot_reach_is_an_error(leader: int, error: ErrorCode) -> None:
    """None, gone, fenced, or without the client's listener."""
    view = view_of(topic_view("orders", partition_view(leader=leader, replicas=(1, 2, 3))), brokers=(1, 2))
    brokers = {**view.brokers, 2: replace(view.brokers[2], is_fenced=True), 3: BrokerView(3)}

    (topic,) = await topics(replace(view, brokers=brokers), topics=[{"name": "orders"}])

    assert [(partition["error_code"], partition["leader_id"]) for partition in topic["partitions"]] == [(error, -1)]
    assert [partition["offline_replicas"] for partition in topic["partitions"]] == [[2]]


async def test_a_missing_topic_is_not_created_where_the_request_or_the_broker_does_not_allow_it() -> None:
    """allow_auto_topic_creation, auto.create.topics.enable; a name that no topic can have."""
    off = broker_with(view_of(), {"auto.create.topics.enable": "false"})
    asked = {"topics": [{"name": "new"}, {"name": "a b"}]}
    for broker, allowed in ((off, True), (broker_with(view_of()), False)):
        answer = await call(broker, ApiKey.METADATA, {**asked, "allow_auto_topic_creation": allowed})

        assert answer is not None
        assert [topic["error_code"] for topic in answer["topics"]] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        ]


async def test_the_error_of_the_control_plane_is_that_of_a_topic_that_it_does_not_create() -> None:
    """Such as NOT_CONTROLLER."""
    (topic,) = await topics(view_of(), topics=[{"name": "new"}], allow_auto_topic_creation=True)

    assert topic["error_code"] == ErrorCode.NOT_CONTROLLER


async def test_topics_are_found_by_id_from_version_12_on() -> None:
    """KIP-516. Before, an id or a missing name makes the request invalid."""
    asked = [{"name": None, "topic_id": UUID(int=1)}, {"name": None, "topic_id": UUID(int=7)}]

    found = await topics(view_of(ORDERS), topics=asked)

    assert [(topic["name"], topic["error_code"]) for topic in found] == [
        ("orders", ErrorCode.NONE),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    refused = await topics(view_of(ORDERS), 11, topics=asked)
    assert [topic["error_code"] for topic in refused] == [ErrorCode.INVALID_REQUEST] * 2


async def test_a_page_ends_at_the_limit_and_names_the_beginning_of_the_next_one() -> None:
    """KIP-966: the cursor is null after the last topic."""
    view = view_of(
        topic_view("a", *[partition_view()] * 3, number=1), topic_view("b", *[partition_view()] * 2, number=2)
    )
    pages, cursor = [], None
    while True:
        body = {"topics": [], "response_partition_limit": 2, "cursor": cursor}
        answer = await call(broker_with(view), ApiKey.DESCRIBE_TOPIC_PARTITIONS, body)
        assert answer is not None
        pages.append([(topic["name"], len(topic["partitions"])) for topic in answer["topics"]])
        cursor = answer["next_cursor"]
        if cursor is None:
            break

    assert pages == [[("a", 2)], [("a", 1), ("b", 1)], [("b", 1)]]


async def test_a_cursor_outside_the_requested_topics_is_refused() -> None:
    """INVALID_REQUEST for each topic."""
    body = {"topics": [{"name": "a"}], "cursor": {"topic_name": "b", "partition_index": 0}}

    answer = await call(broker_with(view_of()), ApiKey.DESCRIBE_TOPIC_PARTITIONS, body)

    assert answer is not None
    assert [topic["error_code"] for topic in answer["topics"]] == [ErrorCode.INVALID_REQUEST]
