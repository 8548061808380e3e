"""Moves and elections that are asked for in ZooKeeper itself: begun, taken out of their lists when done, gone on with.

Sources: KafkaController.processZkPartitionReassignment, maybeRemoveFromZkReassignment, onReplicaElection (ZkTriggered),
fetchPendingPreferredReplicaElections.
"""

import pytest

from controller_core.model import events
from controller_core.model.changes import ElectionRequestsProcessed, MovesStarted, PendingReassignmentRequestsChanged
from controller_core.model.ids import NO_EPOCH
from kafka_wire.errors import ErrorCode
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp

FOUR = [1, 2, 3, 4]


@pytest.fixture
def driver() -> Driver:
    """Four brokers, a topic of two partitions."""
    return cluster_with(FOUR, {"orders": [[1, 2], [2, 3]]})


def finish(driver: Driver, partition: str) -> None:
    """Let a running move come to its end: all of its replicas are in sync."""
    driver.alter_isr(partition, driver.replicas(partition))


def refused(driver: Driver) -> dict[str, ErrorCode]:
    """Why requested moves were refused."""
    lists = [change.refused for change in driver.changes if isinstance(change, PendingReassignmentRequestsChanged)]
    return {f"{name.topic}-{name.partition}": failure.code for found in lists for name, failure in found.items()}


def failed(driver: Driver) -> dict[str, ErrorCode]:
    """Why requested elections failed."""
    lists = [change.failed for change in driver.changes if isinstance(change, ElectionRequestsProcessed)]
    return {f"{name.topic}-{name.partition}": failure.code for found in lists for name, failure in found.items()}


def test_a_requested_move_runs_and_stays_in_the_list_until_it_is_done(driver: Driver) -> None:
    """The old tool verifies by the list: what stands there is under way."""
    driver.request_moves({"orders-0": [1, 4]})
    assert driver.requested() == {"orders-0": (1, 4)}
    finish(driver, "orders-0")

    assert driver.written.topics["orders"].replicas == {0: (1, 4), 1: (2, 3)}
    assert driver.requested() is None
    assert driver.cluster.reassignment_requests == {}


def test_each_partition_is_taken_out_when_it_is_done(driver: Driver) -> None:
    """removePartitionFromReassigningPartitions: the others stay; with the last one the list goes."""
    driver.request_moves({"orders-0": [1, 4], "orders-1": [2, 4]})
    finish(driver, "orders-1")
    assert driver.requested() == {"orders-0": (1, 4)}
    finish(driver, "orders-0")

    assert driver.requested() is None


def test_what_cannot_be_moved_is_taken_out_and_said(driver: Driver) -> None:
    """Each on its own: unknown, no such broker, nobody, one twice; the one that can be moved is."""
    driver.create("old", [[1, 2]])
    driver.holds_answers = True
    driver.delete("old")
    asked = {"orders-0": [1, 4], "ghost-0": [1], "orders-7": [1], "old-0": [2, 3], "orders-1": [2, 9]}
    driver.request_moves(asked)

    assert driver.requested() == {"orders-0": (1, 4)}
    assert refused(driver) == {
        "ghost-0": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "orders-7": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "old-0": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "orders-1": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    }


@pytest.mark.parametrize("target", [[], [1, 1], [1000], [2**31 - 1]])
def test_a_target_that_cannot_be_disturbs_nothing_else(driver: Driver, target: list[int]) -> None:
    """Written by hand; the other partition moves."""
    driver.request_moves({"orders-0": target, "orders-1": [2, 4]})

    assert driver.requested() == {"orders-1": (2, 4)}
    assert refused(driver) == {"orders-0": ErrorCode.INVALID_REPLICA_ASSIGNMENT}
    assert driver.state("orders-0") == State(1, 0, (1, 2))


def test_a_list_of_what_is_done_already_goes_at_once(driver: Driver) -> None:
    """Nothing is to be moved."""
    driver.request_moves({"orders-0": [1, 2]})

    assert driver.requested() is None
    assert refused(driver) == {}


def test_an_empty_list_goes_at_once(driver: Driver) -> None:
    """As one that could not be read."""
    driver.request_moves({})
    driver.request_elections()

    assert driver.requested() is None
    assert driver.written.election_requests is None


