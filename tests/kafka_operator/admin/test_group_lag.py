"""Lag of consumer groups, read from Kafka's answers."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_operator.admin.connection import VERSIONS
from kafka_operator.admin.group_lag import committed_of, lag_of, list_offsets_request, query_group_lags
from kafka_operator.admin.requests import Request
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.resources.reassignment import Partition
from kafka_wire import ApiKey, Body, codec
from tests.kafka_operator.fake_connection import AWAY, Answer, FakeConnection

T0, T1 = Partition("t", 0), Partition("t", 1)
COORDINATORS = {"a": 1, "b": 1, "c": 3}


def committed(*offsets: int, error_code: int = 0) -> Body:
    """An OffsetFetch answer; -1 for a partition without a committed offset."""
    partitions = [
        {"partition_index": index, "committed_offset": offset, "error_code": 0, "metadata": ""}
        for index, offset in enumerate(offsets)
    ]
    return {"error_code": error_code, "topics": [{"name": "t", "partitions": partitions}]}


def answer(node: int | str, request: Request) -> Answer:
    """Coordinator 1 has group `a`, and does not know `b`; broker 2 leads t-0 and t-1; broker 3, the coordinator of `c`, is away."""
    if node == 3:
        return AWAY
    if request.key is ApiKey.FIND_COORDINATOR:
        return {
            "error_code": 0,
            "error_message": None,
            "node_id": COORDINATORS[request.body["key"]],
            "host": "",
            "port": 1,
        }
    if request.key is ApiKey.OFFSET_FETCH:
        return committed(5, 7, -1) if request.body["group_id"] == "a" else committed()
    if request.key is ApiKey.METADATA:
        return {"brokers": [{"node_id": 2, "host": "", "port": 1, "rack": None}], "topics": [topic((2, 2, 2))]}
    (asked,) = request.body["topics"]
    ends = [
        {"partition_index": item["partition_index"], "offset": 10 + item["partition_index"]}
        for item in asked["partitions"]
    ]
    return {"topics": [{"name": "t", "partitions": ends}]}


def topic(leaders: Sequence[int]) -> Body:
    """Topic t of a Metadata answer."""
    partitions = [{"partition_index": index, "leader_id": leader} for index, leader in enumerate(leaders)]
    return {"name": "t", "partitions": partitions}


async def test_the_lag_of_a_group_is_the_sum_over_its_partitions_and_an_error_of_one_group_is_its_own() -> None:
    """Ends are queried from the leader, only for partitions with a committed offset."""
    connection = FakeConnection(answer)

    lags = await query_group_lags(connection, ["a", "b", "c"])

    assert lags["a"] == (10 - 5) + (11 - 7)
    assert isinstance(lags["b"], Failure)
    assert lags["b"].message == "Group b has no committed offsets: check its name."
    assert isinstance(lags["c"], Failure)
    assert lags["c"].name == "BROKER_NOT_AVAILABLE"
    queried = [request for node, request in connection.requests if node == 2]
    assert queried == [list_offsets_request([T0, T1])]


def test_requests_can_be_encoded_in_every_version_in_use() -> None:
    """Kafka 2.4 has version 2 of FindCoordinator, 6 of OffsetFetch and 5 of ListOffsets; Kafka 4 the highest ones."""
    group = {"group_id": "a", "topics": None}
    requests = [
        Request(ApiKey.FIND_COORDINATOR, {"key": "a", "key_type": 0}),
        Request(ApiKey.OFFSET_FETCH, group),
        list_offsets_request([T0]),
    ]
    for request in requests:
        lowest, highest = VERSIONS[request.key]
        for version in (lowest, min(highest, codec.versions(f"{request.key.message}Request")[1])):
            assert codec.encode_request(request.key, version, 0, None, request.body)


def test_a_group_that_may_not_be_read_is_a_failure() -> None:
    """GROUP_AUTHORIZATION_FAILED."""
    found = committed_of(committed(error_code=30), "a")

    assert isinstance(found, Failure)
    assert found.code == 30


def test_a_partition_without_a_leader_makes_the_lag_unknown() -> None:
    """A sum without it would be too low. A group that was reset beyond the end has no lag, nor has one of an empty partition."""
    assert lag_of({T0: 5, T1: 5}, {T0: 9, T1: 3}) == 4
    assert lag_of({T0: 0}, {T0: 0}) == 0
    assert isinstance(lag_of({T0: 5, T1: 5}, {T0: 9}), Failure)
