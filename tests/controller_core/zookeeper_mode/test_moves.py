"""Reassignment (KIP-455): start, union until every target replica is in sync, completion (C9)."""

import pytest

from controller_core.decisions.reassignment import RunningMove, running_moves
from controller_core.model import NO_LEADER, events
from kafka_wire import ErrorCode, Failure
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr, StopReplica

FOUR = [1, 2, 3, 4]


@pytest.fixture
def driver() -> Driver:
    """Four brokers, a topic of one partition on brokers 1, 2 and 3; answers are held."""
    return cluster_with(FOUR, {"orders": [[1, 2, 3]]}, holds_answers=True)


def written_lists(driver: Driver, partition: int = 0) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return replicas, adding and removing as they are written."""
    topic = driver.written.topics["orders"]
    return topic.replicas[partition], topic.adding.get(partition, ()), topic.removing.get(partition, ())


def test_a_move_starts_with_the_union_written_and_sent_with_a_higher_epoch(driver: Driver) -> None:
    """KIP-455: target first, so that its first replica is preferred; all of the union replicate (C4, C9)."""
    assert driver.reassign({"orders-0": [2, 3, 4]}) == {"orders-0": None}
    assert written_lists(driver) == ((2, 3, 4, 1), (4,), (1,))
    assert driver.state("orders-0") == State(1, 1, (1, 2, 3))
    assert {to[0] for to, message in driver.messages if isinstance(message, LeaderAndIsr)} == {1, 2, 3, 4}
    assert [message.partitions[tp("orders-0")].is_new for message in driver.sent(LeaderAndIsr)] == [
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
def test_no_old_replica_is_removed_before_every_target_replica_is_in_sync() -> None:
    """C9: with two replicas to add, the first one in sync changes nothing."""
    driver = cluster_with([1, 2, 3, 4, 5], {"orders": [[1, 2, 3]]})
    driver.reassign({"orders-0": [3, 4, 5]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert driver.replicas("orders-0") == (3, 4, 5, 1, 2)
    assert driver.sent(StopReplica) == []

    driver.alter_isr("orders-0", [1, 2, 3, 4, 5])

    assert driver.replicas("orders-0") == (3, 4, 5)


@pytest.mark.shows("C9")
def test_a_move_waits_for_an_old_replica_of_the_target_that_is_out_of_sync(driver: Driver) -> None:
    """C9: every target replica, also one that was there before."""
    driver.alter_isr("orders-0", [1, 2])
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 4])

    assert driver.replicas("orders-0") == (2, 3, 4, 1)


def test_a_move_ends_with_leader_then_deletion_then_assignment(driver: Driver) -> None:
    """KafkaController.onPartitionReassignment, phase B: a leader within the target, requests to the target, deletion of the others, the written end."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.forget()
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert driver.state("orders-0") == State(2, 2, (2, 3, 4))
    assert driver.sent(StopReplica, broker_id=1)[0].partitions == {tp("orders-0"): 2}
    assert driver.sent(StopReplica, broker_id=1)[0].delete
    assert not driver.sent(LeaderAndIsr, broker_id=4)[0].partitions[tp("orders-0")].is_new
    kinds = [type(message) for _, message in driver.messages]
    assert kinds.index(StopReplica) == len(kinds) - 1
    assert written_lists(driver) == ((2, 3, 4, 1), (4,), (1,))

    driver.answer()

    assert written_lists(driver) == ((2, 3, 4), (), ())
    assert driver.cluster.moves == {}
    assert tp("orders-0") not in driver.brokers[1].logs


