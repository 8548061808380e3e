"""Stray logs on brokers: which ones deletions wait for, which are deleted, and which are only reported.

Source: ReplicaManager.becomeLeaderOrFollower (INCONSISTENT_TOPIC_ID), TopicDeletionManager (replicas on dead brokers).
"""

from dataclasses import replace

import pytest

from controller_core.model import cluster as cluster_module
from controller_core.model import zookeeper_events
from controller_core.model.ids import EPOCH_DURING_DELETE
from controller_core.zookeeper_mode.stray_logs import LogKind, classify_log
from kafka_wire import ErrorCode, Failure
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr, StopReplica

STALE = "INCONSISTENT_TOPIC_ID"
THREE = [1, 2, 3]


def moved_away() -> Driver:
    """A partition on 1 and 2 that moved to 1 and 3 while 2 was offline."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.kill(2)
    driver.reassign({"orders-0": [1, 3]})
    driver.alter_isr("orders-0", (1, 3))
    assert driver.replicas("orders-0") == (1, 3)
    driver.forget()
    return driver


def with_stale_log(*, is_known_deleted: bool, assignment: tuple[int, ...] = (2, 3)) -> Driver:
    """A new topic whose replica on broker 2 meets the log of an earlier topic of that name."""
    driver = moved_away()
    driver.unregister(2)
    driver.delete("orders")
    assert "orders" not in driver.cluster.topics
    if not is_known_deleted:
        driver.take_over()
    driver.start(2)
    driver.create("orders", [assignment])
    return driver


# Deletions wait for brokers that were offline when partitions moved away.


@pytest.mark.shows("C10")
def test_a_deletion_waits_for_a_broker_that_may_have_a_stray_log() -> None:
    """Kafka waits for replicas on dead brokers; a stray log occupies the topic's name as well (C10)."""
    driver = moved_away()

    driver.delete("orders")

    assert driver.cluster.deletions["orders"].blocked.startswith("brokers [2] were offline when partitions moved away")
    assert driver.sent(StopReplica) == []

    driver.start(2)

    assert "orders" not in driver.cluster.topics
    assert tp("orders-0") not in driver.brokers[2].logs


def test_a_new_topic_never_meets_the_log_of_an_earlier_topic() -> None:
    """All steps: moved away from a dead broker, deleted, the broker back, created again on it."""
    driver = moved_away()
    driver.delete("orders")
    assert driver.create("orders", [[1, 3]]).failure.code is ErrorCode.TOPIC_ALREADY_EXISTS

    driver.start(2)
    driver.create("orders", [[2, 3]])

    assert driver.state("orders-0") == State(2, 0, (2, 3))
    assert driver.cluster.refused_replicas == {}


def test_a_deletion_waits_for_a_live_broker_that_has_not_deleted_a_stray_log() -> None:
    """It got the request when it came back, and has not answered."""
    driver = moved_away()
    driver.holds_messages = True
    driver.start(2)
    driver.delete("orders")
    assert driver.cluster.deletions["orders"].waiting.keys() == {1, 2, 3}

    driver.holds_messages = False
    driver.settle()

    assert "orders" not in driver.cluster.topics
    assert driver.brokers[2].logs == {}


def test_a_deletion_does_not_wait_for_an_unregistered_broker() -> None:
    """UnregisterBroker ends the wait for a broker that never returns."""
    driver = moved_away()
    driver.delete("orders")

    assert driver.unregister(2) is None

    assert "orders" not in driver.cluster.topics
    assert driver.cluster.stray_replicas == {}


@pytest.mark.parametrize(("broker", "code"), [(1, ErrorCode.INVALID_REQUEST), (9, ErrorCode.BROKER_ID_NOT_REGISTERED)])
def test_a_live_broker_or_one_without_stray_logs_is_not_unregistered(broker: int, code: ErrorCode) -> None:
    """A live broker deletes its logs itself; a wrong id is an error."""
    driver = moved_away()

    failure = driver.unregister(broker)

    assert isinstance(failure, Failure)
    assert failure.code is code
    assert driver.cluster.stray_replicas != {}


