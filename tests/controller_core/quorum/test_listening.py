"""Deliveries to a state machine: snapshots, committed records and leaders, as the listeners of Kafka's RaftClient."""

from dataclasses import replace

from controller_core.quorum.batches import BOOTSTRAP_SNAPSHOT, Position
from controller_core.quorum.listening import ApplyRecords, ChangeLeader, Listening, LoadSnapshot, next_delivery
from controller_core.quorum.log_view import Snapshot
from controller_core.quorum.messages import ReadRange
from controller_core.quorum.node import Node
from controller_core.quorum.rules import RESPONSE_BYTES_MAX
from tests.controller_core.quorum.nodes import EPOCH, LEADER, committed, follower, leader, resigned, unattached

SNAPSHOT = Position(2, 4)


def known(node: Node, next_offset: int = 0, loaded: Position | None = None) -> Listening:
    """Return the progress of a state machine that knows the node's leader."""
    return Listening(next_offset, loaded, node.announced)


def with_snapshot(node: Node, snapshot: Position, start_offset: int = 0) -> Node:
    """Return the node with a snapshot, and a log that starts there."""
    log = replace(node.log, snapshots=(Snapshot(snapshot, 100),), start_offset=start_offset)
    return replace(node, log=log)


def records(start_offset: int, end_offset: int) -> ApplyRecords:
    """Return the delivery of these records."""
    return ApplyRecords(ReadRange(start_offset, end_offset, RESPONSE_BYTES_MAX))


def test_committed_records_are_delivered_from_where_the_listener_is() -> None:
    """KafkaRaftClientTest.testLateRegisteredListenerCatchesUp; not the third record, which may not be committed."""
    node = follower()

    assert next_delivery(known(node), node) == records(0, 2)
    assert next_delivery(known(node, 1), node) == records(1, 2)
    assert next_delivery(known(node, 2), node) is None


def test_a_new_listener_gets_the_latest_snapshot_first_and_once() -> None:
    """KafkaRaftClientSnapshotTest.testFollowerListenerNotified, testSecondListenerNotified, and the bootstrap snapshot, which ends at 0."""
    node = with_snapshot(follower(), SNAPSHOT)
    bootstrapped = with_snapshot(follower(), BOOTSTRAP_SNAPSHOT)
    loaded = known(bootstrapped).after(LoadSnapshot(BOOTSTRAP_SNAPSHOT), 0)

    assert next_delivery(known(node), node) == LoadSnapshot(SNAPSHOT)
    assert next_delivery(known(node).after(LoadSnapshot(SNAPSHOT), 0), node) is None
    assert next_delivery(known(bootstrapped), bootstrapped) == LoadSnapshot(BOOTSTRAP_SNAPSHOT)
    assert next_delivery(loaded, bootstrapped) == records(0, 2)


def test_a_listener_whose_next_records_were_deleted_gets_the_latest_snapshot() -> None:
    """KafkaRaftClientSnapshotTest.testListenerRenotified."""
    node = with_snapshot(committed(), Position(3, 4), start_offset=3)
    behind = Listening(1, SNAPSHOT, node.announced)

    assert next_delivery(behind, node) == LoadSnapshot(Position(3, 4))
    assert next_delivery(behind.after(LoadSnapshot(Position(3, 4)), 0), node) == records(3, 4)


def test_a_listener_gets_each_new_leader_once() -> None:
    """KafkaRaftClientTest.testHandleLeaderChangeFiresAfter{Follower,Resign,Unattached}Registration."""
    node = follower()
    change = ChangeLeader(EPOCH, LEADER)

    assert next_delivery(Listening(), node) == change
    assert next_delivery(Listening().after(change, 0), node) == records(0, 2)
    assert next_delivery(Listening(), resigned()) == ChangeLeader(EPOCH, None)
    assert next_delivery(Listening(), unattached()) == ChangeLeader(EPOCH, None)


def test_a_leader_is_announced_to_its_own_listener_after_the_first_record_of_its_epoch() -> None:
    """The state machine then has all that was committed before (LeaderChanged of `ready.py`)."""
    uncommitted, node = leader(), committed()
    behind = Listening(2)

    assert next_delivery(behind, uncommitted) is None
    assert next_delivery(behind, node) == records(2, 4)
    assert next_delivery(behind.after(records(2, 4), 3), node) == records(3, 4)
    assert next_delivery(behind.after(records(2, 4), 4), node) == ChangeLeader(EPOCH, 1)
