"""Topics that somebody else wrote: brokers create some by themselves, and know the controller as one of them."""

import pytest

from controller_core.model import events
from kafka_wire.errors import ErrorCode
from tests.controller_core.decisions.driver import CONTROLLER, State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr

THREE = [1, 2, 3]


def test_an_auto_created_topic_becomes_online() -> None:
    """Protocol notes, Z70: the broker writes config and assignment, the controller's watch does the rest."""
    driver = cluster_with(THREE)
    driver.find("orders", [[1, 2], [2, 3]])

    assert driver.state("orders-0") == State(1, 0, (1, 2))
    assert driver.state("orders-1") == State(2, 0, (2, 3))


def test_an_auto_created_assignment_that_names_the_controller_is_written_again_before_it_is_online() -> None:
    """Protocol notes, Z22: no assignment ever names the controller's id; the least loaded live broker takes its place."""
    driver = cluster_with(THREE)
    driver.find("orders", [[1, CONTROLLER], [CONTROLLER, 2]])

    assert driver.written.topics["orders"].replicas == {0: (1, 3), 1: (1, 2)}
    assert driver.state("orders-1") == State(1, 0, (1, 2))


def test_a_partition_that_finds_no_broker_in_the_controllers_place_has_one_replica_less() -> None:
    """Protocol notes, Z22: fewer replicas are better than one that does not exist."""
    driver = cluster_with([1])
    driver.find("orders", [[1, CONTROLLER]])

    assert driver.written.topics["orders"].replicas == {0: (1,)}


def test_a_partition_of_the_controller_alone_gets_a_broker_as_soon_as_one_lives() -> None:
    """A partition needs a replica: it is repaired, and online, when a broker comes."""
    driver = cluster_with([1])
    driver.kill(1)
    driver.find("orders", [[CONTROLLER]])
    driver.start(1)

    assert driver.written.topics["orders"].replicas == {0: (1,)}
    assert driver.state("orders-0") == State(1, 1, (1,))


def test_an_assignment_that_cannot_be_repaired_is_not_written_again_and_again() -> None:
    """A look that finds nothing to mend writes nothing."""
    driver = cluster_with([1])
    driver.kill(1)
    driver.find("orders", [[CONTROLLER]])
    driver.forget()
    for event in (events.RepairPartitions(), events.RepairAssignments(), events.AdvanceMoves()):
        driver.submit(event)

    assert driver.changes == []


def test_a_partition_in_service_is_moved_away_from_the_controllers_id() -> None:
    """Found at a take-over: the new replica joins the ISR before the name goes (C9)."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.write_topic("orders", [[1, 2, CONTROLLER]])
    driver.take_over()

    assert driver.replicas("orders-0") == (1, 2, 3, CONTROLLER)

    driver.alter_isr("orders-0", [1, 2, 3])

    assert driver.written.topics["orders"].replicas == {0: (1, 2, 3)}
    assert driver.cluster.moves == {}


def test_nobody_can_move_a_partition_to_the_controllers_id_nor_keep_it_there() -> None:
    """Protocol notes, Z22: a tool that plans from an assignment that named it, or cancels its repair."""
    driver = cluster_with(THREE, {"orders": [[1]]})
    driver.write_topic("orders", [[1, CONTROLLER]])
    driver.take_over()
    assert driver.replicas("orders-0") == (1, 2, CONTROLLER)

    assert driver.reassign({"orders-0": [3, CONTROLLER]})["orders-0"].code == ErrorCode.INVALID_REPLICA_ASSIGNMENT

    driver.reassign({"orders-0": None})

    assert driver.written.topics["orders"].replicas == {0: (1,)}


def test_a_topic_that_names_the_controller_can_be_deleted() -> None:
    """No broker of that id will ever answer."""
    driver = cluster_with([1], {"orders": [[1]]})
    driver.write_topic("orders", [[1, CONTROLLER]])
    driver.written.deletions.append("orders")
    driver.take_over()

    assert driver.written.topics == {}


def test_a_topic_that_vanished_is_forgotten() -> None:
    """Somebody deleted its znodes by hand: nothing is left to lead."""
    driver = cluster_with(THREE, {"orders": [[1, 2]], "others": [[1, 2]]})
    driver.reassign({"orders-0": [3]})
    driver.delete("orders")
    driver.written.remove("orders")
    driver.submit(events.TopicsRead((), ("orders",)))
    driver.kill(1)

    assert (set(driver.cluster.topics), driver.cluster.moves) == ({"others"}, {})
    assert driver.state("others-0") == State(2, 1, (2,))


def test_a_topic_that_vanished_and_came_again_between_two_reads_is_a_new_one() -> None:
    """Its id is another: nothing of the old one counts, and the broker that has the old one's log refuses the replica."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.written.remove("orders")
    driver.write_topic("orders", [[3, 1]])
    driver.submit(events.TopicsRead((driver.written.record("orders"),), ("orders",)))

    assert driver.state("orders-0") == State(3, 1, (3,))
    assert driver.cluster.refused_at(driver.row("orders-0")) == {1}
    assert driver.written.topics["orders"].topic_id == driver.cluster.topics["orders"].topic_id


def test_a_topic_that_is_known_is_not_taken_in_twice() -> None:
    """events: reads are levels; one that comes late changes nothing."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.submit(events.TopicsRead((driver.written.record("orders"),), ("ghost",)))

    assert driver.changes == []


def test_a_topic_that_is_found_in_the_middle_of_a_move_goes_on_with_it() -> None:
    """C9: what is written is enough to go on."""
    driver = cluster_with(THREE)
    driver.write_topic("orders", [[3, 1, 2]], adding={0: (3,)}, removing={0: (2,)})
    driver.submit(events.TopicsRead((driver.written.record("orders"),), ()))

    assert driver.written.topics["orders"].replicas == {0: (3, 1)}


def test_replicas_in_another_order_are_told_to_brokers() -> None:
    """What is written counts: the first replica is the preferred one from now on."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.write_partition("orders", 0, [2, 1])
    driver.read_assignments()

    assert driver.replicas("orders-0") == (2, 1)
    assert driver.state("orders-0") == State(1, 1, (1, 2))
    assert [message.partitions[tp("orders-0")].replicas for message in driver.told(LeaderAndIsr)[-2:]] == [(2, 1)] * 2


@pytest.mark.shows("C10", "D3")
def test_replicas_in_another_order_bring_no_deleted_topic_back_to_life() -> None:
    """C10: brokers have been told that it is gone; whatever somebody writes of it begins nothing any more."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.holds_answers = True
    driver.delete("orders")
    driver.write_partition("orders", 0, [2, 1])
    driver.forget()
    driver.read_assignments()

    assert driver.told(LeaderAndIsr) == []
    assert driver.cluster.moves == {}

    driver.answer()

    assert driver.written.topics == {}
    assert driver.cluster.topics == {}
