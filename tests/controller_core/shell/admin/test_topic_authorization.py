"""Requests that are judged topic by topic (KafkaApis): the caller's part is done, the rest is refused and tells nothing."""

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
from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from tests.controller_core.shell.admin.asking import active_with_topic, add_topic, decoded
from tests.controller_core.shell.admin.fake_active import FakeActive
from tests.kafka_node.authorization.samples import Right, context, guard_of

NO = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNKNOWN = UUID(int=99)


def right(operation: Operation, topic: str) -> Right:
    """A right on a topic."""
    return (operation, ResourceType.TOPIC, topic)


CREATE_ANY: Right = (Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)


@pytest.fixture
async def active() -> FakeActive:
    """A cluster with the topics mine and theirs."""
    active = await active_with_topic("mine", {0: (1, 2)})
    await add_topic(active, "theirs", {0: (2, 3)})
    return active


async def ask(active: FakeActive | None, key: ApiKey, body: Body, *rights: Right, version: int | None = None) -> Body:
    """Ask as alice, who has these rights, through Kafka's bytes."""
    at = SERVED[key].highest if version is None else version
    request = codec.decode(key.message + "Request", at, codec.encode(key.message + "Request", at, body))
    table = handlers(lambda: active, random=Random(3))
    behind = authorize_topics(table, guard_of(*rights), lambda: None if active is None else active.cluster, no_wait)
    return decoded(key, at, await behind[key](context(at), request))


def by_name(topics: list[Body], field: str = "error_code") -> dict[str | None, Any]:
    """One field of each topic."""
    return {topic["name"]: topic[field] for topic in topics}


def new_topics(*names: str) -> Body:
    """A request to create topics."""
    return {
        "topics": [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names],
        "timeout_ms": 99,
    }


@pytest.mark.parametrize("version", range(8))
async def test_topics_are_created_by_who_may(version: int, active: FakeActive) -> None:
    """CREATE on the cluster, or on the topic."""
    answer = await ask(
        active, ApiKey.CREATE_TOPICS, new_topics("a", "b"), right(Operation.CREATE, "a"), version=version
    )
    assert by_name(answer["topics"]) == {"a": 0, "b": NO}
    assert set(active.cluster.topics) == {"mine", "theirs", "a"}
    answer = await ask(active, ApiKey.CREATE_TOPICS, new_topics("b", "c"), CREATE_ANY, version=version)
    assert by_name(answer["topics"]) == {"b": 0, "c": 0}


async def test_a_created_topics_configs_are_told_to_who_may_describe_them(active: FakeActive) -> None:
    """KIP-525: others learn that it was made."""
    (topic,) = (await ask(active, ApiKey.CREATE_TOPICS, new_topics("a"), CREATE_ANY))["topics"]
    assert (
        topic["error_code"],
        topic["topic_config_error_code"],
        topic["configs"],
        topic["num_partitions"],
    ) == (0, NO, None, -1)
    rights = (CREATE_ANY, right(Operation.DESCRIBE_CONFIGS, "b"))
    (topic,) = (await ask(active, ApiKey.CREATE_TOPICS, new_topics("b"), *rights))["topics"]
    assert (topic["topic_config_error_code"], topic["num_partitions"]) == (0, 1)


async def test_partitions_are_added_by_who_may_alter_the_topic(active: FakeActive) -> None:
    """ALTER on each topic."""
    body = {"topics": [{"name": name, "count": 2, "assignments": None} for name in ("mine", "theirs")], "timeout_ms": 9}
    answer = await ask(active, ApiKey.CREATE_PARTITIONS, body, right(Operation.ALTER, "mine"))

    assert by_name(answer["results"]) == {"mine": 0, "theirs": NO}
    assert [len(active.cluster.topics[name].rows) for name in ("mine", "theirs")] == [2, 1]


@pytest.mark.parametrize("version", range(1, 6))
async def test_topics_are_deleted_by_who_may(version: int, active: FakeActive) -> None:
    """DELETE on each topic."""
    body = {"topic_names": ["mine", "theirs"], "timeout_ms": 99}
    answer = await ask(active, ApiKey.DELETE_TOPICS, body, right(Operation.DELETE, "mine"), version=version)

    assert by_name(answer["responses"]) == {"mine": 0, "theirs": NO}
    assert set(active.cluster.topics) == {"theirs"}


