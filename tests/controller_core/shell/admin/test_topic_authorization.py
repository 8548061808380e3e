"""Authorization per topic (KafkaApis): allowed topics are processed, others are refused without disclosing them."""

from functools import partial
from random import Random
from typing import Any
from uuid import UUID

import pytest

from controller_core.shell.admin.handlers import handlers, no_wait
from controller_core.shell.admin.topic_authorization import REQUEST_FILTERS, authorize_topics
from controller_core.shell.front.handler import RelayInstead
from controller_core.zookeeper_mode.apis import SERVED
from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_wire import ApiKey, Body, ErrorCode, codec
from tests.controller_core.shell.admin.api_calls import active_with_topic, add_topic, decoded
from tests.controller_core.shell.admin.fake_active import FakeActive
from tests.kafka_node.authorization.samples import Right, context, guard_of

NO = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNKNOWN = UUID(int=99)


def right(operation: Operation, topic: str) -> Right:
    """Return a right on a topic."""
    return (operation, ResourceType.TOPIC, topic)


CREATE_ANY: Right = (Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)


@pytest.fixture
async def active() -> FakeActive:
    """A cluster with the topics `mine` and `theirs`."""
    active = await active_with_topic("mine", {0: (1, 2)})
    await add_topic(active, "theirs", {0: (2, 3)})
    return active


async def call(active: FakeActive | None, key: ApiKey, body: Body, *rights: Right, version: int | None = None) -> Body:
    """Call a handler as alice with these rights, through Kafka's encoding."""
    at = SERVED[key].highest if version is None else version
    request = codec.decode(key.message + "Request", at, codec.encode(key.message + "Request", at, body))
    table = handlers(lambda: active, random=Random(3))
    authorized = authorize_topics(table, guard_of(*rights), lambda: None if active is None else active.cluster, no_wait)
    return decoded(key, at, await authorized[key](context(at), request))


def by_name(topics: list[Body], field: str = "error_code") -> dict[str | None, Any]:
    """Return one field of each topic by name."""
    return {topic["name"]: topic[field] for topic in topics}


def new_topics(*names: str) -> Body:
    """Return a request to create topics."""
    return {
        "topics": [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names],
        "timeout_ms": 99,
    }


@pytest.mark.parametrize("version", range(8))
async def test_only_authorized_topics_are_created(version: int, active: FakeActive) -> None:
    """CREATE on the cluster or on the topic."""
    answer = await call(
        active, ApiKey.CREATE_TOPICS, new_topics("a", "b"), right(Operation.CREATE, "a"), version=version
    )
    assert by_name(answer["topics"]) == {"a": 0, "b": NO}
    assert set(active.cluster.topics) == {"mine", "theirs", "a"}
    answer = await call(active, ApiKey.CREATE_TOPICS, new_topics("b", "c"), CREATE_ANY, version=version)
    assert by_name(answer["topics"]) == {"b": 0, "c": 0}


async def test_configurations_of_a_created_topic_require_describe_configs(active: FakeActive) -> None:
    """KIP-525: other callers only get the success."""
    (topic,) = (await call(active, ApiKey.CREATE_TOPICS, new_topics("a"), CREATE_ANY))["topics"]
    assert (
        topic["error_code"],
        topic["topic_config_error_code"],
        topic["configs"],
        topic["num_partitions"],
    ) == (0, NO, None, -1)
    rights = (CREATE_ANY, right(Operation.DESCRIBE_CONFIGS, "b"))
    (topic,) = (await call(active, ApiKey.CREATE_TOPICS, new_topics("b"), *rights))["topics"]
    assert (topic["topic_config_error_code"], topic["num_partitions"]) == (0, 1)


async def test_adding_partitions_requires_alter(active: FakeActive) -> None:
    """ALTER on each topic."""
    body = {"topics": [{"name": name, "count": 2, "assignments": None} for name in ("mine", "theirs")], "timeout_ms": 9}
    answer = await call(active, ApiKey.CREATE_PARTITIONS, body, right(Operation.ALTER, "mine"))

    assert by_name(answer["results"]) == {"mine": 0, "theirs": NO}
    assert [len(active.cluster.topics[name].rows) for name in ("mine", "theirs")] == [2, 1]


@pytest.mark.parametrize("version", range(1, 6))
async def test_only_authorized_topics_are_deleted(version: int, active: FakeActive) -> None:
    """DELETE on each topic."""
    body = {"topic_names": ["mine", "theirs"], "timeout_ms": 99}
    answer = await call(active, ApiKey.DELETE_TOPICS, body, right(Operation.DELETE, "mine"), version=version)

    assert by_name(answer["responses"]) == {"mine": 0, "theirs": NO}
    assert set(active.cluster.topics) == {"theirs"}


