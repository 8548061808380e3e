"""CreateTopics (KIP-4, KIP-464, KIP-525, KIP-516; KafkaApis, ControllerApis, ZkAdminManager)."""

from typing import Any
from uuid import UUID

import pytest

from controller_core.model import TopicPartition
from controller_core.model.events import CreateTopics
from controller_core.shell.active import Defaults, TopicDefault
from controller_core.zookeeper_mode.apis import SERVED
from kafka_wire import ApiKey, Body, ErrorCode
from tests.controller_core.shell.admin.api_calls import active_with_topic, call, only, pick
from tests.controller_core.shell.admin.fake_active import active_with, broker

NO_ID = UUID(int=0)


def topic(name: str, partitions: int = 1, replication_factor: int = 1, **others: Any) -> Body:
    """Return one topic of a request."""
    return {"name": name, "num_partitions": partitions, "replication_factor": replication_factor, **others}


def request(*topics: Body, timeout_ms: int = 60_000, **others: Any) -> Body:
    """Return a request."""
    return {"topics": list(topics), "timeout_ms": timeout_ms, **others}


def failure(response: Body) -> tuple[int, str]:
    """Return the error of the only topic."""
    result = only(response, "topics")
    return result["error_code"], result["error_message"]


async def test_topic_is_created_and_described() -> None:
    """Version 7: id, partitions, replication factor; the error message is null."""
    active = active_with()

    result = only(await call(active, ApiKey.CREATE_TOPICS, request(topic("a", 6, 3))), "topics")

    assert pick(result, "name", "error_code", "error_message", "topic_id", "num_partitions", "replication_factor") == {
        "name": "a",
        "error_code": ErrorCode.NONE,
        "error_message": None,
        "topic_id": active.cluster.topics["a"].topic_id,
        "num_partitions": 6,
        "replication_factor": 3,
    }
    assert len(active.cluster.topics["a"].rows) == 6


async def test_same_random_numbers_give_same_placement() -> None:
    """Random numbers are part of the event, so repeated decisions are equal (the core has no random source)."""
    placed = []
    for _ in range(2):
        active = active_with()
        await call(active, ApiKey.CREATE_TOPICS, request(topic("a", 6, 2)))
        placed.append([active.cluster.columns.replicas_of(row) for row in active.cluster.topics["a"].rows.tolist()])

    assert placed[0] == placed[1]


async def test_topics_of_one_request_have_different_ids_and_placements() -> None:
    """Topics of one request do not all start on the same broker."""
    active = active_with()
    await call(active, ApiKey.CREATE_TOPICS, request(topic("a"), topic("b")))
    (event,) = active.submitted
    assert isinstance(event, CreateTopics)
    first, second = event.topics

    assert first.topic_id != second.topic_id
    assert (first.start_index, first.replica_shift) != (second.start_index, second.replica_shift)


async def test_minus_one_uses_the_cluster_defaults() -> None:
    """KIP-464."""
    active = active_with(defaults=Defaults(num_partitions=4, default_replication_factor=2))

    result = only(await call(active, ApiKey.CREATE_TOPICS, request(topic("a", -1, -1))), "topics")

    assert (result["num_partitions"], result["replication_factor"]) == (4, 2)


async def test_topic_with_unknown_defaults_is_not_created() -> None:
    """One replica instead of a default.replication.factor of 3 could lose data; the error is retriable."""
    active = active_with(defaults=None)
    topics = [topic("a", -1, 2), topic("b", 1, -1), topic("c", 1, 1)]

    response = await call(active, ApiKey.CREATE_TOPICS, request(*topics))

    answered = [(result["name"], result["error_code"]) for result in response["topics"]]
    assert answered == [("a", ErrorCode.REQUEST_TIMED_OUT), ("b", ErrorCode.REQUEST_TIMED_OUT), ("c", ErrorCode.NONE)]
    assert "settings" in response["topics"][0]["error_message"]
    assert list(active.cluster.topics) == ["c"]


async def test_topic_without_defaults_does_not_wait_for_settings() -> None:
    """The request contains numbers or an assignment."""
    given = [{"partition_index": 0, "broker_ids": [2, 3]}]
    active = active_with(defaults=None)

    response = await call(
        active, ApiKey.CREATE_TOPICS, request(topic("a", 1, 1), topic("b", -1, -1, assignments=given))
    )

    assert [result["error_code"] for result in response["topics"]] == [ErrorCode.NONE] * 2
    assert active.settings_waits_ms == []


