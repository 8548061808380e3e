"""Topic deletion: stop and delete requests, answers of all replicas, removal (TopicDeletionManager; protocol notes, Z80; C10)."""

import pytest

from controller_core.model import zookeeper_events
from controller_core.model.ids import EPOCH_DURING_DELETE, LEADER_DURING_DELETE
from kafka_wire import ErrorCode
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp
from tests.controller_core.decisions.messages import StopReplica, UpdateMetadata

THREE = [1, 2, 3]


@pytest.fixture
def driver() -> Driver:
    """Three brokers, a topic of two partitions on brokers 1 and 2; answers are held."""
    driver = cluster_with(THREE, {"orders": [[1, 2], [2, 1]]})
    driver.holds_answers = True
    return driver


def is_removed(driver: Driver, topic: str = "orders") -> bool:
    """Whether nothing of a topic is left: written, in memory, queued, or in a broker's log."""
    logs = {name.topic for broker in driver.brokers.values() for name in broker.logs}
    assert (topic in driver.written.topics) == (topic in driver.cluster.topics)
    return topic not in {*driver.cluster.topics, *driver.written.deletions, *driver.cluster.deletions, *logs}


def reason(driver: Driver, topic: str = "orders") -> str:
    """Return why a deletion waits."""
    return driver.cluster.deletions[topic].blocked


def test_a_topic_is_removed_when_all_its_replicas_are_deleted(driver: Driver) -> None:
    """C10: queue, StopReplica, answers, znodes, queue."""
    assert driver.delete("orders") == {"orders": None}
    assert driver.written.deletions == ["orders"]

    driver.answer()

    assert is_removed(driver)


def test_a_topic_stays_until_the_last_broker_has_answered(driver: Driver) -> None:
    """Protocol notes, Z81: otherwise a broker that fails now keeps a stray log."""
    driver.delete("orders")
    driver.answer(1)

    assert "orders" in driver.written.topics

    driver.answer(2)

    assert is_removed(driver)


@pytest.mark.shows("C10")
def test_metadata_is_sent_before_replicas_stop_and_replicas_stop_before_they_delete(
    driver: Driver,
) -> None:
    """TopicDeletionManager.onTopicDeletion: leader -2 to all brokers, StopReplica without and then with deletion (C10)."""
    driver.delete("orders")

    metadata = driver.messages[0][1]
    assert isinstance(metadata, UpdateMetadata)
    assert driver.messages[0][0] == (1, 2, 3)
    assert {state.leader for state in metadata.partitions.values()} == {LEADER_DURING_DELETE}
    stops = [(to[0], message.delete) for to, message in driver.messages[1:] if isinstance(message, StopReplica)]
    assert stops == [(1, False), (2, False), (1, True), (2, True)]
    assert {epoch for stop in driver.sent(StopReplica) for epoch in stop.partitions.values()} == {EPOCH_DURING_DELETE}


def test_an_unknown_topic_is_refused_independently_of_others(driver: Driver) -> None:
    """UNKNOWN_TOPIC_OR_PARTITION."""
    results = driver.delete("ghost", "orders")

    assert (results["ghost"].code, results["orders"]) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    assert driver.written.deletions == ["orders"]


def test_the_deletion_of_a_queued_topic_may_be_requested_again(driver: Driver) -> None:
    """The second caller waits for the same deletion; no request is sent twice."""
    driver.delete("orders")
    driver.forget()

    assert driver.delete("orders") == {"orders": None}
    assert (driver.changes, driver.messages) == ([], [])


@pytest.mark.shows("C10")
def test_a_dead_broker_blocks_the_deletion_until_it_is_back(driver: Driver) -> None:
    """C10: ineligible while a replica is dead, resumed later; no request to delete is sent before."""
    driver.kill(2)
    driver.delete("orders")

    assert reason(driver) == "brokers [2] are offline"
    assert driver.sent(StopReplica) == []

    driver.start(2)
    driver.answer()

    assert is_removed(driver)


@pytest.mark.shows("C10")
def test_a_blocked_topic_is_not_resurrected(driver: Driver) -> None:
    """C10, never resurrect: no election, and no LeaderAndIsr for a broker that is back."""
    driver.kill(2)
    driver.delete("orders")
    driver.forget()
    driver.kill(1)
    driver.start(1)

    assert [line for line in driver.lines if line.startswith("write")] == []
    assert driver.state("orders-0") == State(1, 1, (1,))
    assert driver.brokers[1].states == {}


def test_requests_are_repeated_when_a_broker_that_failed_before_its_answer_is_back(driver: Driver) -> None:
    """TopicDeletionManager: all replicas get the requests again; repeating them does no harm."""
    driver.delete("orders")
    driver.answer(1)
    driver.kill(2)

    assert reason(driver) == "brokers [2] are offline"

    driver.start(2)
    driver.answer(1)
    driver.answer(2)

    assert is_removed(driver)


@pytest.mark.shows("C13")
def test_requests_are_repeated_when_a_broker_restarts_before_its_answer(driver: Driver) -> None:
    """Its queue was dropped with its earlier incarnation (C13)."""
    driver.holds_messages = True
    driver.delete("orders")
    driver.bounce(2)
    driver.holds_messages = False
    driver.settle()
    driver.answer()

    assert is_removed(driver)