async def test_deletion_by_id_hides_names_without_describe(active: FakeActive) -> None:
    """KIP-516: with DESCRIBE the response has the name."""
    topic_id = active.cluster.topics["theirs"].topic_id
    body = {"topics": [{"name": None, "topic_id": topic_id}, {"name": None, "topic_id": UNKNOWN}], "timeout_ms": 99}
    for rights, expected in (((), None), ((right(Operation.READ, "theirs"),), "theirs")):
        answer = await call(active, ApiKey.DELETE_TOPICS, body, *rights)
        found = {response["topic_id"]: (response["name"], response["error_code"]) for response in answer["responses"]}
        assert found == {topic_id: (expected, NO), UNKNOWN: (None, ErrorCode.UNKNOWN_TOPIC_ID)}
    answer = await call(active, ApiKey.DELETE_TOPICS, body, right(Operation.DELETE, "theirs"))
    assert {response["topic_id"] for response in answer["responses"]} == {UNKNOWN, topic_id}
    assert set(active.cluster.topics) == {"mine"}


async def test_standby_that_becomes_active_deletes_nothing_without_authorization(active: FakeActive) -> None:
    """The authorization did not know the id, but the handler would."""
    authorized = authorize_topics(handlers(lambda: active, random=Random(3)), guard_of(), lambda: None, no_wait)
    topic_id = active.cluster.topics["theirs"].topic_id
    body = {"topics": [{"name": None, "topic_id": topic_id}], "timeout_ms": 99}

    answer = await authorized[ApiKey.DELETE_TOPICS](context(6), body)
    assert [response["error_code"] for response in answer["responses"]] == [ErrorCode.NOT_CONTROLLER]
    assert set(active.cluster.topics) == {"mine", "theirs"}


@pytest.mark.parametrize("version", range(13))
async def test_metadata_requires_describe(version: int, active: FakeActive) -> None:
    """A list of all topics omits the others; a named one is refused whether it exists or not."""
    mine = partial(call, active, ApiKey.METADATA, version=version)
    rights = (right(Operation.READ, "mine"),)
    everything = await mine({"topics": [] if version == 0 else None}, *rights)
    assert by_name(everything["topics"]) == {"mine": 0}
    create = {} if version < 4 else {"allow_auto_topic_creation": False}
    requested = {"topics": [{"name": name} for name in ("mine", "theirs", "none")], **create}
    if version >= 4:
        assert by_name((await mine(requested, *rights))["topics"]) == {"mine": 0, "theirs": NO, "none": NO}


async def test_metadata_by_id_hides_names_without_describe(active: FakeActive) -> None:
    """KIP-516."""
    ids = [active.cluster.topics[name].topic_id for name in ("mine", "theirs")]
    body = {"topics": [{"name": None, "topic_id": topic_id} for topic_id in ids], "allow_auto_topic_creation": False}
    answer = await call(active, ApiKey.METADATA, body, right(Operation.READ, "mine"))

    assert {topic["topic_id"]: (topic["name"], topic["error_code"]) for topic in answer["topics"]} == {
        ids[0]: ("mine", 0),
        ids[1]: (None, NO),
    }


