"""Reassignments and elections requested through ZooKeeper: started, removed from their lists when done, continued after a takeover.

Sources: KafkaController.processZkPartitionReassignment, maybeRemoveFromZkReassignment, onReplicaElection (ZkTriggered),
fetchPendingPreferredReplicaElections.
"""

import pytest

from controller_core.model import NO_EPOCH, events, zookeeper_events
from controller_core.model.zookeeper_changes import (
    ElectionRequestsProcessed,
    MovesStarted,
    PendingReassignmentRequestsChanged,
)
from kafka_wire import ErrorCode
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp

FOUR = [1, 2, 3, 4]


@pytest.fixture
def driver() -> Driver:
    """Four brokers, a topic of two partitions."""
    return cluster_with(FOUR, {"orders": [[1, 2], [2, 3]]})


def finish(driver: Driver, partition: str) -> None:
    """Finish a running move: all its replicas come into sync."""
    driver.alter_isr(partition, driver.replicas(partition))


def refused(driver: Driver) -> dict[str, ErrorCode]:
    """Return why requested moves were refused."""
    lists = [change.refused for change in driver.changes if isinstance(change, PendingReassignmentRequestsChanged)]
    return {f"{name.topic}-{name.partition}": failure.code for found in lists for name, failure in found.items()}


def failed(driver: Driver) -> dict[str, ErrorCode]:
    """Return why requested elections failed."""
    lists = [change.failed for change in driver.changes if isinstance(change, ElectionRequestsProcessed)]
    return {f"{name.topic}-{name.partition}": failure.code for found in lists for name, failure in found.items()}


def test_a_requested_move_runs_and_stays_in_the_list_until_it_is_done(driver: Driver) -> None:
    """The old tool verifies by the list: listed moves are running."""
    driver.request_moves({"orders-0": [1, 4]})
    assert driver.requested() == {"orders-0": (1, 4)}
    finish(driver, "orders-0")

    assert driver.written.topics["orders"].replicas == {0: (1, 4), 1: (2, 3)}
    assert driver.requested() is None
    assert driver.cluster.reassignment_requests == {}


def test_each_partition_is_removed_from_the_list_when_it_is_done(driver: Driver) -> None:
    """removePartitionFromReassigningPartitions: the others stay; the list is deleted with the last one."""
    driver.request_moves({"orders-0": [1, 4], "orders-1": [2, 4]})
    finish(driver, "orders-1")
    assert driver.requested() == {"orders-0": (1, 4)}
    finish(driver, "orders-0")

    assert driver.requested() is None


def test_invalid_requests_are_removed_and_reported(driver: Driver) -> None:
    """Independently of each other: unknown partition, unknown broker, empty list, duplicate broker; the valid request starts."""
    driver.create("old", [[1, 2]])
    driver.holds_answers = True
    driver.delete("old")
    requested = {"orders-0": [1, 4], "ghost-0": [1], "orders-7": [1], "old-0": [2, 3], "orders-1": [2, 9]}
    driver.request_moves(requested)

    assert driver.requested() == {"orders-0": (1, 4)}
    assert refused(driver) == {
        "ghost-0": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "orders-7": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "old-0": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "orders-1": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    }


@pytest.mark.parametrize("target", [[], [1, 1], [1000], [2**31 - 1]])
def test_an_invalid_target_does_not_affect_other_requests(driver: Driver, target: list[int]) -> None:
    """Manually written; the other partition moves."""
    driver.request_moves({"orders-0": target, "orders-1": [2, 4]})

    assert driver.requested() == {"orders-1": (2, 4)}
    assert refused(driver) == {"orders-0": ErrorCode.INVALID_REPLICA_ASSIGNMENT}
    assert driver.state("orders-0") == State(1, 0, (1, 2))


def test_a_list_of_completed_moves_is_deleted_at_once(driver: Driver) -> None:
    """There is nothing to move."""
    driver.request_moves({"orders-0": [1, 2]})

    assert driver.requested() is None
    assert refused(driver) == {}


def test_an_empty_list_is_deleted_at_once(driver: Driver) -> None:
    """Like an unreadable one."""
    driver.request_moves({})
    driver.request_elections()

    assert driver.requested() is None
    assert driver.written.election_requests is None


def test_requests_added_to_the_list_are_started(driver: Driver) -> None:
    """The list is a level, regardless of its last writer."""
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
def test_a_later_api_request_supersedes_one_in_the_list(driver: Driver, target: list[int] | None) -> None:
    """KafkaController.processApiPartitionReassignment: the latest request is used; reading the list again does not change that."""
    driver.request_moves({"orders-0": [1, 4], "orders-1": [2, 4]})
    assert driver.reassign({"orders-0": target}) == {"orders-0": None}
    assert driver.requested() == {"orders-1": (2, 4)}
    driver.read_requests()
    finish(driver, "orders-0")

    assert driver.replicas("orders-0") == (1, *(target or [1, 2])[1:])


@pytest.mark.parametrize("after", [False, True])
def test_a_superseded_request_is_not_started_after_a_takeover(driver: Driver, after: bool) -> None:
    """It is removed from the list before the later request is written."""
    driver.request_moves({"orders-0": [1, 4], "orders-1": [2, 4]})
    driver.die_at(commits=0, after=after)
    driver.crashing(lambda: driver.reassign({"orders-0": [1, 3]}))
    driver.take_over()

    assert ((1, 3) if after else (1, 4)) == driver.cluster.moves[driver.row("orders-0")].target
    assert set(driver.requested() or {}) == ({"orders-1"} if after else {"orders-0", "orders-1"})