def test_an_unexpected_answer_changes_nothing(driver: Driver) -> None:
    """A late answer to an earlier request."""
    driver.delete("orders")
    driver.submit(zookeeper_events.StopReplicaAnswered(3, (tp("orders-0"), tp("orders-1"))))

    assert "orders" in driver.cluster.topics


def test_a_failed_deletion_is_blocked_and_not_retried_at_once(driver: Driver) -> None:
    """A failed disk: TopicDeletionManager.failReplicaDeletion. An immediate retry would loop forever."""
    driver.delete("orders")
    driver.answer(1)
    driver.forget()
    driver.answer(2, failing={"orders-1": "KAFKA_STORAGE_ERROR"})
    driver.submit(zookeeper_events.AdvanceDeletions())

    assert reason(driver) == "broker 2 could not delete orders-1: KAFKA_STORAGE_ERROR"
    assert driver.sent(StopReplica) == []


def test_a_refused_deletion_is_retried_on_request(driver: Driver) -> None:
    """C10: resumed later."""
    driver.delete("orders")
    driver.answer(1)
    driver.answer(2, failing={"orders-1": "KAFKA_STORAGE_ERROR"})
    driver.submit(zookeeper_events.AdvanceDeletions(retry=True))
    driver.answer()

    assert is_removed(driver)


def test_a_refused_deletion_is_retried_when_the_broker_is_back(driver: Driver) -> None:
    """KafkaController.onBrokerStartup resumes the deletions of its replicas."""
    driver.delete("orders")
    driver.answer(1)
    driver.answer(2, failing={"orders-1": "KAFKA_STORAGE_ERROR"})
    driver.bounce(2)
    driver.answer()

    assert is_removed(driver)


def test_two_refused_deletions_do_not_retry_each_other() -> None:
    """An answer for one topic does not cause a retry of another."""
    driver = cluster_with([1, 2], {"orders": [[1, 2]], "returns": [[1, 2]]})
    driver.holds_answers = True
    driver.delete("orders", "returns")
    for _ in range(5):
        driver.answer(2, failing={"orders-0": "KAFKA_STORAGE_ERROR", "returns-0": "KAFKA_STORAGE_ERROR"})
        driver.answer(1)

    assert driver.answers == []


def test_a_topic_without_replicas_is_removed_at_once() -> None:
    """A manually written znode without partitions: no broker could answer."""
    driver = cluster_with([1])
    driver.find("empty", [])
    driver.delete("empty")

    assert is_removed(driver, "empty")


def test_a_deletion_waits_for_a_running_move(driver: Driver) -> None:
    """TopicDeletionManager: ineligible while a reassignment is running; resumed when it has ended."""
    driver.reassign({"orders-0": [3, 2]})
    driver.delete("orders")

    assert reason(driver) == "a reassignment of the topic is running"

    driver.alter_isr("orders-0", [1, 2, 3])
    driver.answer()
    driver.answer()

    assert is_removed(driver)


def test_a_topic_whose_deletion_waits_for_a_move_is_in_service_until_then(driver: Driver) -> None:
    """Its leader may fail and its ISR must grow; otherwise the move, and so the deletion, would never end."""
    driver.reassign({"orders-0": [3, 2]})
    driver.delete("orders")
    driver.kill(1)

    assert driver.state("orders-0") == State(2, 2, (2,))

    driver.alter_isr("orders-0", [2, 3])
    driver.start(1)
    driver.answer()
    driver.answer()

    # Broker 1 still has the log of the moved partition: it was offline when its replica was removed.
    assert driver.cluster.topics == {}
    assert driver.written.deletions == []


def test_a_queued_topic_is_not_moved(driver: Driver) -> None:
    """KafkaController.maybeTriggerPartitionReassignment: UNKNOWN_TOPIC_OR_PARTITION."""
    driver.kill(3)
    driver.delete("orders")

    assert driver.reassign({"orders-0": [2, 1]})["orders-0"].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_names_queued_by_another_process_are_accepted_and_unknown_ones_removed(driver: Driver) -> None:
    """KafkaController.processTopicDeletion: names without a topic are removed from /admin/delete_topics."""
    driver.written.deletions += ["orders", "ghost"]
    driver.submit(zookeeper_events.DeletionsRead(("orders", "ghost")))

    assert driver.written.deletions == ["orders"]

    driver.answer()

    assert is_removed(driver)


def test_a_controller_that_takes_over_starts_the_deletion_again(driver: Driver) -> None:
    """The queue outlives the controller: requests that were answered to the earlier one are repeated."""
    driver.delete("orders")
    driver.answer(1)
    driver.take_over()
    driver.answer()

    assert is_removed(driver)


def test_a_topic_of_the_same_name_can_be_created_afterwards(driver: Driver) -> None:
    """Nothing of the old topic is left."""
    driver.delete("orders")
    driver.answer()
    driver.create("orders", [[3, 1]])

    assert driver.state("orders-0") == State(3, 0, (3, 1))
    assert tp("orders-1") not in driver.written.states


def test_a_topic_that_never_had_leaders_is_deleted_when_its_brokers_are_back() -> None:
    """Partitions that never had a leader are deleted like others."""
    driver = cluster_with([1, 2])
    driver.kill(2)
    driver.find("orders", [[2]])
    driver.delete("orders")
    driver.start(2)

    assert is_removed(driver)
    assert driver.written.states == {}