def test_a_leader_within_the_target_stays(driver: Driver) -> None:
    """moveReassignedPartitionLeaderToTargetReplicas: no unneeded election; the epoch grows nevertheless."""
    driver.reassign({"orders-0": [4, 1]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert driver.state("orders-0") == State(1, 2, (1, 4))


def test_a_leader_that_shuts_down_is_replaced_within_the_target(driver: Driver) -> None:
    """C8: like a leader outside the target."""
    driver.reassign({"orders-0": [1, 4]})
    driver.cluster.shutting_down.add(1)
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert driver.state("orders-0") == State(4, 2, (1, 4))


def test_a_move_may_only_remove_replicas(driver: Driver) -> None:
    """A smaller replication factor; the target is in sync at once."""
    driver.reassign({"orders-0": [3, 2]})

    assert driver.state("orders-0") == State(3, 1, (2, 3))

    driver.answer()

    assert written_lists(driver) == ((3, 2), (), ())


def test_a_move_may_only_add_replicas(driver: Driver) -> None:
    """A larger replication factor: no replica is deleted, so the end is written in the event in which the ISR has grown."""
    driver.reassign({"orders-0": [1, 2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert written_lists(driver) == ((1, 2, 3, 4), (), ())
    assert driver.sent(StopReplica) == []


def test_a_new_order_of_the_same_replicas_is_sent_and_done_at_once(driver: Driver) -> None:
    """KafkaController.isReassignmentComplete: nothing is added or removed, so the move waits for nothing."""
    driver.alter_isr("orders-0", [1, 2])
    driver.reassign({"orders-0": [3, 2, 1]})

    assert written_lists(driver) == ((3, 2, 1), (), ())
    assert driver.cluster.moves == {}
    assert driver.brokers[2].states[tp("orders-0")].replicas == (3, 2, 1)


def test_a_current_assignment_as_target_is_no_move(driver: Driver) -> None:
    """KIP-455: done, and nothing written."""
    assert driver.reassign({"orders-0": [1, 2, 3]}) == {"orders-0": None}
    assert driver.changes == []


def test_a_repeated_request_for_a_running_move_changes_nothing(driver: Driver) -> None:
    """Idempotent: the operator may repeat requests (O2)."""
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


@pytest.mark.parametrize(("target", "message"), REFUSALS)
def test_an_invalid_target_is_refused(driver: Driver, target: list[int], message: str) -> None:
    """KafkaController.validateReplicas: INVALID_REPLICA_ASSIGNMENT, nothing moved."""
    assert driver.reassign({"orders-0": target}) == {"orders-0": Failure(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)}
    assert driver.changes == []


def test_unknown_partitions_are_refused_independently_of_others(driver: Driver) -> None:
    """UNKNOWN_TOPIC_OR_PARTITION for each of them."""
    results = driver.reassign({"orders-7": [1], "ghost-0": [1], "orders-0": [2, 3, 4]})

    unknown = Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    assert results == {"orders-7": unknown, "ghost-0": unknown, "orders-0": None}


def test_a_dead_replica_may_stay_and_a_new_one_must_be_live(driver: Driver) -> None:
    """A plan may be made while a broker restarts."""
    driver.kill(3)

    assert driver.reassign({"orders-0": [2, 3, 4]})["orders-0"] is None


def test_a_replica_can_be_moved_away_from_a_dead_broker(driver: Driver) -> None:
    """The usual reason for a move: the broker does not answer, and the move does not wait for it."""
    driver.kill(1)
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [2, 3, 4])

    assert written_lists(driver) == ((2, 3, 4), (), ())


def test_a_move_does_not_wait_for_a_removed_replica_whose_broker_failed(driver: Driver) -> None:
    """It may never be back."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.kill(1)

    assert written_lists(driver) == ((2, 3, 4), (), ())


def test_a_removed_replica_is_deleted_again_after_its_broker_restarted(driver: Driver) -> None:
    """Otherwise its log would be stray."""
    driver.holds_messages = True
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.bounce(1)
    driver.holds_messages = False
    driver.settle()
    driver.answer()

    assert written_lists(driver) == ((2, 3, 4), (), ())
    assert tp("orders-0") not in driver.brokers[1].logs


def test_a_failed_deletion_of_a_removed_replica_does_not_delay_the_move(driver: Driver) -> None:
    """The failed disk is in the broker's log; the target is in service."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.answer(1, failing={"orders-0": "KAFKA_STORAGE_ERROR"})

    assert written_lists(driver) == ((2, 3, 4), (), ())


def test_a_move_continues_after_its_leader_failed(driver: Driver) -> None:
    """RepairPartitions elects within the union."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.kill(1)

    assert driver.state("orders-0") == State(2, 2, (2, 3))

    driver.alter_isr("orders-0", [2, 3, 4])

    assert written_lists(driver) == ((2, 3, 4), (), ())


def test_a_move_waits_for_an_added_replica_whose_broker_failed(driver: Driver) -> None:
    """C9: the union stays; when the broker is back, it gets its replica as a new one."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.kill(4)
    driver.forget()
    driver.start(4)

    assert driver.sent(LeaderAndIsr, broker_id=4)[0].partitions[tp("orders-0")].is_new

    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.answer()

    assert written_lists(driver) == ((2, 3, 4), (), ())


def test_a_move_waits_while_all_target_brokers_are_shutting_down(driver: Driver) -> None:
    """C8: none of them may lead."""
    driver.cluster.shutting_down.add(3)
    driver.reassign({"orders-0": [3]})

    assert driver.state("orders-0") == State(1, 1, (1, 2, 3))
    assert driver.sent(StopReplica) == []


def test_a_partition_that_never_had_a_leader_gets_one_by_a_move() -> None:
    """Its only replica is dead: the added one leads at once, since there are no records to lose."""
    driver = cluster_with([1, 2])
    driver.kill(2)
    driver.find("orders", [[2]])
    driver.reassign({"orders-0": [1]})

    assert driver.state("orders-0").leader == 1
    assert driver.written.topics["orders"].replicas == {0: (1,)}


@pytest.mark.shows("C7")
def test_a_partition_whose_in_sync_replicas_are_dead_is_not_led_by_an_added_one(driver: Driver) -> None:
    """C7: the dead replicas have the records; the move waits for them."""
    driver.alter_isr("orders-0", [1])
    driver.kill(1)
    driver.reassign({"orders-0": [2, 3, 4]})

    assert driver.state("orders-0").leader == NO_LEADER
    assert driver.state("orders-0").isr == (1,)
    assert driver.replicas("orders-0") == (2, 3, 4, 1)


def test_moves_of_several_partitions_are_written_once_per_topic() -> None:
    """One znode contains a topic's assignment: its version fences all moves of the topic."""
    driver = cluster_with(FOUR, {"orders": [[1], [2], [3]]})
    driver.reassign({"orders-0": [4], "orders-1": [4], "orders-2": [4]})

    assert driver.written.topics["orders"].version == 1


def test_a_refused_start_is_decided_again_on_the_written_state(driver: Driver) -> None:
    """Another process wrote the topic's znode."""
    driver.intrude(lambda: driver.write_topic("orders", [[1, 2, 3], [2, 3, 4]]))

    assert driver.reassign({"orders-0": [2, 3, 4]}) == {"orders-0": None}
    assert written_lists(driver) == ((2, 3, 4, 1), (4,), (1,))
    assert written_lists(driver, partition=1) == ((2, 3, 4), (), ())


@pytest.mark.shows("C9")
def test_a_refused_end_of_the_union_removes_nothing(driver: Driver) -> None:
    """propagation: StopReplica follows from the committed change and not from the decision (C9)."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.intrude(lambda: driver.write_isr("orders-0", [1, 2, 3]), commits=1)
    driver.forget()
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert driver.state("orders-0") == State(1, 1, (1, 2, 3))
    assert driver.replicas("orders-0") == (2, 3, 4, 1)
    assert driver.sent(StopReplica) == []


def test_an_isr_change_does_not_count_as_leader_and_isr(driver: Driver) -> None:
    """Move.stage: only LeaderAndIsr ends PLANNED, since UpdateMetadata makes no replica fetch."""
    driver.die_at(commits=1, after=False)
    driver.crashing(lambda: driver.reassign({"orders-0": [2, 3, 4]}))
    driver.crash = None
    driver.alter_isr("orders-0", [1, 2])
    driver.submit(events.AdvanceMoves())

    assert tp("orders-0") in driver.brokers[4].states