async def test_automatic_creation_requires_create(active: FakeActive) -> None:
    """The request is relayed only if all of it is authorized, because the broker cannot check the caller."""
    body = {"topics": [{"name": name} for name in ("mine", "new")], "allow_auto_topic_creation": True}
    describes = (right(Operation.READ, "mine"), right(Operation.WRITE, "new"))
    with pytest.raises(RelayInstead):
        await call(active, ApiKey.METADATA, body, *describes, CREATE_ANY)
    with pytest.raises(RelayInstead):
        await call(
            active, ApiKey.METADATA, body, *describes, right(Operation.CREATE, "new"), right(Operation.CREATE, "mine")
        )
    answer = await call(active, ApiKey.METADATA, body, *describes)
    assert by_name(answer["topics"]) == {"mine": 0, "new": NO}
    answer = await call(active, ApiKey.METADATA, body, right(Operation.WRITE, "new"), CREATE_ANY)
    assert by_name(answer["topics"]) == {"mine": NO, "new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_describing_partitions_requires_describe(active: FakeActive) -> None:
    """For named topics and for all; the cursor is never the name of a hidden topic."""
    rights = (right(Operation.DESCRIBE, "mine"),)
    named = {"topics": [{"name": "mine"}, {"name": "theirs"}], "response_partition_limit": 9, "cursor": None}
    answer = await call(active, ApiKey.DESCRIBE_TOPIC_PARTITIONS, named, *rights)
    assert by_name(answer["topics"]) == {"mine": 0, "theirs": NO}
    everything = {"topics": [], "response_partition_limit": 1, "cursor": None}
    answer = await call(active, ApiKey.DESCRIBE_TOPIC_PARTITIONS, everything, *rights)
    assert (by_name(answer["topics"]), answer["next_cursor"]) == ({"mine": 0}, None)
    later = {**everything, "cursor": {"topic_name": "a", "partition_index": 0}}
    assert by_name((await call(active, ApiKey.DESCRIBE_TOPIC_PARTITIONS, later, *rights))["topics"]) == {"mine": 0}
    assert (await call(active, ApiKey.DESCRIBE_TOPIC_PARTITIONS, everything))["topics"] == []


DESCRIBE_THE_CLUSTER: Right = (Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
READ_AND_DESCRIBE = 1 << Operation.READ | 1 << Operation.DESCRIBE
NOT_REQUESTED = -(2**31)


@pytest.mark.parametrize("topics", [None, [{"name": "mine"}, {"name": "theirs"}]], ids=["all", "by name"])
async def test_authorized_operations_of_the_caller_are_returned(active: FakeActive, topics: list[Body] | None) -> None:
    """KIP-430; without DESCRIBE on the cluster its operations are empty."""
    rights = (right(Operation.READ, "mine"), right(Operation.DESCRIBE, "mine"))
    requested = {
        "topics": topics,
        "include_topic_authorized_operations": True,
        "include_cluster_authorized_operations": True,
    }
    answer = await call(active, ApiKey.METADATA, requested, *rights, version=10)
    answered = by_name(answer["topics"], "topic_authorized_operations")
    assert answered["mine"] == READ_AND_DESCRIBE
    assert answered.get("theirs", NOT_REQUESTED) == NOT_REQUESTED
    assert answer["cluster_authorized_operations"] == 0

    answer = await call(active, ApiKey.METADATA, requested, *rights, DESCRIBE_THE_CLUSTER, version=10)
    assert answer["cluster_authorized_operations"] == 1 << Operation.DESCRIBE


async def test_described_topics_have_the_authorized_operations_of_the_caller(active: FakeActive) -> None:
    """DescribeTopicPartitionsRequestHandler: always returned."""
    rights = (right(Operation.READ, "mine"), right(Operation.DESCRIBE, "mine"))
    requested = {"topics": [{"name": "mine"}, {"name": "theirs"}], "cursor": None}
    answer = await call(active, ApiKey.DESCRIBE_TOPIC_PARTITIONS, requested, *rights)
    assert by_name(answer["topics"], "topic_authorized_operations") == {
        "mine": READ_AND_DESCRIBE,
        "theirs": NOT_REQUESTED,
    }


async def test_described_cluster_has_the_authorized_operations_of_the_caller(active: FakeActive) -> None:
    """AuthHelper.computeDescribeClusterResponse."""
    requested = {"include_cluster_authorized_operations": True}
    answers = [
        await call(active, ApiKey.DESCRIBE_CLUSTER, requested),
        await call(active, ApiKey.DESCRIBE_CLUSTER, requested, DESCRIBE_THE_CLUSTER, CREATE_ANY),
        await call(active, ApiKey.DESCRIBE_CLUSTER, {}, DESCRIBE_THE_CLUSTER),
    ]
    expected = [0, 1 << Operation.DESCRIBE | 1 << Operation.CREATE, NOT_REQUESTED]
    assert [answer["cluster_authorized_operations"] for answer in answers] == expected


async def test_request_for_authorized_operations_is_not_relayed(active: FakeActive) -> None:
    """The broker would return the operations of the controller."""
    rights = (right(Operation.DESCRIBE, "new"), CREATE_ANY)
    requested = {"topics": [{"name": "new"}], "allow_auto_topic_creation": True}
    with pytest.raises(RelayInstead):
        await call(active, ApiKey.METADATA, requested, *rights)

    answer = await call(active, ApiKey.METADATA, {**requested, "include_topic_authorized_operations": True}, *rights)
    assert by_name(answer["topics"]) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize("key", REQUEST_FILTERS)
async def test_standby_answers_not_controller_to_every_filtered_request(key: ApiKey) -> None:
    """Nothing is disclosed or changed."""
    bodies: dict[ApiKey, Body] = {
        ApiKey.CREATE_TOPICS: new_topics("a"),
        ApiKey.CREATE_PARTITIONS: {"topics": [{"name": "a", "count": 2, "assignments": None}]},
        ApiKey.DELETE_TOPICS: {"topics": [{"name": None, "topic_id": UNKNOWN}]},
        ApiKey.METADATA: {"topics": None},
        ApiKey.DESCRIBE_CLUSTER: {"include_cluster_authorized_operations": True},
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: {"topics": [], "cursor": None},
    }
    answer = await call(None, key, bodies[key])
    if key is ApiKey.DESCRIBE_CLUSTER:
        assert (answer["error_code"], answer["brokers"]) == (ErrorCode.NOT_CONTROLLER, [])
        return
    (items,) = (value for name, value in answer.items() if name in {"topics", "results", "responses"})
    assert {item["error_code"] for item in items} <= {NO, ErrorCode.NOT_CONTROLLER}