def test_what_is_added_to_the_list_is_begun(driver: Driver) -> None:
    """The list is a level, whoever wrote it last."""
    driver.request_moves({"orders-0": [1, 4]})
    driver.request_moves({"orders-0": [1, 4], "orders-1": [2, 4]})

    assert len(driver.cluster.moves) == 2
    assert len([change for change in driver.changes if isinstance(change, MovesStarted)]) == 2


def test_another_target_in_the_list_changes_the_move(driver: Driver) -> None:
    """As another AlterPartitionReassignments would."""
    driver.request_moves({"orders-0": [1, 4]})
    driver.request_moves({"orders-0": [1, 3]})
    assert driver.requested() == {"orders-0": (1, 3)}
    finish(driver, "orders-0")

    assert driver.replicas("orders-0") == (1, 3)


@pytest.mark.parametrize("target", [[1, 3], None], ids=["another target", "cancelled"])
def test_a_later_request_through_the_api_takes_the_place_of_one_in_the_list(
    driver: Driver, target: list[int] | None
) -> None:
    """KafkaController.processApiPartitionReassignment: the latest request counts. What is read again changes that no more."""
    driver.request_moves({"orders-0": [1, 4], "orders-1": [2, 4]})
    assert driver.reassign({"orders-0": target}) == {"orders-0": None}
    assert driver.requested() == {"orders-1": (2, 4)}
    driver.read_requests()
    finish(driver, "orders-0")

    assert driver.replicas("orders-0") == (1, *(target or [1, 2])[1:])


@pytest.mark.parametrize("after", [False, True])
def test_what_was_overtaken_is_not_begun_by_the_controller_that_takes_over(driver: Driver, after: bool) -> None:
    """It is taken out of the list before the later request is written."""
    driver.request_moves({"orders-0": [1, 4], "orders-1": [2, 4]})
    driver.die_at(commits=0, after=after)
    driver.crashing(lambda: driver.reassign({"orders-0": [1, 3]}))
    driver.take_over()

    assert ((1, 3) if after else (1, 4)) == driver.cluster.moves[driver.row("orders-0")].target
    assert ({"orders-1"} if after else {"orders-0", "orders-1"}) == set(driver.requested() or {})


def test_a_list_that_changed_when_one_was_overtaken_is_reviewed(driver: Driver) -> None:
    """Nothing is written over; the look that follows begins what is new, and not what was overtaken."""
    driver.request_moves({"orders-0": [1, 4]})
    other = events.ReassignmentRequestsRead({tp("orders-0"): (1, 4), tp("orders-1"): (2, 4)}, 1)

    def write() -> None:
        driver.written.reassignment_requests = other

    driver.intrude(write)
    assert driver.reassign({"orders-0": [1, 3]}) == {"orders-0": None}
    driver.read_requests()

    assert driver.requested() == {"orders-1": (2, 4)}
    assert driver.cluster.moves[driver.row("orders-0")].target == (1, 3)


def test_taking_the_list_away_takes_back_no_move(driver: Driver) -> None:
    """Kafka watches for the list's creation alone."""
    driver.request_moves({"orders-0": [1, 4]})
    driver.written.reassignment_requests = None
    driver.read_requests()
    assert driver.cluster.reassignment_requests == {}
    finish(driver, "orders-0")

    assert driver.replicas("orders-0") == (1, 4)


def test_a_controller_that_takes_over_goes_on_with_the_list(driver: Driver) -> None:
    """initializePartitionReassignments: what runs is gone on with, what was not begun is begun, what is done goes."""
    driver.request_moves({"orders-0": [1, 4]})
    driver.written.reassignment_requests = events.ReassignmentRequestsRead(
        {tp("orders-0"): (1, 4), tp("orders-1"): (2, 4)}, 5
    )
    driver.take_over()
    assert driver.requested() == {"orders-0": (1, 4), "orders-1": (2, 4)}
    finish(driver, "orders-0")
    driver.take_over()
    assert driver.requested() == {"orders-1": (2, 4)}
    finish(driver, "orders-1")

    assert driver.requested() is None


