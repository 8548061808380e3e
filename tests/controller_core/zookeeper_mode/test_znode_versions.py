"""Versions of znodes (ADR 21): which one a write expects, which one is known after it, and which records are stale."""

from dataclasses import dataclass
from uuid import UUID

import numpy as np
import pytest

from controller_core.model import Origin, events, zookeeper_events
from controller_core.model.changes import (
    Change,
    PartitionsAdded,
    ProducerIdsAllocated,
    ProducerIdsObserved,
    TopicAdded,
    TopicRemoved,
)
from controller_core.model.zookeeper_changes import (
    AssignmentRestored,
    ElectionRequestsProcessed,
    MovesFinished,
    MovesStarted,
    PendingReassignmentRequestsChanged,
    TopicIdAssigned,
    TopicObserved,
)
from controller_core.zookeeper_mode.znode_versions import NO_ZNODE, ZnodeVersions, versions_read
from tests.controller_core.decisions.driver import cluster_with, tp

THREE = [1, 2, 3]
NONE = np.zeros(0, dtype=np.int32)
NO_LISTS = np.zeros((0, 1), dtype=np.int32)
RECORD = zookeeper_events.StoredTopic("orders", None, {0: (1, 2)}, version=7)
REQUESTS = zookeeper_events.ReassignmentRequestsRead({tp("orders-0"): (1, 3)}, 7)
READ = {
    "orders": 7,
    zookeeper_events.REASSIGNMENT_REQUESTS: 7,
    zookeeper_events.ELECTION_REQUESTS: 7,
    events.PRODUCER_IDS: 7,
}


def versions(**topics: int) -> ZnodeVersions:
    """A table with known versions of topics."""
    made = ZnodeVersions()
    for name, version in topics.items():
        made.note(added(Origin.OBSERVED, name), version)
    return made


def added(origin: Origin, name: str = "orders") -> TopicAdded:
    """A topic without partitions."""
    return TopicAdded(name, None, NONE, NO_LISTS, origin)


def requests(origin: Origin, *partitions: str) -> PendingReassignmentRequestsChanged:
    """The list of requested moves, with these partitions."""
    return PendingReassignmentRequestsChanged({tp(partition): (1, 3) for partition in partitions}, origin)


@dataclass(frozen=True)
class Case:
    """A change, the version that its write expects, and the version that is known after it."""

    change: Change
    expected: int
    after: int
    name: str = "orders"