# A replica that its broker refuses.


@pytest.mark.parametrize("error", [STALE, "UNKNOWN_SERVER_ERROR"])
def test_a_partition_that_its_leader_refuses_is_led_by_another_replica(error: str) -> None:
    """KIP-112's rules for a replica that its live broker neither leads nor follows; the ISR shrinks without it."""
    driver = cluster_with(THREE, {"orders": [[2, 3]]})
    driver.holds_messages = True
    topic_id = driver.cluster.topics["orders"].topic_id
    assert topic_id is not None
    epoch = driver.brokers[2].epoch

    driver.submit(
        zookeeper_events.LeaderAndIsrAnswered(2, epoch, (), (), {tp("orders-0"): error}, {"orders": topic_id})
    )

    assert driver.state("orders-0") == State(2, 0, (2, 3))

    driver.deliver(3)
    driver.answer(3)

    assert driver.state("orders-0") == State(3, 1, (3,))


def test_a_refused_replica_stays_out_of_the_isr_and_is_not_elected() -> None:
    """KIP-841's rule for replicas that cannot be in sync."""
    driver = with_stale_log(is_known_deleted=False)
    assert driver.cluster.refused_replicas == {driver.row("orders-0"): {2: STALE}}
    assert driver.state("orders-0") == State(3, 1, (3,))

    failure = driver.alter_isr("orders-0", (3, 2))
    driver.kill(3)

    assert isinstance(failure, Failure)
    assert failure.code is ErrorCode.INELIGIBLE_REPLICA
    assert driver.state("orders-0") == State(-1, 2, (3,))


def test_a_refused_partition_without_another_replica_keeps_its_state() -> None:
    """No other replica can lead; the refusal is shown."""
    driver = with_stale_log(is_known_deleted=False, assignment=(2,))

    assert driver.state("orders-0") == State(2, 0, (2,))
    assert driver.cluster.refused_replicas == {driver.row("orders-0"): {2: STALE}}


def test_nothing_is_written_if_all_replicas_refuse() -> None:
    """Another process wrote another topic id: brokers continue with their states, and a new leader would serve no requests."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    written = driver.written.topics["orders"]
    driver.written.topics["orders"] = replace(written, topic_id=driver.new_topic_id(), version=written.version + 1)

    driver.take_over()

    assert driver.state("orders-0") == State(1, 0, (1, 2, 3))
    assert driver.cluster.refused_replicas == {driver.row("orders-0"): {1: STALE, 2: STALE, 3: STALE}}
    assert driver.cluster.offline_replicas == {}


def test_the_only_accepted_replica_leads() -> None:
    """In any order of the answers."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    for broker_id in (1, 2):
        driver.brokers[broker_id].log_ids[tp("orders-0")] = driver.new_topic_id()

    driver.take_over()

    assert driver.state("orders-0") == State(3, 1, (3,))


def test_an_answer_about_an_earlier_topic_of_the_name_refuses_nothing() -> None:
    """It may be processed after that topic was deleted and another was created."""
    driver = cluster_with(THREE, {"orders": [[2, 3]]})
    earlier = {"orders": driver.new_topic_id()}

    driver.submit(
        zookeeper_events.LeaderAndIsrAnswered(2, driver.brokers[2].epoch, (), (), {tp("orders-0"): STALE}, earlier)
    )

    assert driver.cluster.refused_replicas == {}
    assert driver.state("orders-0") == State(2, 0, (2, 3))


def test_a_refused_replica_does_not_block_the_deletion_of_its_topic() -> None:
    """StopReplica deletes by name: the old log is deleted with the topic, and the name is free."""
    driver = with_stale_log(is_known_deleted=False)

    driver.delete("orders")
    driver.create("orders", [[2, 3]])

    assert driver.state("orders-0") == State(2, 0, (2, 3))


