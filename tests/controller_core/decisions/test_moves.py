"""Reassignment (KIP-455): started, union until every target replica is in sync, completed (C9)."""

import pytest

from controller_core.decisions.reassignment import RunningMove, running_moves
from controller_core.model import events
from controller_core.model.ids import NO_LEADER
from kafka_node.errors import Failure
from kafka_wire.errors import ErrorCode
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr, StopReplica

FOUR = [1, 2, 3, 4]


@pytest.fixture
def driver() -> Driver:
    """Four brokers, a topic of one partition on brokers 1, 2 and 3; answers are held."""
    driver = cluster_with(FOUR, {"orders": [[1, 2, 3]]})
    driver.holds_answers = True
    return driver


def written_lists(driver: Driver, partition: int = 0) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Replicas, adding, removing as they are written."""
    topic = driver.written.topics["orders"]
    return topic.replicas[partition], topic.adding.get(partition, ()), topic.removing.get(partition, ())


def test_a_move_begins_with_the_union_written_and_told_under_a_higher_epoch(driver: Driver) -> None:
    """KIP-455: target first, so that its first replica is preferred; all of the union replicate (C4, C9)."""
    assert driver.reassign({"orders-0": [2, 3, 4]}) == {"orders-0": None}
    assert written_lists(driver) == ((2, 3, 4, 1), (4,), (1,))
    assert driver.state("orders-0") == State(1, 1, (1, 2, 3))
    assert {to[0] for to, message in driver.messages if isinstance(message, LeaderAndIsr)} == {1, 2, 3, 4}
    assert [message.partitions[tp("orders-0")].is_new for message in driver.told(LeaderAndIsr)] == [
        False,
        False,
        False,
        True,
    ]


def test_a_running_move_is_listed(driver: Driver) -> None:
    """ListPartitionReassignments: replicas, adding, removing."""
    driver.reassign({"orders-0": [2, 3, 4]})

    expected = [RunningMove(tp("orders-0"), replicas=(2, 3, 4, 1), adding=(4,), removing=(1,))]
    assert running_moves(driver.cluster, None) == running_moves(driver.cluster, [tp("orders-0")]) == expected
    assert running_moves(driver.cluster, [tp("orders-1")]) == []


@pytest.mark.shows("C9")
def test_no_old_replica_goes_before_every_target_replica_is_in_sync() -> None:
    """C9: with two replicas to add, the first one in sync changes nothing."""
    driver = cluster_with([1, 2, 3, 4, 5], {"orders": [[1, 2, 3]]})
    driver.reassign({"orders-0": [3, 4, 5]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert driver.replicas("orders-0") == (3, 4, 5, 1, 2)
    assert driver.told(StopReplica) == []

    driver.alter_isr("orders-0", [1, 2, 3, 4, 5])

    assert driver.replicas("orders-0") == (3, 4, 5)


@pytest.mark.shows("C9")
def test_an_old_replica_out_of_sync_is_waited_for_when_it_stays(driver: Driver) -> None:
    """C9: EVERY target replica, also one that was there before."""
    driver.alter_isr("orders-0", [1, 2])
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 4])

    assert driver.replicas("orders-0") == (2, 3, 4, 1)


def test_the_end_of_a_move_leader_then_deletion_then_the_assignment(driver: Driver) -> None:
    """KafkaController.onPartitionReassignment, phase B: a leader of the target, the target told, the others deleted, the end written."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.forget()
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert driver.state("orders-0") == State(2, 2, (2, 3, 4))
    assert driver.told(StopReplica, broker_id=1)[0].partitions == {tp("orders-0"): 2}
    assert driver.told(StopReplica, broker_id=1)[0].delete
    assert not driver.told(LeaderAndIsr, broker_id=4)[0].partitions[tp("orders-0")].is_new
    kinds = [type(message) for _, message in driver.messages]
    assert kinds.index(StopReplica) == len(kinds) - 1
    assert written_lists(driver) == ((2, 3, 4, 1), (4,), (1,))

    driver.answer()

    assert written_lists(driver) == ((2, 3, 4), (), ())
    assert driver.cluster.moves == {}
    assert tp("orders-0") not in driver.brokers[1].logs


