"""DeleteTopics (KIP-4, KIP-516, KafkaApis.handleDeleteTopicsRequest, ZkAdminManager.deleteTopics)."""

from uuid import UUID, uuid4

import pytest

from controller_core.model.events import DeleteTopics
from controller_core.shell.active import Defaults
from kafka_wire import ApiKey, Body, ErrorCode
from tests.controller_core.shell.admin.api_calls import active_with_topic, add_topic, call, only
from tests.controller_core.shell.admin.fake_active import FakeActive, active_with, broker

NO_ID = UUID(int=0)


def by_name(*names: str, timeout_ms: int = 1_000) -> Body:
    """Return a request of version 6 with names."""
    return {"topics": [{"name": name} for name in names], "timeout_ms": timeout_ms}


def topic_id(active: FakeActive, name: str) -> UUID:
    """Return the id of a topic."""
    found = active.cluster.topics[name].topic_id
    assert found is not None
    return found


def results(response: Body) -> list[tuple[str | None, int]]:
    """Return names and error codes, in order."""
    return [(result["name"], result["error_code"]) for result in response["responses"]]


async def test_topic_is_deleted_before_the_response() -> None:
    """Every replica has answered StopReplica before (C10)."""
    active = await active_with_topic("a", {0: (1, 2)})

    response = await call(active, ApiKey.DELETE_TOPICS, by_name("a"))

    assert results(response) == [("a", ErrorCode.NONE)]
    assert active.cluster.topics == {}


@pytest.mark.parametrize("version", [0, 1, 3, 4, 5])
async def test_earlier_versions_delete_by_name(version: int) -> None:
    """Version 6 added ids."""
    active = await active_with_topic("a", {0: (1,)})

    response = await call(active, ApiKey.DELETE_TOPICS, {"topic_names": ["a"], "timeout_ms": 1_000}, version)

    assert results(response) == [("a", ErrorCode.NONE)]


async def test_topic_is_deleted_by_id() -> None:
    """KIP-516: the answer has id and name."""
    active = await active_with_topic("a", {0: (1,)})
    requested = topic_id(active, "a")

    response = await call(
        active, ApiKey.DELETE_TOPICS, {"topics": [{"name": None, "topic_id": requested}], "timeout_ms": 1_000}
    )

    assert ("a", requested, ErrorCode.NONE) == (
        only(response, "responses")["name"],
        only(response, "responses")["topic_id"],
        only(response, "responses")["error_code"],
    )
    assert active.cluster.topics == {}


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        ({"name": "unknown"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"name": None, "topic_id": uuid4()}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"name": "a", "topic_id": uuid4()}, ErrorCode.INVALID_REQUEST),
        ({"name": None}, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_unidentified_topic_does_not_affect_other_topics(topic: Body, code: ErrorCode) -> None:
    """An unknown id, or both a name and an id, or neither."""
    active = await active_with_topic("a", {0: (1,)})
    await add_topic(active, "b", {0: (1,)})

    response = await call(active, ApiKey.DELETE_TOPICS, {"topics": [topic, {"name": "b"}], "timeout_ms": 1_000})

    assert results(response) == [(topic["name"], code), ("b", ErrorCode.NONE)]
    assert response["responses"][0]["error_message"]
    assert list(active.cluster.topics) == ["a"]


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
async def test_nothing_is_deleted_if_deletion_is_disabled(version: int, code: ErrorCode) -> None:
    """delete.topic.enable=false; versions below 3 have no error code for it."""
    active = await active_with_topic("a", {0: (1,)}, defaults=Defaults(delete_topic_enable=False))

    response = await call(active, ApiKey.DELETE_TOPICS, {"topic_names": ["a"], "timeout_ms": 1_000}, version)

    assert results(response) == [("a", code)]
    assert active.submitted == []


async def test_nothing_is_deleted_while_settings_are_unknown() -> None:
    """The brokers may have delete.topic.enable=false; the error is retriable."""
    active = await active_with_topic("a", {0: (1,)}, defaults=None)

    response = await call(active, ApiKey.DELETE_TOPICS, by_name("a"))

    assert results(response) == [("a", ErrorCode.REQUEST_TIMED_OUT)]
    assert active.submitted == []


async def test_slow_deletion_is_answered_timed_out_and_continues() -> None:
    """DelayedDeleteTopics: REQUEST_TIMED_OUT for each topic that still exists; the deletion stays queued."""
    active = await active_with_topic("a", {0: (1, 2)})
    await add_topic(active, "b", {0: (1,)})
    active.brokers_are(broker(1))

    response = await call(active, ApiKey.DELETE_TOPICS, by_name("a", "b"))
    active.brokers_are(broker(1), broker(2))
    active.resume_deletions()

    assert results(response) == [("a", ErrorCode.REQUEST_TIMED_OUT), ("b", ErrorCode.NONE)]
    assert active.deletion_waits_ms == [1_000, 1_000]
    assert active.cluster.topics == {}


@pytest.mark.parametrize("timeout_ms", [0, -5])
async def test_deletion_without_timeout_is_answered_timed_out(timeout_ms: int) -> None:
    """ZkAdminManager.deleteTopics."""
    active = await active_with_topic("a", {0: (1,)})

    response = await call(active, ApiKey.DELETE_TOPICS, by_name("a", timeout_ms=timeout_ms))

    assert results(response) == [("a", ErrorCode.REQUEST_TIMED_OUT)]
    assert active.deletion_waits_ms == []


async def test_wait_is_limited() -> None:
    """A timeout of days would occupy the connection for days."""
    active = await active_with_topic("a", {0: (1,)})

    await call(active, ApiKey.DELETE_TOPICS, by_name("a", timeout_ms=2**31 - 1))

    assert active.deletion_waits_ms == [600_000]


async def test_repeated_request_waits_for_the_same_deletion() -> None:
    """ZkAdminManager: TopicAlreadyMarkedForDeletionException is not an error."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.brokers_are(broker(1))
    active.run(DeleteTopics(("a",)))

    response = await call(active, ApiKey.DELETE_TOPICS, by_name("a"))

    assert results(response) == [("a", ErrorCode.REQUEST_TIMED_OUT)]


async def test_duplicate_topic_is_deleted_once() -> None:
    """KafkaApis collects names in a set and answers every entry."""
    active = await active_with_topic("a", {0: (1,)})

    response = await call(active, ApiKey.DELETE_TOPICS, by_name("a", "a"))

    assert results(response) == [("a", ErrorCode.NONE)] * 2
    assert active.submitted == [DeleteTopics(("a",))]


async def test_no_event_is_submitted_without_valid_topics() -> None:
    """An empty event would be scheduled for nothing."""
    active = active_with()

    response = await call(active, ApiKey.DELETE_TOPICS, {"topics": [{"name": None, "topic_id": uuid4()}]})

    assert results(response) == [(None, ErrorCode.UNKNOWN_TOPIC_ID)]
    assert active.submitted == []