async def test_an_id_does_not_tell_a_name_that_may_not_be_described(active: FakeActive) -> None:
    """KIP-516: who may describe the topic is told which one it may not delete."""
    topic_id = active.cluster.topics["theirs"].topic_id
    body = {"topics": [{"name": None, "topic_id": topic_id}, {"name": None, "topic_id": UNKNOWN}], "timeout_ms": 99}
    for rights, expected in (((), None), ((right(Operation.READ, "theirs"),), "theirs")):
        answer = await ask(active, ApiKey.DELETE_TOPICS, body, *rights)
        found = {each["topic_id"]: (each["name"], each["error_code"]) for each in answer["responses"]}
        assert found == {topic_id: (expected, NO), UNKNOWN: (None, ErrorCode.UNKNOWN_TOPIC_ID)}
    answer = await ask(active, ApiKey.DELETE_TOPICS, body, right(Operation.DELETE, "theirs"))
    assert {each["topic_id"] for each in answer["responses"]} == {UNKNOWN, topic_id}
    assert set(active.cluster.topics) == {"mine"}


async def test_a_standby_that_becomes_active_in_between_deletes_nothing_unjudged(active: FakeActive) -> None:
    """The screen knew no topic by that id; its handler would."""
    behind = authorize_topics(handlers(lambda: active, random=Random(3)), guard_of(), lambda: None, no_wait)
    topic_id = active.cluster.topics["theirs"].topic_id
    body = {"topics": [{"name": None, "topic_id": topic_id}], "timeout_ms": 99}

    answer = await behind[ApiKey.DELETE_TOPICS](context(6), body)
    assert [each["error_code"] for each in answer["responses"]] == [ErrorCode.NOT_CONTROLLER]
    assert set(active.cluster.topics) == {"mine", "theirs"}


@pytest.mark.parametrize("version", range(13))
async def test_metadata_shows_what_may_be_described(version: int, active: FakeActive) -> None:
    """Of all topics others are left out; a named one is refused, whether it is there or not."""
    mine = partial(ask, active, ApiKey.METADATA, version=version)
    rights = (right(Operation.READ, "mine"),)
    everything = await mine({"topics": [] if version == 0 else None}, *rights)
    assert by_name(everything["topics"]) == {"mine": 0}
    create = {} if version < 4 else {"allow_auto_topic_creation": False}
    asked = {"topics": [{"name": name} for name in ("mine", "theirs", "none")], **create}
    if version >= 4:
        assert by_name((await mine(asked, *rights))["topics"]) == {"mine": 0, "theirs": NO, "none": NO}


async def test_metadata_by_id_does_not_tell_names(active: FakeActive) -> None:
    """KIP-516."""
    ids = [active.cluster.topics[name].topic_id for name in ("mine", "theirs")]
    body = {"topics": [{"name": None, "topic_id": each} for each in ids], "allow_auto_topic_creation": False}
    answer = await ask(active, ApiKey.METADATA, body, right(Operation.READ, "mine"))

    assert {topic["topic_id"]: (topic["name"], topic["error_code"]) for topic in answer["topics"]} == {
        ids[0]: ("mine", 0),
        ids[1]: (None, NO),
    }


