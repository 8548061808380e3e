"""Deletion of topics: told to stop and delete, answered by all, gone (TopicDeletionManager; protocol notes, Z80; C10)."""

import pytest

from controller_core.model import events
from controller_core.model.ids import EPOCH_DURING_DELETE, LEADER_DURING_DELETE
from kafka_wire.errors import ErrorCode
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp
from tests.controller_core.decisions.messages import StopReplica, UpdateMetadata

THREE = [1, 2, 3]


@pytest.fixture
def driver() -> Driver:
    """Three brokers, a topic of two partitions on brokers 1 and 2; answers are held."""
    driver = cluster_with(THREE, {"orders": [[1, 2], [2, 1]]})
    driver.holds_answers = True
    return driver


def is_gone(driver: Driver, topic: str = "orders") -> bool:
    """Whether nothing of a topic is left: written, known, queued, or in a broker's log."""
    logs = {name.topic for broker in driver.brokers.values() for name in broker.logs}
    assert (topic in driver.written.topics) == (topic in driver.cluster.topics)
    return topic not in {*driver.cluster.topics, *driver.written.deletions, *driver.cluster.deletions, *logs}


def reason(driver: Driver, topic: str = "orders") -> str:
    """Why a deletion waits."""
    return driver.cluster.deletions[topic].blocked


def test_a_topic_is_gone_when_all_of_its_replicas_are(driver: Driver) -> None:
    """C10: queue, StopReplica, answers, znodes, queue."""
    assert driver.delete("orders") == {"orders": None}
    assert driver.written.deletions == ["orders"]

    driver.answer()

    assert is_gone(driver)


def test_a_topic_stays_until_the_last_broker_answered(driver: Driver) -> None:
    """Protocol notes, Z81: else a broker that dies now keeps a stray log."""
    driver.delete("orders")
    driver.answer(1)

    assert "orders" in driver.written.topics

    driver.answer(2)

    assert is_gone(driver)


@pytest.mark.shows("C10")
def test_everybody_hears_that_the_topic_is_gone_before_replicas_stop_and_they_stop_before_they_delete(
    driver: Driver,
) -> None:
    """TopicDeletionManager.onTopicDeletion: leader -2 to all, StopReplica without and then with deletion (C10)."""
    driver.delete("orders")

    metadata = driver.messages[0][1]
    assert isinstance(metadata, UpdateMetadata)
    assert driver.messages[0][0] == (1, 2, 3)
    assert {told.leader for told in metadata.partitions.values()} == {LEADER_DURING_DELETE}
    stops = [(to[0], message.delete) for to, message in driver.messages[1:] if isinstance(message, StopReplica)]
    assert stops == [(1, False), (2, False), (1, True), (2, True)]
    assert {epoch for stop in driver.told(StopReplica) for epoch in stop.partitions.values()} == {EPOCH_DURING_DELETE}


def test_an_unknown_topic_is_refused_and_stops_no_other(driver: Driver) -> None:
    """UNKNOWN_TOPIC_OR_PARTITION."""
    results = driver.delete("ghost", "orders")

    assert (results["ghost"].code, results["orders"]) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    assert driver.written.deletions == ["orders"]


def test_a_topic_that_is_queued_already_may_be_asked_for_again(driver: Driver) -> None:
    """The second caller waits for the same end; nothing is told twice."""
    driver.delete("orders")
    driver.forget()

    assert driver.delete("orders") == {"orders": None}
    assert (driver.changes, driver.messages) == ([], [])


@pytest.mark.shows("C10")
def test_a_dead_broker_blocks_the_deletion_until_it_is_back(driver: Driver) -> None:
    """C10: ineligible while a replica is dead, resumed later; nobody is told to delete before."""
    driver.kill(2)
    driver.delete("orders")

    assert reason(driver) == "brokers [2] are offline"
    assert driver.told(StopReplica) == []

    driver.start(2)
    driver.answer()

    assert is_gone(driver)


@pytest.mark.shows("C10")
def test_a_blocked_topic_is_not_brought_back_to_life(driver: Driver) -> None:
    """C10, never resurrect: no election, no LeaderAndIsr for a broker that is back."""
    driver.kill(2)
    driver.delete("orders")
    driver.forget()
    driver.kill(1)
    driver.start(1)

    assert [line for line in driver.lines if line.startswith("write")] == []
    assert driver.state("orders-0") == State(1, 1, (1,))
    assert driver.brokers[1].states == {}


def test_a_broker_that_dies_before_it_answered_is_told_again_when_it_is_back(driver: Driver) -> None:
    """TopicDeletionManager: all replicas are told again, since deleting twice does no harm."""
    driver.delete("orders")
    driver.answer(1)
    driver.kill(2)

    assert reason(driver) == "brokers [2] are offline"

    driver.start(2)
    driver.answer(1)
    driver.answer(2)

    assert is_gone(driver)


@pytest.mark.shows("C13")
def test_a_broker_that_bounces_before_it_answered_is_told_again(driver: Driver) -> None:
    """Its queue went with its earlier life (C13)."""
    driver.holds_messages = True
    driver.delete("orders")
    driver.bounce(2)
    driver.holds_messages = False
    driver.settle()
    driver.answer()

    assert is_gone(driver)


