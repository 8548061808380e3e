"""Moves that are cancelled or changed while they run (KIP-455), at every stage."""

import pytest

from kafka_wire import ErrorCode
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp
from tests.controller_core.decisions.messages import StopReplica

FIVE = [1, 2, 3, 4, 5]


@pytest.fixture
def driver() -> Driver:
    """Five brokers; orders-0 on 1, 2 and 3 is moving to 2, 3 and 4; answers are held."""
    driver = cluster_with(FIVE, {"orders": [[1, 2, 3]]})
    driver.holds_answers = True
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.forget()
    return driver


def written_lists(driver: Driver) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return replicas, adding and removing as they are written."""
    topic = driver.written.topics["orders"]
    return topic.replicas[0], topic.adding.get(0, ()), topic.removing.get(0, ())


@pytest.mark.shows("C9")
def test_a_cancelled_move_returns_to_the_old_replicas(driver: Driver) -> None:
    """C9: the added replica is removed, and its broker gets a request to delete it."""
    assert driver.reassign({"orders-0": None}) == {"orders-0": None}
    assert driver.sent(StopReplica, broker_id=4)[0].partitions.keys() == {tp("orders-0")}

    driver.answer()

    assert written_lists(driver) == ((2, 3, 1), (), ())
    assert driver.state("orders-0") == State(1, 2, (1, 2, 3))
    assert {broker.id for broker in driver.brokers.values() if broker.logs} == {1, 2, 3}


def test_a_cancelled_move_is_written_as_such_until_the_added_replica_is_deleted(driver: Driver) -> None:
    """A replica in both lists was being added and is removed; a controller that takes over finishes the move."""
    driver.reassign({"orders-0": None})

    assert written_lists(driver) == ((2, 3, 1, 4), (4,), (4,))


@pytest.mark.shows("C2")
def test_an_added_replica_in_sync_leaves_the_isr_when_the_move_is_cancelled() -> None:
    """C2: the ISR stays within the replicas, and the leader returns."""
    driver = cluster_with(FIVE, {"orders": [[1, 2, 3]]})
    driver.reassign({"orders-0": [4, 5]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.kill(1)
    assert driver.state("orders-0") == State(4, 2, (2, 3, 4))
    driver.reassign({"orders-0": None})

    assert driver.state("orders-0") == State(2, 3, (2, 3))


def test_a_cancelled_move_does_not_wait_for_old_replicas_out_of_sync(driver: Driver) -> None:
    """The origin was in service before: a dead member must not prevent the move from ending."""
    driver.kill(3)
    driver.reassign({"orders-0": None})
    driver.answer()

    assert written_lists(driver) == ((2, 3, 1), (), ())
    assert driver.state("orders-0").isr == (1, 2)


def test_a_move_whose_old_replicas_are_all_out_of_sync_cannot_be_cancelled() -> None:
    """C7, C9: the return would lose records that only the added replicas have."""
    driver = cluster_with(FIVE, {"orders": [[1]]})
    driver.reassign({"orders-0": [4, 5]})
    driver.alter_isr("orders-0", [1, 4])
    driver.kill(1)
    driver.forget()

    assert driver.reassign({"orders-0": None})["orders-0"].code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert driver.changes == []


def test_a_partition_without_a_move_has_nothing_to_cancel() -> None:
    """NO_REASSIGNMENT_IN_PROGRESS."""
    driver = cluster_with(FIVE, {"orders": [[1]]})

    assert driver.reassign({"orders-0": None})["orders-0"].code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_an_unknown_partition_has_no_move_to_cancel() -> None:
    """KafkaController.maybeBuildReassignment: NO_REASSIGNMENT_IN_PROGRESS, for an unknown topic and an unknown partition."""
    driver = cluster_with(FIVE, {"orders": [[1]]})
    results = driver.reassign({"orders-7": None, "ghost-0": None})

    assert {failure.code for failure in results.values()} == {ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}
    assert driver.changes == []


def test_an_invalid_target_is_refused_before_its_partition_is_looked_up() -> None:
    """KafkaController.processApiPartitionReassignment: validateReplicas comes first."""
    driver = cluster_with(FIVE, {"orders": [[1]]})
    results = driver.reassign({"ghost-0": [1, 1], "ghost-1": [9], "ghost-2": [1]})

    assert [results[f"ghost-{partition}"].code for partition in range(3)] == [
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_a_move_to_the_controller_is_refused_with_a_clear_message() -> None:
    """It is listed as a broker, so kafka-reassign-partitions --generate may plan with its id."""
    driver = cluster_with(FIVE, {"orders": [[1]]})
    own = driver.cluster.controller_id
    failure = driver.reassign({"orders-0": [own, 1]})["orders-0"]

    assert failure.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert failure.message.startswith(f"Node {own} is the controller and holds no data.")


def test_a_cancellation_may_be_repeated(driver: Driver) -> None:
    """Idempotent: the target is the origin already."""
    driver.reassign({"orders-0": None})
    driver.forget()

    assert driver.reassign({"orders-0": None})["orders-0"] is not None
    assert driver.changes == []


def test_a_move_that_only_removes_replicas_is_cancelled_at_once() -> None:
    """Nothing was added, so nothing is removed; the cancellation does not wait for replicas out of sync."""
    driver = cluster_with(FIVE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", [1, 3])
    driver.reassign({"orders-0": [1, 2]})
    assert driver.replicas("orders-0") == (1, 2, 3)
    driver.reassign({"orders-0": None})

    assert written_lists(driver) == ((1, 2, 3), (), ())
    assert driver.cluster.moves == {}
    assert driver.state("orders-0") == State(1, 2, (1, 3))


def test_a_move_that_was_completed_cannot_be_cancelled(driver: Driver) -> None:
    """The old replicas were sent requests to delete: the partition has reached its target."""
    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.forget()

    assert driver.reassign({"orders-0": None})["orders-0"].code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert driver.changes == []

    driver.answer()

    assert written_lists(driver) == ((2, 3, 4), (), ())


def test_the_target_of_a_running_move_can_be_changed(driver: Driver) -> None:
    """KIP-455: the origin stays the first one; replicas that the earlier target added are removed at the end."""
    driver.reassign({"orders-0": [2, 3, 5]})

    assert written_lists(driver) == ((2, 3, 5, 4, 1), (5, 4), (4, 1))

    driver.alter_isr("orders-0", [1, 2, 3, 5])
    driver.answer()

    assert written_lists(driver) == ((2, 3, 5), (), ())
    assert {broker.id for broker in driver.brokers.values() if broker.logs} == {2, 3, 5}


def test_a_move_that_was_changed_can_still_be_cancelled(driver: Driver) -> None:
    """C9: the cancellation returns to the first origin."""
    driver.reassign({"orders-0": [2, 3, 5]})
    driver.reassign({"orders-0": None})
    driver.answer()

    assert set(driver.replicas("orders-0")) == {1, 2, 3}
    assert {broker.id for broker in driver.brokers.values() if broker.logs} == {1, 2, 3}


@pytest.mark.shows("C9", "D2")
def test_a_move_that_is_changed_to_a_part_of_the_origin_waits_for_all_of_that_part(driver: Driver) -> None:
    """C9: it drops its added replicas but is no cancellation; an old replica is removed only when the target is in sync."""
    driver.alter_isr("orders-0", [1, 3])
    driver.reassign({"orders-0": [1, 2]})

    assert set(driver.replicas("orders-0")) == {1, 2, 3, 4}
    assert driver.state("orders-0").isr == (1, 3)
    assert driver.sent(StopReplica) == []

    driver.alter_isr("orders-0", [1, 3, 2])
    driver.answer()

    assert written_lists(driver) == ((1, 2), (), ())


def test_another_move_may_follow_while_removed_replicas_have_not_answered(driver: Driver) -> None:
    """The partition is in service at its target; requests without an answer are repeated at the end."""
    driver.holds_messages = True
    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.reassign({"orders-0": [2, 3, 5]})

    assert written_lists(driver) == ((2, 3, 5, 4, 1), (5, 1), (4, 1))

    driver.holds_messages = driver.holds_answers = False
    driver.settle()
    driver.alter_isr("orders-0", [2, 3, 4, 5])

    assert written_lists(driver) == ((2, 3, 5), (), ())
    assert {broker.id for broker in driver.brokers.values() if broker.logs} == {2, 3, 5}


def test_a_removed_replica_that_is_added_again_has_to_be_in_sync(driver: Driver) -> None:
    """C9: it was sent a request to delete, so it counts as added, and no replica is removed before it is in sync."""
    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.reassign({"orders-0": [1, 2, 3]})

    assert written_lists(driver) == ((1, 2, 3, 4), (1,), (4,))
    assert set(driver.replicas("orders-0")) == {1, 2, 3, 4}

    driver.alter_isr("orders-0", [2, 3, 4, 1])
    driver.answer()

    assert written_lists(driver) == ((1, 2, 3), (), ())
    assert {broker.id for broker in driver.brokers.values() if broker.logs} == {1, 2, 3}


@pytest.mark.shows("D1")
def test_a_late_answer_to_an_earlier_move_does_not_end_a_later_one(driver: Driver) -> None:
    """Broker 1 was sent delete, follow, and delete again; the first answer does not confirm the last request."""
    driver.alter_isr("orders-0", [1, 2, 3, 4])
    late = driver.answers.copy()
    driver.reassign({"orders-0": [2, 3]})
    driver.answers, second = late, driver.answers[1:]
    driver.answer()

    assert driver.written.topics["orders"].removing == {0: (4, 1)}

    driver.answers = second
    driver.answer()

    assert written_lists(driver) == ((2, 3), (), ())