async def test_a_topic_is_made_on_request_by_who_may_create_it(active: FakeActive) -> None:
    """Passed on to a broker only if all of the request is the caller's to ask: the broker would not know."""
    body = {"topics": [{"name": name} for name in ("mine", "new")], "allow_auto_topic_creation": True}
    describes = (right(Operation.READ, "mine"), right(Operation.WRITE, "new"))
    with pytest.raises(RelayInstead):
        await ask(active, ApiKey.METADATA, body, *describes, CREATE_ANY)
    with pytest.raises(RelayInstead):
        await ask(
            active, ApiKey.METADATA, body, *describes, right(Operation.CREATE, "new"), right(Operation.CREATE, "mine")
        )
    answer = await ask(active, ApiKey.METADATA, body, *describes)
    assert by_name(answer["topics"]) == {"mine": 0, "new": NO}
    answer = await ask(active, ApiKey.METADATA, body, right(Operation.WRITE, "new"), CREATE_ANY)
    assert by_name(answer["topics"]) == {"mine": NO, "new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_a_topics_partitions_are_described_to_who_may(active: FakeActive) -> None:
    """Named or all of them; the cursor names no other."""
    rights = (right(Operation.DESCRIBE, "mine"),)
    named = {"topics": [{"name": "mine"}, {"name": "theirs"}], "response_partition_limit": 9, "cursor": None}
    answer = await ask(active, ApiKey.DESCRIBE_TOPIC_PARTITIONS, named, *rights)
    assert by_name(answer["topics"]) == {"mine": 0, "theirs": NO}
    everything = {"topics": [], "response_partition_limit": 1, "cursor": None}
    answer = await ask(active, ApiKey.DESCRIBE_TOPIC_PARTITIONS, everything, *rights)
    assert (by_name(answer["topics"]), answer["next_cursor"]) == ({"mine": 0}, None)
    later = {**everything, "cursor": {"topic_name": "a", "partition_index": 0}}
    assert by_name((await ask(active, ApiKey.DESCRIBE_TOPIC_PARTITIONS, later, *rights))["topics"]) == {"mine": 0}
    assert (await ask(active, ApiKey.DESCRIBE_TOPIC_PARTITIONS, everything))["topics"] == []


DESCRIBE_THE_CLUSTER: Right = (Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
READ_AND_DESCRIBE = 1 << Operation.READ | 1 << Operation.DESCRIBE
NOT_ASKED = -(2**31)


@pytest.mark.parametrize("topics", [None, [{"name": "mine"}, {"name": "theirs"}]], ids=["all", "by name"])
async def test_callers_are_told_what_they_may_do(active: FakeActive, topics: list[Body] | None) -> None:
    """KIP-430: the bits of what is granted; whoever may not describe the cluster may do nothing with it."""
    rights = (right(Operation.READ, "mine"), right(Operation.DESCRIBE, "mine"))
    asked = {
        "topics": topics,
        "include_topic_authorized_operations": True,
        "include_cluster_authorized_operations": True,
    }
    answer = await ask(active, ApiKey.METADATA, asked, *rights, version=10)
    told = by_name(answer["topics"], "topic_authorized_operations")
    assert told["mine"] == READ_AND_DESCRIBE
    assert told.get("theirs", NOT_ASKED) == NOT_ASKED
    assert answer["cluster_authorized_operations"] == 0

    answer = await ask(active, ApiKey.METADATA, asked, *rights, DESCRIBE_THE_CLUSTER, version=10)
    assert answer["cluster_authorized_operations"] == 1 << Operation.DESCRIBE


async def test_a_page_of_topics_tells_what_its_caller_may_do(active: FakeActive) -> None:
    """DescribeTopicPartitionsRequestHandler: unasked."""
    rights = (right(Operation.READ, "mine"), right(Operation.DESCRIBE, "mine"))
    asked = {"topics": [{"name": "mine"}, {"name": "theirs"}], "cursor": None}
    answer = await ask(active, ApiKey.DESCRIBE_TOPIC_PARTITIONS, asked, *rights)
    assert by_name(answer["topics"], "topic_authorized_operations") == {"mine": READ_AND_DESCRIBE, "theirs": NOT_ASKED}


async def test_who_describes_the_cluster_is_told_what_it_may_do_with_it(active: FakeActive) -> None:
    """AuthHelper.computeDescribeClusterResponse."""
    asked = {"include_cluster_authorized_operations": True}
    answers = [
        await ask(active, ApiKey.DESCRIBE_CLUSTER, asked),
        await ask(active, ApiKey.DESCRIBE_CLUSTER, asked, DESCRIBE_THE_CLUSTER, CREATE_ANY),
        await ask(active, ApiKey.DESCRIBE_CLUSTER, {}, DESCRIBE_THE_CLUSTER),
    ]
    expected = [0, 1 << Operation.DESCRIBE | 1 << Operation.CREATE, NOT_ASKED]
    assert [answer["cluster_authorized_operations"] for answer in answers] == expected


async def test_a_topic_is_not_made_by_who_asks_what_it_may_do(active: FakeActive) -> None:
    """The request would go to a broker under our own name, and tell of our rights."""
    rights = (right(Operation.DESCRIBE, "new"), CREATE_ANY)
    asked = {"topics": [{"name": "new"}], "allow_auto_topic_creation": True}
    with pytest.raises(RelayInstead):
        await ask(active, ApiKey.METADATA, asked, *rights)

    answer = await ask(active, ApiKey.METADATA, {**asked, "include_topic_authorized_operations": True}, *rights)
    assert by_name(answer["topics"]) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize("key", REQUEST_FILTERS)
async def test_a_standby_sends_elsewhere_what_it_may_not_judge_or_answer(key: ApiKey) -> None:
    """Every screen without a cluster; nothing is shown or done."""
    bodies: dict[ApiKey, Body] = {
        ApiKey.CREATE_TOPICS: new_topics("a"),
        ApiKey.CREATE_PARTITIONS: {"topics": [{"name": "a", "count": 2, "assignments": None}]},
        ApiKey.DELETE_TOPICS: {"topics": [{"name": None, "topic_id": UNKNOWN}]},
        ApiKey.METADATA: {"topics": None},
        ApiKey.DESCRIBE_CLUSTER: {"include_cluster_authorized_operations": True},
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: {"topics": [], "cursor": None},
    }
    answer = await ask(None, key, bodies[key])
    if key is ApiKey.DESCRIBE_CLUSTER:
        assert (answer["error_code"], answer["brokers"]) == (ErrorCode.NOT_CONTROLLER, [])
        return
    (items,) = (value for name, value in answer.items() if name in {"topics", "results", "responses"})
    assert {item["error_code"] for item in items} <= {NO, ErrorCode.NOT_CONTROLLER}