def test_a_refusal_ends_with_the_broker_incarnation() -> None:
    """The log may have been removed; if not, the next response reports it."""
    driver = with_stale_log(is_known_deleted=False)
    driver.brokers[2].logs.clear()
    driver.brokers[2].log_ids.clear()

    driver.bounce(2)

    assert driver.cluster.refused_replicas == {}
    assert driver.alter_isr("orders-0", (3, 2)).isr == (3, 2)


# A stale log is deleted where it is garbage for certain.


def test_the_log_of_a_topic_that_was_deleted_in_this_term_is_replaced() -> None:
    """The replica starts with an empty log and catches up."""
    driver = with_stale_log(is_known_deleted=True)

    (deleted,) = [message for message in driver.sent(StopReplica, 2) if message.delete]
    assert deleted.partitions == {tp("orders-0"): EPOCH_DURING_DELETE}
    assert driver.cluster.refused_replicas == {}
    assert driver.brokers[2].log_ids[tp("orders-0")] == driver.cluster.topics["orders"].topic_id
    assert driver.alter_isr("orders-0", (3, 2)).isr == (3, 2)


def test_a_log_of_unknown_origin_is_kept() -> None:
    """After a takeover it is unknown whether the log's topic was deleted: a manual edit may have removed its id."""
    driver = with_stale_log(is_known_deleted=False)

    assert not [message for message in driver.sent(StopReplica, 2) if message.delete]
    assert tp("orders-0") in driver.brokers[2].logs


def test_a_stale_log_is_kept_while_its_broker_is_the_only_one_in_the_isr() -> None:
    """The partition's state depends on that broker; an administrator has to decide."""
    driver = with_stale_log(is_known_deleted=True, assignment=(2,))

    assert not [message for message in driver.sent(StopReplica, 2) if message.delete]