def test_a_list_that_changes_while_a_request_is_superseded_is_reviewed(driver: Driver) -> None:
    """Nothing is overwritten; the next read starts the new requests, and not the superseded one."""
    driver.request_moves({"orders-0": [1, 4]})
    other = zookeeper_events.ReassignmentRequestsRead({tp("orders-0"): (1, 4), tp("orders-1"): (2, 4)}, 1)

    def write() -> None:
        driver.written.reassignment_requests = other

    driver.intrude(write)
    assert driver.reassign({"orders-0": [1, 3]}) == {"orders-0": None}
    driver.read_requests()

    assert driver.requested() == {"orders-1": (2, 4)}
    assert driver.cluster.moves[driver.row("orders-0")].target == (1, 3)


def test_deleting_the_list_cancels_no_move(driver: Driver) -> None:
    """Kafka watches only for the list's creation."""
    driver.request_moves({"orders-0": [1, 4]})
    driver.written.reassignment_requests = None
    driver.read_requests()
    assert driver.cluster.reassignment_requests == {}
    finish(driver, "orders-0")

    assert driver.replicas("orders-0") == (1, 4)


def test_a_controller_that_takes_over_continues_the_list(driver: Driver) -> None:
    """initializePartitionReassignments: running moves continue, new ones start, completed ones are removed."""
    driver.request_moves({"orders-0": [1, 4]})
    driver.written.reassignment_requests = zookeeper_events.ReassignmentRequestsRead(
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
def test_a_controller_failure_at_any_commit_leaves_nothing_behind(driver: Driver, commits: int, after: bool) -> None:
    """The next controller completes whatever is written."""
    driver.die_at(commits=commits, after=after)
    driver.crashing(lambda: (driver.request_moves({"orders-0": [1, 4], "ghost-0": [1]}), finish(driver, "orders-0")))
    driver.take_over()
    if driver.cluster.moves:
        finish(driver, "orders-0")

    assert driver.replicas("orders-0") == (1, 4)
    assert driver.requested() is None


@pytest.mark.parametrize("commits", range(6))
def test_a_lost_response_leaves_nothing_behind(driver: Driver, commits: int) -> None:
    """The connection was lost, so the watches cause another read."""
    driver.lose_answer(commits)
    driver.request_moves({"orders-0": [1, 4], "ghost-0": [1]})
    driver.read_requests()
    finish(driver, "orders-0")
    driver.read_requests()

    assert driver.replicas("orders-0") == (1, 4)
    assert driver.requested() is None


def test_a_list_changed_by_another_process_is_not_overwritten(driver: Driver) -> None:
    """A write is conditional on the version that was read; the next read processes the rest."""
    driver.request_moves({"orders-0": [1, 4]})
    other = zookeeper_events.ReassignmentRequestsRead({tp("orders-0"): (1, 4), tp("orders-1"): (2, 4)}, 1)

    def write() -> None:
        driver.written.reassignment_requests = other

    driver.intrude(write)
    finish(driver, "orders-0")
    assert driver.written.reassignment_requests == other
    driver.read_requests()

    assert driver.requested() == {"orders-1": (2, 4)}


def test_the_list_of_a_removed_topic_is_deleted(driver: Driver) -> None:
    """The topic's znode was deleted manually; the periodic check finds that its move has ended."""
    driver.request_moves({"orders-0": [1, 4]})
    driver.written.remove("orders")
    driver.submit(zookeeper_events.TopicsRead((), ("orders",)))
    driver.submit(events.AdvanceMoves())

    assert driver.requested() is None


def test_preferred_leaders_are_elected_and_the_list_is_deleted(driver: Driver) -> None:
    """onReplicaElection: the list is deleted whatever the results."""
    driver.bounce(1)
    driver.alter_isr("orders-0", [2, 1])
    driver.forget()
    driver.request_elections("orders-0", "orders-1", "ghost-0")

    assert driver.state("orders-0") == State(1, 2, (2, 1))
    assert driver.written.election_requests is None
    assert failed(driver) == {"ghost-0": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_failed_preferred_election_is_reported_and_the_list_is_deleted(driver: Driver) -> None:
    """removePartitionsFromPreferredReplicaElection: "failed to complete"."""
    driver.bounce(1)
    driver.request_elections("orders-0")

    assert failed(driver) == {"orders-0": ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert driver.written.election_requests is None


@pytest.mark.parametrize("commits", range(2))
@pytest.mark.parametrize("after", [False, True])
def test_a_controller_that_takes_over_holds_the_elections(driver: Driver, commits: int, after: bool) -> None:
    """fetchPendingPreferredReplicaElections: the list is deleted last, so no election is missed."""
    driver.bounce(1)
    driver.alter_isr("orders-0", [2, 1])
    driver.die_at(commits=commits, after=after)
    driver.crashing(lambda: driver.request_elections("orders-0"))
    driver.take_over()

    assert driver.state("orders-0").leader == 1
    assert driver.written.election_requests is None


def test_elections_refused_in_part_are_decided_again_and_reported_once(driver: Driver) -> None:
    """C6: the ISR changed just before."""
    driver.bounce(1)
    driver.alter_isr("orders-0", [2, 1])
    driver.forget()
    driver.intrude(lambda: driver.write_isr("orders-0", [2]))
    driver.request_elections("orders-0")

    assert driver.state("orders-0") == State(2, 1, (2,))
    assert len([change for change in driver.changes if isinstance(change, ElectionRequestsProcessed)]) == 1


def test_a_missing_list_has_no_requests(driver: Driver) -> None:
    """The usual first read of a controller."""
    driver.submit(zookeeper_events.ReassignmentRequestsRead({}, NO_EPOCH))

    assert driver.changes == []
