"""CreateTopics, DeleteTopics and CreatePartitions of a standalone broker. Source: ReplicationControlManagerTest of Kafka 4.3."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from kafka_node.authorization.acl import Operation, ResourceType
from kafka_node.authorization.guard import EVERYTHING, Ask
from kafka_node.configs.layered_settings import Settings
from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire import ErrorCode
from light_broker.control.standalone.state import State, TopicState
from light_broker.control.standalone.topics import create_partitions, create_topics, delete_topics

SETTINGS = Settings(1, {"num.partitions": "2"})
NEW_ID = UUID(int=9)
EMPTY = State("cluster", 1, broker_epoch=4)
WITH_ORDERS = EMPTY.with_topic("orders", TopicState(UUID(int=1), 3, 1))


class Only:
    """Allows one operation on one topic. Implements Ask."""

    def __init__(self, operation: Operation, name: str) -> None:
        self.allowed = (operation, ResourceType.TOPIC, name)

    def __call__(self, operation: Operation, resource_type: ResourceType, name: str, *, quiet: bool = False) -> bool:  # noqa: ARG002
        return (operation, resource_type, name) == self.allowed

    def on_all(self, operation: Operation, resource_type: ResourceType) -> bool:  # noqa: ARG002
        """Return False."""
        return False


def new(name: str = "orders", **fields: Any) -> dict[str, Any]:
    """Return a topic of a request."""
    return {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": [], "configs": []} | fields


def created(
    *topics: Mapping[str, Any], state: State = EMPTY, validate_only: bool = False, may: Ask = EVERYTHING
) -> Any:
    """Return the next state, and the error codes and messages of the topics."""
    body = {"topics": list(topics), "validate_only": validate_only}
    after, answer = create_topics(state, body, may, SETTINGS, lambda: NEW_ID)
    return after, [(topic["error_code"], topic["error_message"]) for topic in answer["topics"]]


def assigned(*brokers: list[int]) -> list[dict[str, Any]]:
    """Return assignments of partitions 0, 1, … to brokers."""
    return [{"partition_index": number, "broker_ids": replicas} for number, replicas in enumerate(brokers)]


def test_a_topic_has_the_brokers_number_of_partitions_by_default() -> None:
    """num.partitions."""
    after, errors = created(new(configs=[{"name": "retention.ms", "value": "5"}]))

    assert errors == [(ErrorCode.NONE, None)]
    assert after.topics == {"orders": TopicState(NEW_ID, 2, 4, {"retention.ms": "5"})}


def test_a_request_that_only_validates_changes_nothing() -> None:
    """And returns the same outcome."""
    after, errors = created(new(), validate_only=True)

    assert (after, errors) == (EMPTY, [(ErrorCode.NONE, None)])


def test_partitions_may_be_assigned_to_this_broker() -> None:
    """The number of assignments is the number of partitions."""
    after, errors = created(new(assignments=assigned([1], [1], [1])))

    assert errors == [(ErrorCode.NONE, None)]
    assert after.topics["orders"].partitions == 3


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (new("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new("."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new(num_partitions=0), ErrorCode.INVALID_PARTITIONS),
        (new(num_partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (new(replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new(replication_factor=2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new(num_partitions=10_001), ErrorCode.POLICY_VIOLATION),
        (new(configs=[{"name": "retention.ms", "value": "abc"}]), ErrorCode.INVALID_CONFIG),
        (new(configs=[{"name": "no.such.config", "value": "1"}]), ErrorCode.INVALID_CONFIG),
        (new(configs=[{"name": "message.format.version", "value": "2.8"}]), ErrorCode.INVALID_CONFIG),
        (new(configs=[{"name": "remote.storage.enable", "value": "true"}]), ErrorCode.INVALID_CONFIG),
        (new(num_partitions=2, assignments=assigned([1], [1])), ErrorCode.INVALID_REQUEST),
        (new(assignments=assigned([2])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (new(assignments=assigned([])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (new(assignments=assigned([1, 1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (new(assignments=[{"partition_index": 1, "broker_ids": [1]}]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_an_invalid_topic_is_refused(topic: Mapping[str, Any], code: ErrorCode) -> None:
    """The other topics of the request are created."""
    after, errors = created(topic, new("other"))

    assert [error for error, _ in errors] == [code, ErrorCode.NONE]
    assert list(after.topics) == ["other"]


def test_a_name_in_use_is_refused() -> None:
    """Also one that differs only by a dot and an underscore, whose metrics would collide."""
    state = EMPTY.with_topic("a.b", TopicState(UUID(int=1), 1, 1))

    _, errors = created(new("a.b"), new("a_b"), state=state)

    assert [error for error, _ in errors] == [ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_a_topic_whose_logs_are_not_deleted_yet_is_not_created_again() -> None:
    """The end of the deletion would else delete the logs of the new one."""
    after, errors = created(new(), state=WITH_ORDERS.with_topic_deleted("orders"))

    assert errors == [(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'orders' is marked for deletion.")]
    assert after.topics == {}


def test_two_topics_of_one_name_are_both_refused() -> None:
    """Source: ControllerApis.createTopics."""
    after, errors = created(new(num_partitions=1), new(num_partitions=2))

    assert (after, errors) == (EMPTY, [(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")])


def test_a_caller_creates_the_topics_that_it_may_create() -> None:
    """CREATE on the cluster, or on the topic."""
    after, errors = created(new("mine"), new("yours"), may=Only(Operation.CREATE, "mine"))

    assert [error for error, _ in errors] == [ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert list(after.topics) == ["mine"]


def deleted(*topics: tuple[str | None, UUID], may: Ask = EVERYTHING, settings: Settings = SETTINGS) -> Any:
    """Return the next state, and the name and error code of each topic."""
    body = {"topics": [{"name": name, "topic_id": topic_id} for name, topic_id in topics], "topic_names": []}
    after, answer = delete_topics(WITH_ORDERS, 6, body, may, settings)
    return after, [(response["name"], response["error_code"]) for response in answer["responses"]]


@pytest.mark.parametrize("asked", [("orders", NO_TOPIC_ID), (None, UUID(int=1))])
def test_a_topic_is_deleted_by_name_or_id(asked: tuple[str | None, UUID]) -> None:
    """Its logs are deleted afterwards, at the latest by the next start."""
    after, results = deleted(asked)

    assert results == [("orders", ErrorCode.NONE)]
    assert (after.topics, after.deletions) == ({}, {"orders": 3})


def test_unknown_topics_are_not_deleted() -> None:
    """By name and by id."""
    after, results = deleted(("none", NO_TOPIC_ID), (None, UUID(int=5)))

    assert results == [("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (None, ErrorCode.UNKNOWN_TOPIC_ID)]
    assert after == WITH_ORDERS


def test_a_topic_that_the_caller_may_not_describe_is_not_named() -> None:
    """Its id would else reveal its name (KafkaApis.handleDeleteTopicsRequest)."""
    after, results = deleted((None, UUID(int=1)), ("none", NO_TOPIC_ID), may=Only(Operation.DELETE, "orders"))

    assert results == [(None, ErrorCode.TOPIC_AUTHORIZATION_FAILED), ("none", ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
    assert after == WITH_ORDERS


def test_no_topic_is_deleted_where_deletion_is_disabled() -> None:
    """delete.topic.enable."""
    after, results = deleted(("orders", NO_TOPIC_ID), settings=Settings(1, {"delete.topic.enable": "false"}))

    assert results == [("orders", ErrorCode.TOPIC_DELETION_DISABLED)]
    assert after == WITH_ORDERS


def grown(
    count: int, assignments: list[dict[str, Any]] | None = None, may: Ask = EVERYTHING, name: str = "orders"
) -> Any:
    """Return the number of partitions afterwards, and the error code."""
    body = {"topics": [{"name": name, "count": count, "assignments": assignments}], "validate_only": False}
    after, answer = create_partitions(WITH_ORDERS, body, may)
    return after.topics["orders"].partitions, answer["results"][0]["error_code"]


def test_partitions_are_added() -> None:
    """Up to the requested number."""
    assert grown(5) == (5, ErrorCode.NONE)
    assert grown(5, [{"broker_ids": [1]}, {"broker_ids": [1]}]) == (5, ErrorCode.NONE)


def test_a_growth_that_is_none_is_refused() -> None:
    """Source: ReplicationControlManager.createPartitions."""
    assert grown(3) == (3, ErrorCode.INVALID_PARTITIONS)
    assert grown(2) == (3, ErrorCode.INVALID_PARTITIONS)
    assert grown(5, [{"broker_ids": [1]}]) == (3, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    assert grown(4, [{"broker_ids": [2]}]) == (3, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    assert grown(4, name="none") == (3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert grown(20_000) == (3, ErrorCode.POLICY_VIOLATION)
    assert grown(4, may=Only(Operation.DESCRIBE, "orders")) == (3, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