CASES = {
    "a new topic": Case(added(Origin.REQUESTED), NO_ZNODE, 0),
    "a topic that is found": Case(added(Origin.OBSERVED), 7, 7),
    "a topic that is found and repaired": Case(added(Origin.REPAIRED), 7, 8),
    "new partitions": Case(PartitionsAdded("orders", NONE, NO_LISTS, Origin.REQUESTED), 3, 4),
    "a topic id": Case(TopicIdAssigned("orders", UUID(int=7)), 3, 4),
    "moves that start": Case(MovesStarted("orders", {}), 3, 4),
    "moves that end": Case(MovesFinished("orders", {}), 3, 4),
    "an assignment that is found": Case(TopicObserved("orders", {}, {}, {}), 7, 7),
    "an assignment that is restored": Case(AssignmentRestored("orders"), 7, 8),
    "a removed topic": Case(TopicRemoved("orders", Origin.OBSERVED), NO_ZNODE, NO_ZNODE),
    "requests that are found": Case(
        requests(Origin.OBSERVED, "orders-0"), 7, 7, zookeeper_events.REASSIGNMENT_REQUESTS
    ),
    "requests of which some end": Case(
        requests(Origin.REQUESTED, "orders-0"), 7, 8, zookeeper_events.REASSIGNMENT_REQUESTS
    ),
    "requests of which all end": Case(requests(Origin.REQUESTED), 7, NO_ZNODE, zookeeper_events.REASSIGNMENT_REQUESTS),
    "requested elections": Case(ElectionRequestsProcessed(), 7, NO_ZNODE, zookeeper_events.ELECTION_REQUESTS),
    "producer ids that are found": Case(ProducerIdsObserved(999), 7, 7, events.PRODUCER_IDS),
    "the first producer ids": Case(ProducerIdsAllocated(1, 0, 999), NO_ZNODE, 0, events.PRODUCER_IDS),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_change_expects_a_version_and_leaves_one(case: Case) -> None:
    """ZooKeeper: a znode is created with version 0, and each setData adds 1."""
    table = versions(orders=3)
    expected = table.expected(case.change, READ)
    table.note(case.change, expected)

    assert (expected, table.known(case.name)) == (case.expected, case.after)


def test_running_requests_are_written_over_the_known_list() -> None:
    """A review that read nothing: the list is the one that was written or read last."""
    table = ZnodeVersions()
    table.note(requests(Origin.REQUESTED, "orders-0", "orders-1"), 7)

    assert table.expected(requests(Origin.REQUESTED, "orders-1"), {}) == 8


@pytest.mark.parametrize(
    "change",
    [
        MovesStarted("orders", {}),
        TopicObserved("orders", {}, {}, {}),
        requests(Origin.REQUESTED),
        added(Origin.REPAIRED),
    ],
    ids=lambda change: type(change).__name__,
)
def test_an_existing_znode_without_a_known_version_is_not_written(change: Change) -> None:
    """ZooKeeper takes version -1 as any version, and the write would replace what another process wrote."""
    with pytest.raises(KeyError):
        ZnodeVersions().expected(change, {})


@pytest.mark.parametrize(
    ("event", "read"),
    [
        (zookeeper_events.TopicsRead((RECORD,), ()), {"orders": 7}),
        (zookeeper_events.TopicsChanged((RECORD,)), {"orders": 7}),
        (zookeeper_events.ReviewReassignmentRequests(REQUESTS), {zookeeper_events.REASSIGNMENT_REQUESTS: 7}),
        (zookeeper_events.ReviewReassignmentRequests(), {}),
        (
            zookeeper_events.RemoveElectionRequests(zookeeper_events.ElectionRequestsRead((), 7)),
            {zookeeper_events.ELECTION_REQUESTS: 7},
        ),
        (events.AdvanceMoves(), {}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_event_names_the_versions_that_it_was_read_from(event: events.Event, read: dict[str, int]) -> None:
    """ADR 21: the event takes them from the read to the store, past the decision."""
    assert versions_read(event) == read


@pytest.mark.parametrize(("version", "is_stale"), [(2, True), (3, True), (4, False)])
def test_a_record_is_stale_up_to_the_known_version(version: int, is_stale: bool) -> None:
    """The known version is that of the current state."""
    table = versions(orders=3)

    assert table.is_stale(TopicObserved("orders", {}, {}, {}), version) == is_stale
    assert table.is_stale(AssignmentRestored("orders"), version) == is_stale


def test_a_record_that_was_read_before_a_write_of_the_controller_changes_nothing() -> None:
    """The move that was written in the meantime continues."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    stale = driver.written.record("orders")
    driver.reassign({"orders-0": [3, 2]})
    move = driver.cluster.moves[driver.row("orders-0")]
    driver.forget()
    driver.submit(zookeeper_events.TopicsChanged((stale,)))

    assert driver.changes == []
    assert driver.cluster.moves == {driver.row("orders-0"): move}


def test_records_that_are_decided_on_twice_are_applied_once() -> None:
    """One of two assignments cannot be restored, so both are decided on again; the other one is applied already."""
    driver = cluster_with(THREE, {"orders": [[1, 2]], "others": [[1, 2]], "moving": [[1, 2]]})
    driver.reassign({"others-0": [3, 2]})
    driver.delete("others")  # waits for the move
    driver.write_partition("orders", 0, [2, 1])
    driver.write_partition("others", 1, [1, 2])
    driver.intrude(lambda: driver.write_partition("others", 2, [1, 2]))
    driver.forget()
    driver.read_assignments()

    observed = [change.name for change in driver.changes if isinstance(change, TopicObserved)]
    assert observed == ["orders", "others"]
    assert driver.written.versions.known("others") == driver.written.topics["others"].version


def test_another_controller_continues_with_the_versions_that_it_reads() -> None:
    """The table of a term begins empty."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.reassign({"orders-0": [3, 2]})
    known = driver.written.versions
    driver.take_over()

    assert driver.written.versions is not known
    assert driver.written.versions.known("orders") == driver.written.topics["orders"].version == 1
    assert driver.reassign({"orders-0": None}) == {"orders-0": None}
