"""AlterPartitionReassignments and ListPartitionReassignments (KIP-455, KIP-860)."""

import pytest

from controller_core.model import TopicPartition
from controller_core.shell.admin.handlers import handlers
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, codec
from tests.controller_core.shell.admin.api_calls import active_with_topic, add_topic, call, only, pick
from tests.controller_core.shell.admin.fake_active import FakeActive, active_with

ALTER, LIST = ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.LIST_PARTITION_REASSIGNMENTS


def request(topic: str, *targets: tuple[int, list[int] | None]) -> Body:
    """Return a request for one topic."""
    partitions = [{"partition_index": number, "replicas": replicas} for number, replicas in targets]
    return {"topics": [{"name": topic, "partitions": partitions}]}


def results(response: Body) -> dict[str, dict[int, int]]:
    """Return error codes by topic and partition."""
    return {
        topic["name"]: {partition["partition_index"]: partition["error_code"] for partition in topic["partitions"]}
        for topic in response["responses"]
    }


async def list_all(active: FakeActive, *topics: tuple[str, list[int]]) -> list[Body]:
    """Return the listed topics, by default of a request for all."""
    named = [{"name": name, "partition_indexes": ids} for name, ids in topics] or None
    return list((await call(active, LIST, {"topics": named}))["topics"])


async def test_move_is_started_and_listed_until_it_ends() -> None:
    """All replicas, added and removed replicas; nothing once the target is in sync."""
    active = await active_with_topic("a", {0: (1, 2)})

    response = await call(active, ALTER, request("a", (0, [2, 3])))
    running = await list_all(active)
    active.sync(TopicPartition("a", 0), (1, 2, 3))
    ended = await list_all(active)

    assert (
        response["error_code"],
        response["error_message"],
        results(response),
    ) == (ErrorCode.NONE, None, {"a": {0: ErrorCode.NONE}})
    assert running == [
        {
            "name": "a",
            "partitions": [
                {"partition_index": 0, "replicas": [2, 3, 1], "adding_replicas": [3], "removing_replicas": [1]}
            ],
        }
    ]
    assert ended == []
    assert active.cluster.columns.replicas_of(active.row(TopicPartition("a", 0))) == (2, 3)


async def test_null_replicas_cancel_a_move() -> None:
    """Without a running move they are an error."""
    active = await active_with_topic("a", {0: (1, 2), 1: (1, 2)})
    await call(active, ALTER, request("a", (0, [2, 3])))

    response = await call(active, ALTER, request("a", (0, None), (1, None)))

    assert results(response) == {"a": {0: ErrorCode.NONE, 1: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}}
    assert set(active.cluster.columns.replicas_of(active.row(TopicPartition("a", 0)))) == {1, 2}


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([], "Empty replica list specified in partition reassignment."),
        ([1, 1], "Duplicate replica ids in partition reassignment replica list: [1, 1]"),
        ([-3], "Invalid broker id in replica list: [-3]"),
        ([1, 9], None),
    ],
)
async def test_invalid_target_does_not_affect_other_partitions(target: list[int], message: str | None) -> None:
    """KafkaController.validateReplicas: an error per partition, and no top-level error."""
    active = await active_with_topic("a", {0: (1, 2), 1: (1, 2)})

    response = await call(active, ALTER, request("a", (0, target), (1, [2, 3])))
    refused = response["responses"][0]["partitions"][0]

    assert response["error_code"] == ErrorCode.NONE
    assert results(response) == {"a": {0: ErrorCode.INVALID_REPLICA_ASSIGNMENT, 1: ErrorCode.NONE}}
    assert message is None or message == refused["error_message"]


