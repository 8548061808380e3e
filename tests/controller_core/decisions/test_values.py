"""Small values of the model: scopes of events, listeners of brokers, topic names, failures."""

import pytest

from controller_core.model import Broker, Endpoint, TopicPartition, scope
from controller_core.model.scope import Scope
from controller_core.zookeeper_mode.deletion import is_being_deleted
from kafka_wire import ErrorCode, Failure
from kafka_wire.errors import MAX_MESSAGE_CHARACTERS
from tests.controller_core.decisions.driver import cluster_with
from tests.twins.scope import overlap

ORDERS = scope.topics(["orders"])
FIRST = scope.partitions([TopicPartition("orders", 0)])
SECOND = scope.partitions([TopicPartition("orders", 1)])
OTHERS = scope.topics(["returns"])


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        (ORDERS, ORDERS, True),
        (ORDERS, OTHERS, False),
        (ORDERS, FIRST, True),
        (OTHERS, FIRST, False),
        (FIRST, FIRST, True),
        (FIRST, SECOND, False),
        (scope.ALL, SECOND, True),
        (scope.ALL, Scope(), True),
        (Scope(), ORDERS, False),
    ],
)
def test_scopes_with_a_common_partition_overlap(one: Scope, other: Scope, meet: bool) -> None:
    """The relation is symmetric (`shell.scheduler`)."""
    assert (overlap(one, other), overlap(other, one)) == (meet, meet)


def test_an_endpoint_is_found_by_its_listener() -> None:
    """None if a broker does not have the listener."""
    internal = Endpoint("INTERNAL", "host", 9092, "PLAINTEXT")
    broker = Broker(1, 7, (internal, Endpoint("CLIENT", "host", 9093, "SSL")))

    assert internal == broker.endpoint("INTERNAL")
    assert broker.endpoint("CONTROLLER") is None


def test_a_topic_is_found_by_its_id_while_it_exists() -> None:
    """AlterPartition identifies topics by id since version 2."""
    driver = cluster_with([1], {"orders": [[1]]})
    topic_id = driver.cluster.topics["orders"].topic_id
    assert topic_id is not None

    assert driver.cluster.topic_name(topic_id) == "orders"

    driver.delete("orders")

    assert driver.cluster.topic_name(topic_id) is None


def test_a_topic_is_being_deleted_once_brokers_were_sent_its_deletion() -> None:
    """A topic that is only queued is still described to clients."""
    driver = cluster_with([1, 2], {"orders": [[1, 2]]})
    driver.holds_answers = True
    assert not is_being_deleted(driver.cluster.deletions.get("orders"))
    driver.kill(2)
    driver.delete("orders")
    assert not is_being_deleted(driver.cluster.deletions["orders"])
    driver.start(2)

    assert is_being_deleted(driver.cluster.deletions["orders"])


def test_a_long_error_message_is_shortened() -> None:
    """A string of Kafka's protocol has at most 32,767 bytes: a longer message could not be sent and would close the connection."""
    failure = Failure(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Invalid broker id in replica list: {list(range(100_000))}"
    )

    assert len(failure.message) == MAX_MESSAGE_CHARACTERS
    assert failure.message.startswith("Invalid broker id in replica list: [0, 1, 2,")
    assert failure.message.endswith("(shortened)")
    assert Failure(ErrorCode.INVALID_REQUEST, "short").message == "short"