def test_an_answer_of_a_broker_that_is_not_waited_for_changes_nothing(driver: Driver) -> None:
    """A late answer to an earlier request."""
    driver.delete("orders")
    driver.submit(events.StopReplicaAnswered(3, (tp("orders-0"), tp("orders-1"))))

    assert "orders" in driver.cluster.topics


def test_a_broker_that_cannot_delete_blocks_and_is_not_asked_again_at_once(driver: Driver) -> None:
    """A failed disk: TopicDeletionManager.failReplicaDeletion. To ask at once would go round for ever."""
    driver.delete("orders")
    driver.answer(1)
    driver.forget()
    driver.answer(2, failing={"orders-1": "KAFKA_STORAGE_ERROR"})
    driver.submit(events.AdvanceDeletions())

    assert reason(driver) == "broker 2 could not delete orders-1: KAFKA_STORAGE_ERROR"
    assert driver.told(StopReplica) == []


def test_a_refused_deletion_is_tried_again_when_somebody_asks_for_that(driver: Driver) -> None:
    """C10: resumes later."""
    driver.delete("orders")
    driver.answer(1)
    driver.answer(2, failing={"orders-1": "KAFKA_STORAGE_ERROR"})
    driver.submit(events.AdvanceDeletions(retry=True))
    driver.answer()

    assert is_gone(driver)


def test_a_refused_deletion_is_tried_again_when_the_broker_is_back(driver: Driver) -> None:
    """KafkaController.onBrokerStartup resumes the deletions of its replicas."""
    driver.delete("orders")
    driver.answer(1)
    driver.answer(2, failing={"orders-1": "KAFKA_STORAGE_ERROR"})
    driver.bounce(2)
    driver.answer()

    assert is_gone(driver)


def test_two_refused_deletions_do_not_keep_each_other_going() -> None:
    """An answer for one topic is no reason to try another again."""
    driver = cluster_with([1, 2], {"orders": [[1, 2]], "returns": [[1, 2]]})
    driver.holds_answers = True
    driver.delete("orders", "returns")
    for _ in range(5):
        driver.answer(2, failing={"orders-0": "KAFKA_STORAGE_ERROR", "returns-0": "KAFKA_STORAGE_ERROR"})
        driver.answer(1)

    assert driver.answers == []


def test_a_topic_without_replicas_is_gone_at_once() -> None:
    """A znode without partitions, written by hand: nobody could answer."""
    driver = cluster_with([1])
    driver.find("empty", [])
    driver.delete("empty")

    assert is_gone(driver, "empty")


def test_a_running_move_is_waited_for(driver: Driver) -> None:
    """TopicDeletionManager: ineligible while a reassignment runs; resumed when it has ended."""
    driver.reassign({"orders-0": [3, 2]})
    driver.delete("orders")

    assert reason(driver) == "a reassignment of the topic is running"

    driver.alter_isr("orders-0", [1, 2, 3])
    driver.answer()
    driver.answer()

    assert is_gone(driver)


def test_a_topic_whose_deletion_waits_for_a_move_is_in_service_until_then(driver: Driver) -> None:
    """Its leader may die and its ISR must grow, or the move, and so the deletion, would never end."""
    driver.reassign({"orders-0": [3, 2]})
    driver.delete("orders")
    driver.kill(1)

    assert driver.state("orders-0") == State(2, 2, (2,))

    driver.alter_isr("orders-0", [2, 3])
    driver.start(1)
    driver.answer()
    driver.answer()

    # What broker 1 held of the moved partition it still has: it was away when its replica went.
    assert driver.cluster.topics == {}
    assert driver.written.deletions == []


def test_a_queued_topic_is_not_moved(driver: Driver) -> None:
    """KafkaController.maybeTriggerPartitionReassignment: UNKNOWN_TOPIC_OR_PARTITION."""
    driver.kill(3)
    driver.delete("orders")

    assert driver.reassign({"orders-0": [2, 1]})["orders-0"].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_names_that_someone_else_queued_are_taken_and_unknown_ones_taken_out_of_the_queue(driver: Driver) -> None:
    """KafkaController.processTopicDeletion: names that no topic has are removed from /admin/delete_topics."""
    driver.written.deletions += ["orders", "ghost"]
    driver.submit(events.DeletionsRead(("orders", "ghost")))

    assert driver.written.deletions == ["orders"]

    driver.answer()

    assert is_gone(driver)


def test_a_controller_that_takes_over_starts_the_deletion_again(driver: Driver) -> None:
    """The queue outlives the controller: what was answered to the earlier one is asked for again."""
    driver.delete("orders")
    driver.answer(1)
    driver.take_over()
    driver.answer()

    assert is_gone(driver)


def test_a_topic_of_the_same_name_can_be_made_afterwards(driver: Driver) -> None:
    """Nothing of the old one is left."""
    driver.delete("orders")
    driver.answer()
    driver.create("orders", [[3, 1]])

    assert driver.state("orders-0") == State(3, 0, (3, 1))
    assert tp("orders-1") not in driver.written.states


def test_a_topic_that_was_not_placed_is_deleted_when_its_brokers_are_back() -> None:
    """Partitions that never had a leader are deleted like others."""
    driver = cluster_with([1, 2])
    driver.kill(2)
    driver.find("orders", [[2]])
    driver.delete("orders")
    driver.start(2)

    assert is_gone(driver)
    assert driver.written.states == {}