def test_the_number_of_remembered_deleted_topics_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest ones are kept."""
    monkeypatch.setattr(cluster_module, "MAX_DELETED_TOPICS", 2)
    driver = cluster_with(THREE, {name: [[1]] for name in "abc"})

    for name in "abca":
        driver.delete(name)
        driver.create(name, [[1]])

    assert list(driver.cluster.deleted_topics) == ["c", "a"]


# Logs that a broker lists.


def lists_stray(driver: Driver) -> Driver:
    """Broker 2 still has the log of a partition that is on 1 and 3, for an unknown reason."""
    driver.start(2)
    driver.brokers[2].logs[tp("orders-0")] = 0
    driver.forget()
    return driver


def test_a_log_of_a_partition_assigned_to_other_brokers_is_deleted() -> None:
    """Left by a native controller, or known in an earlier term."""
    driver = lists_stray(moved_away())

    driver.find_strays(2, "orders-0")

    assert [message.partitions for message in driver.sent(StopReplica, 2)] == [{tp("orders-0"): 3}]
    assert driver.brokers[2].logs == {}
    assert driver.cluster.stray_replicas == {}


def test_a_listed_stray_log_counts_as_a_stray_replica_until_it_is_deleted() -> None:
    """A deletion waits for it, and a restarted broker gets the request again."""
    driver = lists_stray(moved_away())
    driver.holds_messages = True
    driver.find_strays(2, "orders-0")
    assert driver.cluster.stray_replicas == {driver.row("orders-0"): {2}}

    driver.bounce(2)
    driver.holds_messages = False
    driver.settle()

    assert driver.cluster.stray_replicas == {}
    assert driver.brokers[2].logs == {}


def test_a_log_of_a_topic_deleted_in_this_term_is_deleted() -> None:
    """Its name is remembered, and no such topic exists."""
    driver = moved_away()
    driver.unregister(2)
    driver.delete("orders")
    driver.start(2)

    driver.find_strays(2, "orders-0")

    assert driver.brokers[2].logs == {}


@pytest.mark.parametrize("broker", [1, 3])
def test_an_assigned_log_is_never_deleted(broker: int) -> None:
    """The current assignment is used, whatever an earlier list contained."""
    driver = moved_away()

    driver.find_strays(broker, "orders-0")

    assert driver.sent(StopReplica) == []


def test_a_list_of_an_earlier_broker_incarnation_deletes_nothing() -> None:
    """KIP-380: the list belongs to one registration."""
    driver = lists_stray(moved_away())
    epoch = driver.brokers[2].epoch
    driver.bounce(2)
    driver.forget()

    driver.submit(zookeeper_events.StrayLogsFound(2, epoch, (tp("orders-0"),)))

    assert driver.sent(StopReplica) == []


def test_listed_logs_are_classified() -> None:
    """Only logs that are certainly garbage are deleted."""
    driver = cluster_with(
        [1, 2, 3, 4], {name: [[1, 2]] for name in ("kept", "moving", "lagging", "deleting", "deleted")}
    )
    driver.delete("deleted")
    driver.reassign({"moving-0": [1, 4]})
    driver.alter_isr("lagging-0", (1,))
    driver.holds_answers = True
    driver.delete("deleting")

    found = {
        name: classify_log(driver.cluster, 3, tp(f"{name}-0"))
        for name in (*driver.cluster.topics, "deleted", "unknown")
    }

    assert found == {
        "kept": LogKind.UNASSIGNED,
        "moving": LogKind.NOT_STRAY,
        "lagging": LogKind.UNASSIGNED_UNHEALTHY,
        "deleting": LogKind.NOT_STRAY,
        "deleted": LogKind.DELETED_TOPIC,
        "unknown": LogKind.UNKNOWN,
    }
    assert classify_log(driver.cluster, 3, tp("kept-7")) is LogKind.UNKNOWN
    assert classify_log(driver.cluster, 4, tp("moving-0")) is LogKind.NOT_STRAY
    assert classify_log(driver.cluster, 1, tp("kept-0")) is LogKind.NOT_STRAY


# An ISR that names brokers outside the assignment.


@pytest.mark.shows("C2")
def test_an_isr_outside_the_replicas_is_corrected_after_a_takeover() -> None:
    """C2. A native controller writes the assignment first and the ISR later (KafkaController.updateCurrentReassignment)."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]], "led": [[3, 1, 2]]})
    driver.write_topic("orders", [[1, 2]])
    driver.write_topic("led", [[1, 2]])

    driver.take_over()

    assert driver.state_written("orders-0") == State(1, 1, (1, 2))
    assert driver.state_written("led-0") == State(1, 1, (1, 2))
    assert driver.cluster.corrected_rows == set()
    (sent,) = {message.partitions[tp("orders-0")].leader_epoch for message in driver.sent(LeaderAndIsr, 2)[-1:]}
    assert sent == 1


def test_a_corrected_isr_is_written_if_no_replica_can_lead() -> None:
    """The leader was not a replica, and the others are dead: no leader, and an ISR within the replicas."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", (1, 2, 3))
    driver.kill(1)
    driver.write_isr("orders-0", (2, 3))
    driver.brokers[2].is_up = False
    driver.write_topic("orders", [[2]])

    driver.take_over()

    assert driver.state_written("orders-0") == State(-1, 2, (2,))


def test_a_corrected_isr_requested_by_the_leader_is_written() -> None:
    """A correction only in memory is not written yet."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.write_topic("orders", [[1, 2]])
    driver.cluster = driver.written.take_place(1000)
    driver.written.load(driver.cluster, (broker.registration for broker in driver.brokers.values()))
    assert driver.cluster.corrected_rows == {driver.row("orders-0")}

    driver.alter_isr("orders-0", (1, 2))

    assert driver.state_written("orders-0").isr == (1, 2)
