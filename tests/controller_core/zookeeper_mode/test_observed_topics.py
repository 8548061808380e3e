"""Topics written by other processes: brokers create topics, and treat the controller as a broker."""

import pytest

from controller_core.model import events, zookeeper_events
from kafka_wire import ErrorCode
from tests.controller_core.decisions.driver import CONTROLLER, State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr

THREE = [1, 2, 3]


def test_an_auto_created_topic_becomes_online() -> None:
    """Protocol notes, Z70: the broker writes config and assignment; the controller's watch does the rest."""
    driver = cluster_with(THREE)
    driver.find("orders", [[1, 2], [2, 3]])

    assert driver.state("orders-0") == State(1, 0, (1, 2))
    assert driver.state("orders-1") == State(2, 0, (2, 3))


def test_an_auto_created_assignment_with_the_controllers_id_is_rewritten_before_it_is_online() -> None:
    """Protocol notes, Z22: no assignment contains the controller's id; the least loaded live broker replaces it."""
    driver = cluster_with(THREE)
    driver.find("orders", [[1, CONTROLLER], [CONTROLLER, 2]])

    assert driver.written.topics["orders"].replicas == {0: (1, 3), 1: (1, 2)}
    assert driver.state("orders-1") == State(1, 0, (1, 2))


def test_a_partition_without_a_broker_to_replace_the_controller_has_one_replica_less() -> None:
    """Protocol notes, Z22: fewer replicas are better than one that does not exist."""
    driver = cluster_with([1])
    driver.find("orders", [[1, CONTROLLER]])

    assert driver.written.topics["orders"].replicas == {0: (1,)}


def test_a_partition_assigned_only_to_the_controller_gets_a_broker_as_soon_as_one_is_live() -> None:
    """A partition needs a replica: it is repaired, and online, when a broker registers."""
    driver = cluster_with([1])
    driver.kill(1)
    driver.find("orders", [[CONTROLLER]])
    driver.start(1)

    assert driver.written.topics["orders"].replicas == {0: (1,)}
    assert driver.state("orders-0") == State(1, 1, (1,))


def test_an_assignment_that_cannot_be_repaired_is_not_rewritten() -> None:
    """A check that cannot repair anything writes nothing."""
    driver = cluster_with([1])
    driver.kill(1)
    driver.find("orders", [[CONTROLLER]])
    driver.forget()
    for event in (events.RepairPartitions(), zookeeper_events.RepairAssignments(), events.AdvanceMoves()):
        driver.submit(event)

    assert driver.changes == []


def test_a_partition_in_service_is_moved_away_from_the_controllers_id() -> None:
    """Found at a takeover: the new replica joins the ISR before the id is removed (C9)."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.write_topic("orders", [[1, 2, CONTROLLER]])
    driver.take_over()

    assert driver.replicas("orders-0") == (1, 2, 3, CONTROLLER)

    driver.alter_isr("orders-0", [1, 2, 3])

    assert driver.written.topics["orders"].replicas == {0: (1, 2, 3)}
    assert driver.cluster.moves == {}


def test_no_move_can_target_or_keep_the_controllers_id() -> None:
    """Protocol notes, Z22: a tool may plan from an assignment that contained it, or cancel its repair."""
    driver = cluster_with(THREE, {"orders": [[1]]})
    driver.write_topic("orders", [[1, CONTROLLER]])
    driver.take_over()
    assert driver.replicas("orders-0") == (1, 2, CONTROLLER)

    assert driver.reassign({"orders-0": [3, CONTROLLER]})["orders-0"].code == ErrorCode.INVALID_REPLICA_ASSIGNMENT

    driver.reassign({"orders-0": None})

    assert driver.written.topics["orders"].replicas == {0: (1,)}


def test_a_topic_assigned_to_the_controllers_id_can_be_deleted() -> None:
    """No broker with that id ever answers."""
    driver = cluster_with([1], {"orders": [[1]]})
    driver.write_topic("orders", [[1, CONTROLLER]])
    driver.written.deletions.append("orders")
    driver.take_over()

    assert driver.written.topics == {}


def test_a_topic_that_no_longer_exists_is_removed() -> None:
    """Its znodes were deleted manually."""
    driver = cluster_with(THREE, {"orders": [[1, 2]], "others": [[1, 2]]})
    driver.reassign({"orders-0": [3]})
    driver.delete("orders")
    driver.written.remove("orders")
    driver.submit(zookeeper_events.TopicsRead((), ("orders",)))
    driver.kill(1)

    assert (set(driver.cluster.topics), driver.cluster.moves) == ({"others"}, {})
    assert driver.state("others-0") == State(2, 1, (2,))


def test_a_topic_deleted_and_created_again_between_two_reads_is_new() -> None:
    """Its id differs: nothing of the old one is used, and the broker that has the old log refuses the replica."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.written.remove("orders")
    driver.write_topic("orders", [[3, 1]])
    driver.submit(zookeeper_events.TopicsRead((driver.written.record("orders"),), ("orders",)))

    assert driver.state("orders-0") == State(3, 1, (3,))
    assert driver.cluster.refused_at(driver.row("orders-0")) == {1}
    assert driver.written.topics["orders"].topic_id == driver.cluster.topics["orders"].topic_id


def test_a_known_topic_is_not_added_twice() -> None:
    """Reads are levels; a late one changes nothing."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.submit(zookeeper_events.TopicsRead((driver.written.record("orders"),), ("ghost",)))

    assert driver.changes == []


def test_a_topic_found_during_a_move_continues_it() -> None:
    """C9: the written lists are sufficient."""
    driver = cluster_with(THREE)
    driver.write_topic("orders", [[3, 1, 2]], adding={0: (3,)}, removing={0: (2,)})
    driver.submit(zookeeper_events.TopicsRead((driver.written.record("orders"),), ()))

    assert driver.written.topics["orders"].replicas == {0: (3, 1)}


def test_a_new_order_of_replicas_is_sent_to_brokers() -> None:
    """The written order applies: the first replica is the preferred one from now on."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.write_partition("orders", 0, [2, 1])
    driver.read_assignments()

    assert driver.replicas("orders-0") == (2, 1)
    assert driver.state("orders-0") == State(1, 1, (1, 2))
    assert [message.partitions[tp("orders-0")].replicas for message in driver.sent(LeaderAndIsr)[-2:]] == [(2, 1)] * 2


@pytest.mark.shows("C10", "D3")
def test_a_new_order_of_replicas_does_not_resurrect_a_deleted_topic() -> None:
    """C10: brokers have been sent the deletion; a new assignment starts nothing."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.holds_answers = True
    driver.delete("orders")
    driver.write_partition("orders", 0, [2, 1])
    driver.forget()
    driver.read_assignments()

    assert driver.sent(LeaderAndIsr) == []
    assert driver.cluster.moves == {}

    driver.answer()

    assert driver.written.topics == {}
    assert driver.cluster.topics == {}