async def test_given_assignment_is_used() -> None:
    """Replicas by partition."""
    given = [{"partition_index": 1, "broker_ids": [3, 1]}, {"partition_index": 0, "broker_ids": [2, 3]}]
    active = active_with()

    await call(active, ApiKey.CREATE_TOPICS, request(topic("a", -1, -1, assignments=given)))

    rows = [active.row(TopicPartition("a", number)) for number in (0, 1)]
    assert [active.cluster.columns.replicas_of(row) for row in rows] == [(2, 3), (3, 1)]


async def test_duplicate_name_does_not_affect_other_topics() -> None:
    """ControllerApis.createTopics; the duplicate is answered once."""
    active = active_with()

    response = await call(active, ApiKey.CREATE_TOPICS, request(topic("a"), topic("b"), topic("a", 2)))

    assert [(result["name"], result["error_code"], result["error_message"]) for result in response["topics"]] == [
        ("a", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        ("b", ErrorCode.NONE, None),
    ]
    assert list(active.cluster.topics) == ["b"]


async def test_name_of_the_metadata_log_is_refused() -> None:
    """KafkaApis.handleCreateTopicsRequest."""
    response = await call(active_with(), ApiKey.CREATE_TOPICS, request(topic("__cluster_metadata")))

    assert failure(response) == (
        ErrorCode.INVALID_REQUEST,
        "Creation of internal topic __cluster_metadata is prohibited.",
    )


@pytest.mark.parametrize(
    ("requested", "code", "message"),
    [
        (topic("a"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'a' already exists."),
        (topic("b", 1, 9), ErrorCode.INVALID_REPLICATION_FACTOR, None),
        (topic("b", 0, 1), ErrorCode.INVALID_PARTITIONS, None),
        (topic("b/c"), ErrorCode.INVALID_TOPIC_EXCEPTION, None),
        (
            topic("b", configs=[{"name": "retention.ms", "value": None}]),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: retention.ms",
        ),
        (
            topic("b", configs=[{"name": "retention.ms", "value": "x"}]),
            ErrorCode.INVALID_CONFIG,
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        (
            topic("b", -1, -1, assignments=[{"partition_index": 0, "broker_ids": [1, 9]}]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            None,
        ),
        (topic("b", 1, 1, assignments=[{"partition_index": 0, "broker_ids": [1]}]), ErrorCode.INVALID_REQUEST, None),
    ],
)
async def test_errors_of_the_core_are_returned(requested: Body, code: ErrorCode, message: str | None) -> None:
    """ZkAdminManager.createTopics; a failed topic has no id, no numbers and no configurations."""
    active = await active_with_topic("a", {0: (1,)})

    response = await call(active, ApiKey.CREATE_TOPICS, request(requested))
    result = only(response, "topics")

    assert code == result["error_code"]
    assert message is None or message == result["error_message"]
    assert result["error_message"]
    assert pick(result, "topic_id", "num_partitions", "replication_factor", "configs") == {
        "topic_id": NO_ID,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": [],
    }
    assert active.waits_ms == []


async def test_validate_only_creates_nothing() -> None:
    """The answer is that of a created topic without an id."""
    active = active_with()

    result = only(
        await call(active, ApiKey.CREATE_TOPICS, request(topic("a", 3, 2), validate_only=True, timeout_ms=0)), "topics"
    )

    assert (
        result["error_code"],
        result["topic_id"],
        result["num_partitions"],
        result["replication_factor"],
    ) == (ErrorCode.NONE, NO_ID, 3, 2)
    assert active.cluster.topics == {}
    assert active.waits_ms == []


@pytest.mark.parametrize(("timeout_ms", "waited_ms"), [(20_000, 20_000), (2_000_000, 600_000)])
async def test_response_waits_for_brokers_up_to_the_timeout(timeout_ms: int, waited_ms: int) -> None:
    """DelayedCreatePartitions: a client that sends its next request to another broker finds the topic there."""
    active = active_with()

    await call(active, ApiKey.CREATE_TOPICS, request(topic("a"), timeout_ms=timeout_ms))

    assert active.state_waits_ms == [waited_ms]
    assert active.waits_ms == [pytest.approx(waited_ms, abs=15_000)]


async def test_created_topic_without_leader_is_answered_timed_out() -> None:
    """DelayedCreatePartitions.onComplete: all replicas of one topic are down; the other topic of the request succeeds."""
    active = await active_with_topic("old", {0: (1, 2, 3)})
    active.brokers_are(broker(1), broker(2))
    requested = [
        {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": [given]}
        for name, given in {
            "dark": {"partition_index": 0, "broker_ids": [3]},
            "well": {"partition_index": 0, "broker_ids": [3, 1]},
        }.items()
    ]
    response = await call(active, ApiKey.CREATE_TOPICS, {"topics": requested, "timeout_ms": 300})

    codes = {result["name"]: result["error_code"] for result in response["topics"]}
    assert codes == {"dark": ErrorCode.REQUEST_TIMED_OUT, "well": ErrorCode.NONE}
    assert active.cluster.columns.leader[active.row(TopicPartition("well", 0))] == 1


@pytest.mark.parametrize("timeout_ms", [0, -1])
async def test_created_topic_without_timeout_is_answered_timed_out(timeout_ms: int) -> None:
    """ZkAdminManager.createTopics; the topic is created."""
    active = active_with()

    response = await call(active, ApiKey.CREATE_TOPICS, request(topic("a"), timeout_ms=timeout_ms))

    assert only(response, "topics")["error_code"] == ErrorCode.REQUEST_TIMED_OUT
    assert "a" in active.cluster.topics
    assert active.waits_ms == []


@pytest.mark.parametrize("version", range(SERVED[ApiKey.CREATE_TOPICS].highest + 1))
async def test_every_version_creates_a_topic(version: int) -> None:
    """Versions below 5 have no numbers and configurations, those below 7 no id."""
    active = active_with()

    result = only(await call(active, ApiKey.CREATE_TOPICS, request(topic("a", 2, 2)), version), "topics")

    assert (ErrorCode.NONE, 2 if version >= 5 else -1) == (result["error_code"], result["num_partitions"])
    assert (version >= 7) == (result["topic_id"] != NO_ID)
    assert (version >= 5) == bool(result["configs"])


async def test_configurations_are_returned_with_their_sources() -> None:
    """KIP-525: the topic's value, the brokers' dynamic default, that of their file, Kafka's default."""
    given = [{"name": "retention.ms", "value": " 1000 "}]

    response = await call(
        active_with(),
        ApiKey.CREATE_TOPICS,
        request(topic("a", configs=given)),
        topic_defaults={"min.insync.replicas": TopicDefault("2", 4), "segment.ms": TopicDefault("7", 3)},
    )

    configs = {config["name"]: config for config in only(response, "topics")["configs"]}
    expected = {
        "retention.ms": ("1000", 1),
        "segment.ms": ("7", 3),
        "min.insync.replicas": ("2", 4),
        "cleanup.policy": ("delete", 5),
    }
    assert {name: (configs[name]["value"], configs[name]["config_source"]) for name in expected} == expected
    assert not any(config["read_only"] or config["is_sensitive"] for config in configs.values())


async def test_configurations_include_defaults_that_brokers_report_while_the_request_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request for the cluster's default number of partitions waits for the brokers' settings (KIP-464)."""
    active, reported = active_with(), dict[str, TopicDefault]()

    async def known_defaults(timeout_ms: int) -> Defaults:
        assert timeout_ms > 0
        reported["min.insync.replicas"] = TopicDefault("2", 4)
        return Defaults()

    monkeypatch.setattr(active, "known_defaults", known_defaults)

    response = await call(active, ApiKey.CREATE_TOPICS, request(topic("a", -1)), topic_defaults=reported)

    configs = {config["name"]: config for config in only(response, "topics")["configs"]}
    assert pick(configs["min.insync.replicas"], "value", "config_source") == {"value": "2", "config_source": 4}


async def test_replicas_are_placed_on_live_brokers_only() -> None:
    """No assignment contains the controller, which is listed as a broker (protocol notes, Z22)."""
    active = active_with(broker(1), broker(2))

    await call(active, ApiKey.CREATE_TOPICS, request(topic("a", 12, 2)))

    rows = active.cluster.topics["a"].rows.tolist()
    assert {active.cluster.columns.replicas_of(row) for row in rows} == {(1, 2), (2, 1)}


async def test_each_topic_of_a_request_has_its_own_configurations() -> None:
    """They are listed once for topics that have the same."""
    given = [{"name": "retention.ms", "value": "1000"}]
    topics = [topic("a"), topic("b", configs=given), topic("c"), topic("d", configs=given)]

    response = await call(active_with(), ApiKey.CREATE_TOPICS, request(*topics))

    found = {
        topic["name"]: {config["name"]: config["value"] for config in topic["configs"]} for topic in response["topics"]
    }
    retention = {name: configs["retention.ms"] for name, configs in found.items()}
    assert retention == {"a": "604800000", "b": "1000", "c": "604800000", "d": "1000"}