def test_a_leader_within_the_target_leads_on(driver: Driver) -> None:
    """moveReassignedPartitionLeaderToTargetReplicas: no election where none is needed; the epoch grows all the same."""
    driver.reassign({"orders-0": [4, 1]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert driver.state("orders-0") == State(1, 2, (1, 4))


def test_a_leader_on_its_way_out_hands_over_within_the_target(driver: Driver) -> None:
    """C8: it is replaced like one that is not of the target."""
    driver.reassign({"orders-0": [1, 4]})
    driver.cluster.shutting_down.add(1)
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert driver.state("orders-0") == State(4, 2, (1, 4))


def test_replicas_can_be_taken_away_without_any_being_added(driver: Driver) -> None:
    """A smaller replication factor; the target is in sync at once."""
    driver.reassign({"orders-0": [3, 2]})

    assert driver.state("orders-0") == State(3, 1, (2, 3))

    driver.answer()

    assert written_lists(driver) == ((3, 2), (), ())


def test_replicas_can_be_added_without_any_being_taken_away(driver: Driver) -> None:
    """A larger replication factor: nobody has to delete, so the end is written in the turn in which the ISR has grown."""
    driver.reassign({"orders-0": [1, 2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert written_lists(driver) == ((1, 2, 3, 4), (), ())
    assert driver.told(StopReplica) == []


def test_another_order_of_the_same_replicas_is_told_and_done_at_once(driver: Driver) -> None:
    """KafkaController.isReassignmentComplete: nothing is added or removed, so nothing is waited for."""
    driver.alter_isr("orders-0", [1, 2])
    driver.reassign({"orders-0": [3, 2, 1]})

    assert written_lists(driver) == ((3, 2, 1), (), ())
    assert driver.cluster.moves == {}
    assert driver.brokers[2].states[tp("orders-0")].replicas == (3, 2, 1)


def test_a_target_that_is_there_already_is_no_move(driver: Driver) -> None:
    """KIP-455: done, and nothing written."""
    assert driver.reassign({"orders-0": [1, 2, 3]}) == {"orders-0": None}
    assert driver.changes == []


def test_a_running_move_asked_for_again_goes_on(driver: Driver) -> None:
    """Idempotent: the operator may ask as often as it likes (O2)."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.forget()

    assert driver.reassign({"orders-0": [2, 3, 4]}) == {"orders-0": None}
    assert driver.changes == []


REFUSALS: list[tuple[list[int], str]] = [
    ([], "Empty replica list specified in partition reassignment."),
    ([1, 2, 2], "Duplicate replica ids in partition reassignment replica list: [1, 2, 2]"),
    ([1, -5], "Invalid broker id in replica list: [1, -5]"),
    (
        [2, 3, 9],
        (
            "Replica assignment has brokers that are not alive. Replica list: [2, 3, 9], "
            "not alive: [9], live broker list: [1, 2, 3, 4]"
        ),
    ),
]


@pytest.mark.parametrize(("target", "words"), REFUSALS)
def test_a_target_that_cannot_be_is_refused(driver: Driver, target: list[int], words: str) -> None:
    """KafkaController.validateReplicas: INVALID_REPLICA_ASSIGNMENT, nothing moved."""
    assert driver.reassign({"orders-0": target}) == {"orders-0": Failure(ErrorCode.INVALID_REPLICA_ASSIGNMENT, words)}
    assert driver.changes == []


def test_unknown_partitions_are_refused_and_stop_no_other(driver: Driver) -> None:
    """UNKNOWN_TOPIC_OR_PARTITION, each target on its own."""
    results = driver.reassign({"orders-7": [1], "ghost-0": [1], "orders-0": [2, 3, 4]})

    unknown = Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    assert results == {"orders-7": unknown, "ghost-0": unknown, "orders-0": None}


def test_a_dead_replica_may_stay_and_a_new_one_must_live(driver: Driver) -> None:
    """Only replicas that are new must be alive: a plan may be made while a broker restarts."""
    driver.kill(3)

    assert driver.reassign({"orders-0": [2, 3, 4]})["orders-0"] is None


def test_a_dead_broker_can_be_moved_away_from(driver: Driver) -> None:
    """The usual reason to move: it does not answer, and nobody waits for it."""
    driver.kill(1)
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [2, 3, 4])

    assert written_lists(driver) == ((2, 3, 4), (), ())


def test_a_removed_broker_that_dies_before_it_answered_is_not_waited_for(driver: Driver) -> None:
    """It may never be back."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.kill(1)

    assert written_lists(driver) == ((2, 3, 4), (), ())


def test_a_removed_broker_that_bounces_before_it_answered_is_told_again(driver: Driver) -> None:
    """reassignment: a log left behind is found by nobody."""
    driver.holds_messages = True
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.bounce(1)
    driver.holds_messages = False
    driver.settle()
    driver.answer()

    assert written_lists(driver) == ((2, 3, 4), (), ())
    assert tp("orders-0") not in driver.brokers[1].logs


def test_a_removed_broker_that_cannot_delete_does_not_hold_up_the_move(driver: Driver) -> None:
    """A failed disk is in the broker's own log; the target is in service."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.answer(1, failing={"orders-0": "KAFKA_STORAGE_ERROR"})

    assert written_lists(driver) == ((2, 3, 4), (), ())


def test_a_leader_that_dies_in_the_middle_is_replaced_and_the_move_goes_on(driver: Driver) -> None:
    """RepairPartitions elects within the union."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.kill(1)

    assert driver.state("orders-0") == State(2, 2, (2, 3))

    driver.alter_isr("orders-0", [2, 3, 4])

    assert written_lists(driver) == ((2, 3, 4), (), ())


def test_an_added_broker_that_dies_is_waited_for_and_told_anew_when_it_is_back(driver: Driver) -> None:
    """C9: the union stays; the broker hears of its replica as a new one."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.kill(4)
    driver.forget()
    driver.start(4)

    assert driver.told(LeaderAndIsr, broker_id=4)[0].partitions[tp("orders-0")].is_new

    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.answer()

    assert written_lists(driver) == ((2, 3, 4), (), ())


def test_a_target_that_is_on_its_way_out_as_a_whole_is_waited_for(driver: Driver) -> None:
    """C8: there is nobody in it who may lead."""
    driver.cluster.shutting_down.add(3)
    driver.reassign({"orders-0": [3]})

    assert driver.state("orders-0") == State(1, 1, (1, 2, 3))
    assert driver.told(StopReplica) == []


def test_a_partition_that_never_had_a_leader_gets_one_by_being_moved() -> None:
    """Its only replica is dead: the added one leads at once, since there is nothing to lose."""
    driver = cluster_with([1, 2])
    driver.kill(2)
    driver.find("orders", [[2]])
    driver.reassign({"orders-0": [1]})

    assert driver.state("orders-0").leader == 1
    assert driver.written.topics["orders"].replicas == {0: (1,)}


@pytest.mark.shows("C7")
def test_a_partition_whose_in_sync_replicas_are_dead_is_not_led_by_an_added_one(driver: Driver) -> None:
    """C7: what the dead ones hold counts; the move waits for them."""
    driver.alter_isr("orders-0", [1])
    driver.kill(1)
    driver.reassign({"orders-0": [2, 3, 4]})

    assert driver.state("orders-0").leader == NO_LEADER
    assert driver.state("orders-0").isr == (1,)
    assert driver.replicas("orders-0") == (2, 3, 4, 1)


def test_moves_of_several_partitions_are_written_once_a_topic() -> None:
    """One znode holds a topic's assignment: its version is the fence of all of its moves."""
    driver = cluster_with(FOUR, {"orders": [[1], [2], [3]]})
    driver.reassign({"orders-0": [4], "orders-1": [4], "orders-2": [4]})

    assert driver.written.topics["orders"].version == 1


def test_a_refused_start_is_decided_anew_on_what_is_written(driver: Driver) -> None:
    """Somebody else wrote the topic's znode meanwhile."""
    driver.intrude(lambda: driver.write_topic("orders", [[1, 2, 3], [2, 3, 4]]))

    assert driver.reassign({"orders-0": [2, 3, 4]}) == {"orders-0": None}
    assert written_lists(driver) == ((2, 3, 4, 1), (4,), (1,))
    assert written_lists(driver, partition=1) == ((2, 3, 4), (), ())


@pytest.mark.shows("C9")
def test_a_refused_end_of_the_union_removes_nothing(driver: Driver) -> None:
    """propagation: StopReplica follows from what is written and never from the wish (C9)."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.intrude(lambda: driver.write_isr("orders-0", [1, 2, 3]), commits=1)
    driver.forget()
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert driver.state("orders-0") == State(1, 1, (1, 2, 3))
    assert driver.replicas("orders-0") == (2, 3, 4, 1)
    assert driver.told(StopReplica) == []


def test_an_isr_answer_does_not_count_as_telling_the_replicas(driver: Driver) -> None:
    """Move.stage: PLANNED ends with LeaderAndIsr alone, since UpdateMetadata makes no replica fetch."""
    driver.die_at(commits=1, after=False)
    driver.crashing(lambda: driver.reassign({"orders-0": [2, 3, 4]}))
    driver.crash = None
    driver.alter_isr("orders-0", [1, 2])
    driver.submit(events.AdvanceMoves())

    assert tp("orders-0") in driver.brokers[4].states
