"""CreatePartitions (KIP-195), with Kafka's error messages (ZkAdminManager.createPartitions)."""

from typing import Any

import pytest

from controller_core.decisions.topics import MAX_PARTITIONS_PER_REQUEST
from controller_core.model import events
from kafka_wire import ErrorCode, Failure
from tests.controller_core.decisions.driver import Driver, State, cluster_with

THREE = [1, 2, 3]


@pytest.fixture
def driver() -> Driver:
    """Three brokers, a topic of two partitions."""
    return cluster_with(THREE, {"orders": [[1, 2], [2, 3]]})


def add(driver: Driver, count: int, *, topic: str = "orders", **wish: Any) -> Failure | None:
    """Request a total number of partitions."""
    validate_only = bool(wish.pop("validate_only", False))
    request = events.CreatePartitions((events.NewPartitions(topic, count, **wish),), validate_only)
    result: Failure | None = driver.submit(request)[topic]
    return result


def test_added_partitions_follow_the_others_and_are_online_in_one_event(driver: Driver) -> None:
    """AdminZkClient: placement continues from partition 0."""
    assert add(driver, 4) is None
    assert driver.cluster.columns.partition[driver.cluster.topics["orders"].rows].tolist() == [0, 1, 2, 3]
    assert len(driver.replicas("orders-3")) == 2
    assert driver.replicas("orders-2") == driver.state("orders-2").isr
    assert driver.state("orders-0") == State(1, 0, (1, 2))


def test_a_given_assignment_is_used(driver: Driver) -> None:
    """CreatePartitions with assignments."""
    assert add(driver, 4, assignments=[(3, 1), (1, 3)]) is None
    assert [driver.replicas("orders-2"), driver.replicas("orders-3")] == [(3, 1), (1, 3)]


REFUSALS: list[tuple[int, dict[str, Any], ErrorCode, str]] = [
    (
        1,
        {},
        ErrorCode.INVALID_PARTITIONS,
        "Topic currently has 2 partitions, which is higher than the requested 1.",
    ),
    (2, {}, ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partitions."),
    (
        3,
        {"assignments": [(1, 2), (2, 3)]},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Increasing the number of partitions by 1 but 2 assignments provided.",
    ),
    (
        3,
        {"assignments": [(1,)]},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Existing topic has replication factor 2; every added partition must have as many replicas.",
    ),
    (
        3,
        {"assignments": [(1, 1)]},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Duplicate replica assignment found: [1, 1]",
    ),
    (
        3,
        {"assignments": [(1, 9)]},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Unknown broker(s) in replica assignment: 9.",
    ),
    (
        3 + MAX_PARTITIONS_PER_REQUEST,
        {},
        ErrorCode.POLICY_VIOLATION,
        "Unable to add more than 10000 partitions in one request.",
    ),
]


@pytest.mark.parametrize(("count", "wish", "code", "message"), REFUSALS)
def test_invalid_requests_are_refused_with_kafkas_messages(
    driver: Driver, count: int, wish: dict[str, Any], code: ErrorCode, message: str
) -> None:
    """O8: the number of partitions never decreases; invalid requests get a clear error."""
    assert add(driver, count, **wish) == Failure(code, message)
    assert driver.changes == []


def test_an_unknown_topic_is_refused(driver: Driver) -> None:
    """UNKNOWN_TOPIC_OR_PARTITION."""
    assert add(driver, 3, topic="ghost") == Failure(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'ghost' does not exist."
    )


def test_no_partitions_are_added_to_a_topic_that_is_being_deleted(driver: Driver) -> None:
    """C10; KafkaController.processPartitionModifications (protocol notes, Z82)."""
    driver.kill(3)
    driver.delete("orders")

    assert getattr(add(driver, 3), "code", None) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_no_partitions_are_added_to_a_topic_that_is_moving(driver: Driver) -> None:
    """REASSIGNMENT_IN_PROGRESS: partition 0 does not have its final number of replicas."""
    driver.reassign({"orders-0": [3, 1]})

    assert add(driver, 3) == Failure(
        ErrorCode.REASSIGNMENT_IN_PROGRESS, "A partition reassignment is in progress for the topic 'orders'."
    )


def test_no_partitions_are_added_to_a_topic_with_gaps_in_its_partition_ids(driver: Driver) -> None:
    """AdminZkClient.createPartitions: placement continues from partition 0."""
    driver.find("empty", [])

    assert add(driver, 1, topic="empty") == Failure(
        ErrorCode.UNKNOWN_SERVER_ERROR, "The partitions of the topic 'empty' are not numbered from 0 on without gaps."
    )


def test_too_few_brokers_are_reported(driver: Driver) -> None:
    """With Kafka's message."""
    driver.kill(2, 3)

    assert add(driver, 3) == Failure(
        ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor: 2 larger than available brokers: 1."
    )


def test_validation_writes_nothing(driver: Driver) -> None:
    """validate_only."""
    assert add(driver, 3, validate_only=True) is None
    assert (driver.changes, len(driver.written.topics["orders"].replicas)) == ([], 2)


def test_partitions_added_by_another_process_are_found_and_online(driver: Driver) -> None:
    """The write is refused, the topic is read again, and the request is decided again."""
    driver.intrude(lambda: driver.write_topic("orders", [[1, 2], [2, 3], [3, 1]]))

    assert add(driver, 3) == Failure(ErrorCode.INVALID_PARTITIONS, "Topic already has 3 partitions.")

    driver.submit(events.RepairPartitions())

    assert driver.state("orders-2") == State(3, 0, (3, 1))
