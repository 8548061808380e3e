"""AlterPartitionReassignments and ListPartitionReassignments (KIP-455, KIP-860)."""

import pytest

from controller_core.model.ids import TopicPartition
from controller_core.shell.admin.handlers import handlers
from kafka_node.context import RequestContext
from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from tests.controller_core.shell.admin.asking import active_with_topic, add_topic, ask, only, pick
from tests.controller_core.shell.admin.fake_active import FakeActive, active_with

ALTER, LIST = ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.LIST_PARTITION_REASSIGNMENTS


def asking(topic: str, *targets: tuple[int, list[int] | None]) -> Body:
    """A request for one topic."""
    partitions = [{"partition_index": number, "replicas": replicas} for number, replicas in targets]
    return {"topics": [{"name": topic, "partitions": partitions}]}


def results(response: Body) -> dict[str, dict[int, int]]:
    """Error codes by topic and partition."""
    return {
        topic["name"]: {one["partition_index"]: one["error_code"] for one in topic["partitions"]}
        for topic in response["responses"]
    }


async def list_all(active: FakeActive, *topics: tuple[str, list[int]]) -> list[Body]:
    """The topics that a list names; of all, unless some are asked for."""
    named = [{"name": name, "partition_indexes": ids} for name, ids in topics] or None
    return list((await ask(active, LIST, {"topics": named}))["topics"])


async def test_a_move_is_started_and_listed_until_it_ends() -> None:
    """The union, what is added and what leaves; nothing once the target is in sync."""
    active = await active_with_topic("a", {0: (1, 2)})

    response = await ask(active, ALTER, asking("a", (0, [2, 3])))
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


async def test_a_move_is_cancelled_by_no_replicas() -> None:
    """Null replicas cancel; where nothing moves that is an error of its own."""
    active = await active_with_topic("a", {0: (1, 2), 1: (1, 2)})
    await ask(active, ALTER, asking("a", (0, [2, 3])))

    response = await ask(active, ALTER, asking("a", (0, None), (1, None)))

    assert results(response) == {"a": {0: ErrorCode.NONE, 1: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}}
    assert set(active.cluster.columns.replicas_of(active.row(TopicPartition("a", 0)))) == {1, 2}


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ([], "Empty replica list specified in partition reassignment."),
        ([1, 1], "Duplicate replica ids in partition reassignment replica list: [1, 1]"),
        ([-3], "Invalid broker id in replica list: [-3]"),
        ([1, 9], None),
    ],
)
async def test_a_target_that_cannot_be_is_refused_and_the_others_move(target: list[int], words: str | None) -> None:
    """KafkaController.validateReplicas: a reason for each, and nothing is wrong at the top."""
    active = await active_with_topic("a", {0: (1, 2), 1: (1, 2)})

    response = await ask(active, ALTER, asking("a", (0, target), (1, [2, 3])))
    refused = response["responses"][0]["partitions"][0]

    assert response["error_code"] == ErrorCode.NONE
    assert results(response) == {"a": {0: ErrorCode.INVALID_REPLICA_ASSIGNMENT, 1: ErrorCode.NONE}}
    assert words is None or words == refused["error_message"]


async def test_what_is_not_there_cannot_move() -> None:
    """UNKNOWN_TOPIC_OR_PARTITION."""
    active = await active_with_topic("a", {0: (1,)})

    assert results(await ask(active, ALTER, asking("a", (5, [2])))) == {"a": {5: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}}
    assert results(await ask(active, ALTER, asking("b", (0, [2])))) == {"b": {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}}


async def test_of_two_targets_for_one_partition_the_last_counts() -> None:
    """KafkaApis collects them in a map."""
    active = await active_with_topic("a", {0: (1,)})

    response = await ask(active, ALTER, asking("a", (0, [2]), (0, [3])))

    assert results(response) == {"a": {0: ErrorCode.NONE}}
    assert only({"topics": await list_all(active)}, "topics", "partitions")["adding_replicas"] == [3]


async def ask_version_1(active: FakeActive, body: Body) -> Body:
    """Ask in version 1, which Kafka 3.9's brokers do not have yet, through its bytes."""
    request = codec.decode("AlterPartitionReassignmentsRequest", 1, _encoded("Request", body))
    response = await handlers(lambda: active)[ALTER](RequestContext("CLIENT", None, "127.0.0.1", 1, 1), request)
    return codec.decode("AlterPartitionReassignmentsResponse", 1, _encoded("Response", response))


def _encoded(kind: str, body: Body) -> bytes:
    return codec.encode("AlterPartitionReassignments" + kind, 1, body)


async def test_a_caller_may_forbid_another_replication_factor() -> None:
    """KIP-860, version 1: counted without what a running move is adding."""
    active = await active_with_topic("a", {0: (1, 2), 1: (1, 2)})
    await ask(active, ALTER, asking("a", (1, [2, 3])))
    targets = asking("a", (0, [3]), (1, [1, 3]))

    response = await ask_version_1(active, {**targets, "allow_replication_factor_change": False})
    refused = response["responses"][0]["partitions"][0]

    assert results(response) == {"a": {0: ErrorCode.INVALID_REPLICATION_FACTOR, 1: ErrorCode.NONE}}
    assert refused["error_message"] == "The replication factor is changed from 2 to 1"


async def test_a_caller_may_allow_another_replication_factor() -> None:
    """KIP-860: so did version 0."""
    active = await active_with_topic("a", {0: (1, 2)})

    response = await ask_version_1(active, {**asking("a", (0, [3])), "allow_replication_factor_change": True})

    assert results(response) == {"a": {0: ErrorCode.NONE}}


async def test_a_list_is_of_the_partitions_asked_for() -> None:
    """Null asks for all; partitions that do not move are left out, and so are those that do not exist."""
    active = await active_with_topic("a", {0: (1,), 1: (1,), 2: (1,)})
    await add_topic(active, "b", {0: (1,)})
    await ask(active, ALTER, asking("a", (0, [2]), (1, [2])))
    await ask(active, ALTER, asking("b", (0, [2])))

    listed = await list_all(active, ("a", [1, 2, 7]))

    assert [(one["name"], [part["partition_index"] for part in one["partitions"]]) for one in listed] == [("a", [1])]
    assert [one["name"] for one in await list_all(active)] == ["a", "b"]


async def test_a_list_of_nothing_is_empty() -> None:
    """An empty list of topics is not null."""
    active = await active_with_topic("a", {0: (1,)})
    await ask(active, ALTER, asking("a", (0, [2])))

    assert (await ask(active, LIST, {"topics": []}))["topics"] == []


@pytest.mark.parametrize("key", [ALTER, LIST])
async def test_without_a_tenure_it_is_said_at_the_top(key: ApiKey) -> None:
    """KafkaController.processApiPartitionReassignment, processListPartitionReassignments."""
    response = await ask(None, key, {"topics": []})

    assert pick(response, "error_code", "error_message") == {
        "error_code": ErrorCode.NOT_CONTROLLER,
        "error_message": ErrorCode.NOT_CONTROLLER.message,
    }


async def test_where_nothing_is_asked_nothing_is_submitted() -> None:
    """An empty event would take a turn of its own."""
    active = active_with()

    response = await ask(active, ALTER, {"topics": []})

    assert (response["error_code"], active.submitted) == (ErrorCode.NONE, [])
