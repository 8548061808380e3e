"""CreatePartitions (KIP-195, KafkaApis.handleCreatePartitionsRequest, ZkAdminManager.createPartitions)."""

from typing import Any

import pytest

from controller_core.model import TopicPartition
from controller_core.model.events import AlterReassignments
from kafka_wire import ApiKey, Body, ErrorCode
from tests.controller_core.shell.admin.api_calls import active_with_topic, add_topic, call, only
from tests.controller_core.shell.admin.fake_active import active_with


def topic(name: str, count: int, *assignments: list[int]) -> Body:
    """Return one topic of a request."""
    given = [{"broker_ids": ids} for ids in assignments] or None
    return {"name": name, "count": count, "assignments": given}


def request(*topics: Body, timeout_ms: int = 60_000, **others: Any) -> Body:
    """Return a request."""
    return {"topics": list(topics), "timeout_ms": timeout_ms, **others}


async def test_partitions_are_added() -> None:
    """`count` is the total number of partitions."""
    active = await active_with_topic("a", {0: (1, 2)})

    response = await call(active, ApiKey.CREATE_PARTITIONS, request(topic("a", 4)))

    assert only(response, "results") == {"name": "a", "error_code": ErrorCode.NONE, "error_message": None}
    assert len(active.cluster.topics["a"].rows) == 4
    assert active.waits_ms == [pytest.approx(60_000, abs=5_000)]


async def test_given_assignment_is_used() -> None:
    """Replicas of each added partition."""
    active = await active_with_topic("a", {0: (1, 2)})

    await call(active, ApiKey.CREATE_PARTITIONS, request(topic("a", 2, [3, 1])))

    assert active.cluster.columns.replicas_of(active.row(TopicPartition("a", 1))) == (3, 1)


@pytest.mark.parametrize(
    ("requested", "code", "message"),
    [
        (topic("a", 2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partitions."),
        (
            topic("a", 1),
            ErrorCode.INVALID_PARTITIONS,
            "Topic currently has 2 partitions, which is higher than the requested 1.",
        ),
        (topic("b", 1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'b' does not exist."),
        (
            topic("a", 4, [1]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Increasing the number of partitions by 2 but 1 assignments provided.",
        ),
        (
            topic("a", 3, [9]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Unknown broker(s) in replica assignment: 9.",
        ),
    ],
)
async def test_errors_of_the_core_are_returned(requested: Body, code: ErrorCode, message: str) -> None:
    """ZkAdminManager.createPartitions."""
    active = await active_with_topic("a", {0: (1,), 1: (2,)})

    result = only(await call(active, ApiKey.CREATE_PARTITIONS, request(requested)), "results")

    assert (code, message) == (result["error_code"], result["error_message"])
    assert active.waits_ms == []


async def test_topic_with_running_move_is_refused() -> None:
    """REASSIGNMENT_IN_PROGRESS (KIP-455)."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.run(AlterReassignments({TopicPartition("a", 0): (2, 3)}))

    result = only(await call(active, ApiKey.CREATE_PARTITIONS, request(topic("a", 2))), "results")

    assert result["error_code"] == ErrorCode.REASSIGNMENT_IN_PROGRESS


async def test_duplicate_name_does_not_affect_other_topics() -> None:
    """KafkaApis.handleCreatePartitionsRequest."""
    active = await active_with_topic("a", {0: (1,)})
    await add_topic(active, "b", {0: (1,)})

    response = await call(active, ApiKey.CREATE_PARTITIONS, request(topic("a", 2), topic("b", 2), topic("a", 3)))

    assert [(result["name"], result["error_code"], result["error_message"]) for result in response["results"]] == [
        ("a", ErrorCode.INVALID_REQUEST, "Duplicate topic in request."),
        ("b", ErrorCode.NONE, None),
    ]


async def test_validate_only_adds_nothing() -> None:
    """The answer is that of an actual change."""
    active = await active_with_topic("a", {0: (1,)})

    response = await call(active, ApiKey.CREATE_PARTITIONS, request(topic("a", 2), validate_only=True, timeout_ms=0))

    assert only(response, "results")["error_code"] == ErrorCode.NONE
    assert len(active.cluster.topics["a"].rows) == 1
    assert active.waits_ms == []


async def test_added_partitions_without_timeout_are_answered_timed_out() -> None:
    """ZkAdminManager.createPartitions; the partitions are added."""
    active = await active_with_topic("a", {0: (1,)})

    response = await call(active, ApiKey.CREATE_PARTITIONS, request(topic("a", 2), timeout_ms=0))

    assert only(response, "results")["error_code"] == ErrorCode.REQUEST_TIMED_OUT
    assert len(active.cluster.topics["a"].rows) == 2


async def test_no_event_is_submitted_without_valid_topics() -> None:
    """An empty event would be scheduled for nothing."""
    active = active_with()

    await call(active, ApiKey.CREATE_PARTITIONS, request(topic("a", 2), topic("a", 2)))

    assert active.submitted == []