async def test_unknown_partition_is_refused() -> None:
    """UNKNOWN_TOPIC_OR_PARTITION."""
    active = await active_with_topic("a", {0: (1,)})

    assert results(await call(active, ALTER, request("a", (5, [2])))) == {
        "a": {5: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    }
    assert results(await call(active, ALTER, request("b", (0, [2])))) == {
        "b": {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    }


async def test_last_of_two_targets_for_a_partition_is_used() -> None:
    """KafkaApis collects them in a map."""
    active = await active_with_topic("a", {0: (1,)})

    response = await call(active, ALTER, request("a", (0, [2]), (0, [3])))

    assert results(response) == {"a": {0: ErrorCode.NONE}}
    assert only({"topics": await list_all(active)}, "topics", "partitions")["adding_replicas"] == [3]


async def call_version_1(active: FakeActive, body: Body) -> Body:
    """Call version 1, which is not in Kafka 3.9, through its encoding."""
    request = codec.decode("AlterPartitionReassignmentsRequest", 1, _encoded("Request", body))
    response = await handlers(lambda: active)[ALTER](RequestContext("CLIENT", None, "127.0.0.1", 1, 1), request)
    return codec.decode("AlterPartitionReassignmentsResponse", 1, _encoded("Response", response))


def _encoded(kind: str, body: Body) -> bytes:
    return codec.encode("AlterPartitionReassignments" + kind, 1, body)


async def test_changed_replication_factor_is_refused_if_not_allowed() -> None:
    """KIP-860, version 1: without the replicas that a running move adds."""
    active = await active_with_topic("a", {0: (1, 2), 1: (1, 2)})
    await call(active, ALTER, request("a", (1, [2, 3])))
    targets = request("a", (0, [3]), (1, [1, 3]))

    response = await call_version_1(active, {**targets, "allow_replication_factor_change": False})
    refused = response["responses"][0]["partitions"][0]

    assert results(response) == {"a": {0: ErrorCode.INVALID_REPLICATION_FACTOR, 1: ErrorCode.NONE}}
    assert refused["error_message"] == "The replication factor is changed from 2 to 1"


async def test_changed_replication_factor_is_accepted_if_allowed() -> None:
    """KIP-860; version 0 always allows it."""
    active = await active_with_topic("a", {0: (1, 2)})

    response = await call_version_1(active, {**request("a", (0, [3])), "allow_replication_factor_change": True})

    assert results(response) == {"a": {0: ErrorCode.NONE}}


async def test_list_contains_the_requested_partitions() -> None:
    """Null means all; partitions without a move and unknown ones are omitted."""
    active = await active_with_topic("a", {0: (1,), 1: (1,), 2: (1,)})
    await add_topic(active, "b", {0: (1,)})
    await call(active, ALTER, request("a", (0, [2]), (1, [2])))
    await call(active, ALTER, request("b", (0, [2])))

    listed = await list_all(active, ("a", [1, 2, 7]))

    assert [(topic["name"], [part["partition_index"] for part in topic["partitions"]]) for topic in listed] == [
        ("a", [1])
    ]
    assert [topic["name"] for topic in await list_all(active)] == ["a", "b"]


async def test_empty_list_of_topics_is_not_null() -> None:
    """An empty request has an empty answer."""
    active = await active_with_topic("a", {0: (1,)})
    await call(active, ALTER, request("a", (0, [2])))

    assert (await call(active, LIST, {"topics": []}))["topics"] == []


@pytest.mark.parametrize("key", [ALTER, LIST])
async def test_standby_answers_not_controller(key: ApiKey) -> None:
    """KafkaController.processApiPartitionReassignment, processListPartitionReassignments."""
    response = await call(None, key, {"topics": []})

    assert pick(response, "error_code", "error_message") == {
        "error_code": ErrorCode.NOT_CONTROLLER,
        "error_message": ErrorCode.NOT_CONTROLLER.message,
    }


async def test_no_event_is_submitted_without_valid_partitions() -> None:
    """An empty event would be scheduled for nothing."""
    active = active_with()

    response = await call(active, ALTER, {"topics": []})

    assert (response["error_code"], active.submitted) == (ErrorCode.NONE, [])