@pytest.mark.parametrize("commits", range(6))
@pytest.mark.parametrize("after", [False, True])
def test_a_controller_that_dies_on_the_way_leaves_nothing_behind(driver: Driver, commits: int, after: bool) -> None:
    """Whatever was written, the next controller brings it to its end."""
    driver.die_at(commits=commits, after=after)
    driver.crashing(lambda: (driver.request_moves({"orders-0": [1, 4], "ghost-0": [1]}), finish(driver, "orders-0")))
    driver.take_over()
    if driver.cluster.moves:
        finish(driver, "orders-0")

    assert driver.replicas("orders-0") == (1, 4)
    assert driver.requested() is None


@pytest.mark.parametrize("commits", range(6))
def test_a_lost_answer_leaves_nothing_behind(driver: Driver, commits: int) -> None:
    """The connection went, so that the watches say "look again"."""
    driver.lose_answer(commits)
    driver.request_moves({"orders-0": [1, 4], "ghost-0": [1]})
    driver.read_requests()
    finish(driver, "orders-0")
    driver.read_requests()

    assert driver.replicas("orders-0") == (1, 4)
    assert driver.requested() is None


def test_a_list_that_somebody_else_wrote_meanwhile_is_not_written_over(driver: Driver) -> None:
    """The version that was read must be the one that is there; the look that follows sees the rest."""
    driver.request_moves({"orders-0": [1, 4]})
    other = events.ReassignmentRequestsRead({tp("orders-0"): (1, 4), tp("orders-1"): (2, 4)}, 1)

    def write() -> None:
        driver.written.reassignment_requests = other

    driver.intrude(write)
    finish(driver, "orders-0")
    assert other == driver.written.reassignment_requests
    driver.read_requests()

    assert driver.requested() == {"orders-1": (2, 4)}


def test_the_list_of_a_topic_that_went_goes(driver: Driver) -> None:
    """Somebody removed the topic's znode by hand; the tick finds that its move is over."""
    driver.request_moves({"orders-0": [1, 4]})
    driver.written.remove("orders")
    driver.submit(events.TopicsRead((), ("orders",)))
    driver.submit(events.AdvanceMoves())

    assert driver.requested() is None


def test_preferred_leaders_are_elected_and_the_list_goes(driver: Driver) -> None:
    """onReplicaElection: whatever became of each partition, all of the list is done with."""
    driver.bounce(1)
    driver.alter_isr("orders-0", [2, 1])
    driver.forget()
    driver.request_elections("orders-0", "orders-1", "ghost-0")

    assert driver.state("orders-0") == State(1, 2, (2, 1))
    assert driver.written.election_requests is None
    assert failed(driver) == {"ghost-0": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_preferred_leader_that_cannot_be_had_is_said_and_the_list_goes(driver: Driver) -> None:
    """removePartitionsFromPreferredReplicaElection: "failed to complete"."""
    driver.bounce(1)
    driver.request_elections("orders-0")

    assert failed(driver) == {"orders-0": ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert driver.written.election_requests is None


@pytest.mark.parametrize("commits", range(2))
@pytest.mark.parametrize("after", [False, True])
def test_elections_are_held_by_the_controller_that_takes_over(driver: Driver, commits: int, after: bool) -> None:
    """fetchPendingPreferredReplicaElections: the list goes last, so that none is forgotten."""
    driver.bounce(1)
    driver.alter_isr("orders-0", [2, 1])
    driver.die_at(commits=commits, after=after)
    driver.crashing(lambda: driver.request_elections("orders-0"))
    driver.take_over()

    assert driver.state("orders-0").leader == 1
    assert driver.written.election_requests is None


def test_elections_refused_in_part_are_decided_anew_and_said_once(driver: Driver) -> None:
    """C6: the ISR changed just before."""
    driver.bounce(1)
    driver.alter_isr("orders-0", [2, 1])
    driver.forget()
    driver.intrude(lambda: driver.write_isr("orders-0", [2]))
    driver.request_elections("orders-0")

    assert driver.state("orders-0") == State(2, 1, (2,))
    assert len([change for change in driver.changes if isinstance(change, ElectionRequestsProcessed)]) == 1


def test_nothing_is_known_of_a_list_where_there_is_none(driver: Driver) -> None:
    """The first look of most controllers."""
    driver.submit(events.ReassignmentRequestsRead({}, NO_EPOCH))

    assert driver.changes == []
