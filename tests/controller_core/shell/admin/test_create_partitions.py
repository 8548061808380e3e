"""CreatePartitions (KIP-195, KafkaApis.handleCreatePartitionsRequest, ZkAdminManager.createPartitions)."""

from typing import Any

import pytest

from controller_core.model.events import AlterReassignments
from controller_core.model.ids import TopicPartition
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from tests.controller_core.shell.admin.asking import active_with_topic, add_topic, ask, only
from tests.controller_core.shell.admin.fake_active import active_with


def topic(name: str, count: int, *assignments: list[int]) -> Body:
    """One topic of a request."""
    given = [{"broker_ids": ids} for ids in assignments] or None
    return {"name": name, "count": count, "assignments": given}


def asking(*topics: Body, timeout_ms: int = 60_000, **others: Any) -> Body:
    """A request."""
    return {"topics": list(topics), "timeout_ms": timeout_ms, **others}


async def test_a_topic_grows() -> None:
    """`count` is of all partitions, old and new."""
    active = await active_with_topic("a", {0: (1, 2)})

    response = await ask(active, ApiKey.CREATE_PARTITIONS, asking(topic("a", 4)))

    assert only(response, "results") == {"name": "a", "error_code": ErrorCode.NONE, "error_message": None}
    assert len(active.cluster.topics["a"].rows) == 4
    assert active.waits_ms == [pytest.approx(60_000, abs=5_000)]


async def test_a_given_assignment_is_taken() -> None:
    """Replicas of each partition that is added."""
    active = await active_with_topic("a", {0: (1, 2)})

    await ask(active, ApiKey.CREATE_PARTITIONS, asking(topic("a", 2, [3, 1])))

    assert active.cluster.columns.replicas_of(active.row(TopicPartition("a", 1))) == (3, 1)


@pytest.mark.parametrize(
    ("asked", "code", "words"),
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
async def test_what_the_core_refuses_is_answered_in_its_words(asked: Body, code: ErrorCode, words: str) -> None:
    """ZkAdminManager.createPartitions."""
    active = await active_with_topic("a", {0: (1,), 1: (2,)})

    result = only(await ask(active, ApiKey.CREATE_PARTITIONS, asking(asked)), "results")

    assert (code, words) == (result["error_code"], result["error_message"])
    assert active.waits_ms == []


async def test_a_topic_that_moves_does_not_grow() -> None:
    """REASSIGNMENT_IN_PROGRESS (KIP-455)."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.run(AlterReassignments({TopicPartition("a", 0): (2, 3)}))

    result = only(await ask(active, ApiKey.CREATE_PARTITIONS, asking(topic("a", 2))), "results")

    assert result["error_code"] == ErrorCode.REASSIGNMENT_IN_PROGRESS


async def test_a_name_that_stands_twice_is_refused_and_the_others_grow() -> None:
    """KafkaApis.handleCreatePartitionsRequest."""
    active = await active_with_topic("a", {0: (1,)})
    await add_topic(active, "b", {0: (1,)})

    response = await ask(active, ApiKey.CREATE_PARTITIONS, asking(topic("a", 2), topic("b", 2), topic("a", 3)))

    assert [(result["name"], result["error_code"], result["error_message"]) for result in response["results"]] == [
        ("a", ErrorCode.INVALID_REQUEST, "Duplicate topic in request."),
        ("b", ErrorCode.NONE, None),
    ]


async def test_to_validate_only_adds_nothing() -> None:
    """The answer is as if it were done."""
    active = await active_with_topic("a", {0: (1,)})

    response = await ask(active, ApiKey.CREATE_PARTITIONS, asking(topic("a", 2), validate_only=True, timeout_ms=0))

    assert only(response, "results")["error_code"] == ErrorCode.NONE
    assert len(active.cluster.topics["a"].rows) == 1
    assert active.waits_ms == []


async def test_without_time_to_wait_added_partitions_are_answered_timed_out() -> None:
    """ZkAdminManager.createPartitions; they are added all the same."""
    active = await active_with_topic("a", {0: (1,)})

    response = await ask(active, ApiKey.CREATE_PARTITIONS, asking(topic("a", 2), timeout_ms=0))

    assert only(response, "results")["error_code"] == ErrorCode.REQUEST_TIMED_OUT
    assert len(active.cluster.topics["a"].rows) == 2


async def test_where_nothing_can_grow_nothing_is_submitted() -> None:
    """An empty event would take a turn of its own."""
    active = active_with()

    await ask(active, ApiKey.CREATE_PARTITIONS, asking(topic("a", 2), topic("a", 2)))

    assert active.submitted == []
