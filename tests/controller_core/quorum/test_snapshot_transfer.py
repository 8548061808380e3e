"""FetchSnapshot: what a leader answers and what a follower does with it (Kafka's KafkaRaftClientSnapshotTest)."""

from dataclasses import replace

import pytest

from controller_core.quorum.batches import BOOTSTRAP_SNAPSHOT, Position
from controller_core.quorum.inputs import Response, SnapshotCreated
from controller_core.quorum.log_view import Snapshot
from controller_core.quorum.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Leadership,
)
from controller_core.quorum.node import Node, StoredElection
from controller_core.quorum.ready import Ready, SnapshotChunk, Violation
from controller_core.quorum.start import start
from controller_core.quorum.states import Follower, Leader, Prospective, Resigned
from controller_core.quorum.step import step, tick
from kafka_wire import ErrorCode
from tests.controller_core.quorum.nodes import (
    CLUSTER,
    EPOCH,
    FROM_LEADER,
    LEADER,
    LISTENER,
    LOG,
    NOW_MS,
    OTHER,
    ask,
    committed,
    endpoints,
    fetch,
    follower,
    history,
    key,
    leader,
    reply,
    respond,
    settings,
)

ID = Position(8, EPOCH)
"""Snapshot that a follower fetches."""

KEPT = Position(2, 4)
"""Snapshot that a leader has."""


def serving() -> Node:
    """Return a leader with a snapshot of 10 bytes."""
    return replace(committed(), log=committed().log.add_snapshot(Snapshot(KEPT, 10)))


def request(position: int = 0, *, max_bytes: int = 100, node_id: int = OTHER) -> FetchSnapshotRequest:
    """Return a request for bytes of the leader's snapshot."""
    return FetchSnapshotRequest(CLUSTER, EPOCH, key(node_id), KEPT, position, max_bytes)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (request(), (ErrorCode.NONE, 0, 10)),
        (request(max_bytes=5), (ErrorCode.NONE, 0, 5)),
        (request(5, max_bytes=5), (ErrorCode.NONE, 5, 5)),
        (request(9, max_bytes=5), (ErrorCode.NONE, 9, 1)),
        (request(10), (ErrorCode.POSITION_OUT_OF_RANGE, 0, 0)),
        (request(-1), (ErrorCode.POSITION_OUT_OF_RANGE, 0, 0)),
        (replace(request(), snapshot=Position(2, 3)), (ErrorCode.SNAPSHOT_NOT_FOUND, 0, 0)),
        (replace(request(), snapshot=BOOTSTRAP_SNAPSHOT), (ErrorCode.SNAPSHOT_NOT_FOUND, 0, 0)),
        (replace(request(), epoch=EPOCH - 1), (ErrorCode.FENCED_LEADER_EPOCH, 0, 0)),
        (replace(request(), epoch=EPOCH + 1), (ErrorCode.UNKNOWN_LEADER_EPOCH, 0, 0)),
        (replace(request(), cluster_id=None), (ErrorCode.NONE, 0, 10)),
    ],
)
def test_a_leader_answers_with_the_bytes_of_a_part(
    body: FetchSnapshotRequest, expected: tuple[ErrorCode, int, int]
) -> None:
    """KafkaRaftClientSnapshotTest.testFetchSnapshotRequestAsLeader to testFetchSnapshotRequestWithNewerEpoch: with the size of the whole, and who leads."""
    response = reply(ask(serving(), body))

    assert isinstance(response, FetchSnapshotResponse)
    assert (response.error, response.position, response.read_bytes) == expected
    assert response.leadership == serving().leadership(LISTENER)
    assert (response.snapshot, response.size_bytes) == ((KEPT, 10) if expected[0] is ErrorCode.NONE else (None, 0))


@pytest.mark.parametrize("cluster_id", ["", "other"])
def test_a_snapshot_is_not_served_to_another_cluster(cluster_id: str) -> None:
    """KafkaRaftClientSnapshotTest.testFetchSnapshotRequestClusterIdValidation."""
    response = reply(ask(serving(), replace(request(), cluster_id=cluster_id)))

    assert response == FetchSnapshotResponse(ErrorCode.INCONSISTENT_CLUSTER_ID)


def test_only_the_leader_serves_snapshots_and_others_name_it() -> None:
    """KafkaRaftClientSnapshotTest.testFetchSnapshotRequestAsFollower."""
    node = replace(follower(), log=LOG.add_snapshot(Snapshot(KEPT, 10)))

    assert reply(ask(node, request())) == FetchSnapshotResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, FROM_LEADER)


@pytest.mark.shows("Q12")
def test_voters_that_fetch_a_snapshot_follow_and_observers_do_not_count() -> None:
    """KafkaRaftClientSnapshotTest.testLeaderShouldResignLeadershipIfNotGetFetchSnapshotRequestFromMajorityVoters."""
    node = replace(leader(), log=leader().log.add_snapshot(Snapshot(KEPT, 10)))
    followed = ask(node, request(node_id=OTHER), NOW_MS + 1500).node
    observed = ask(followed, request(node_id=9), NOW_MS + 3000).node

    assert isinstance(tick(observed, NOW_MS + 4499).node.state, Leader)
    assert isinstance(tick(observed, NOW_MS + 4500).node.state, Resigned)


def test_a_leader_with_a_snapshot_names_it_to_a_follower_that_begins() -> None:
    """KafkaRaftClientSnapshotTest.testFetchRequestOffsetAtZero, testLeaderImmediatelySendsSnapshotId: at once, though the records are still there."""
    response = reply(ask(serving(), fetch(OTHER, 0, 0, high_watermark=4)))

    assert isinstance(response, FetchResponse)
    assert (response.snapshot, response.diverging, response.read) == (KEPT, None, None)


def test_a_fetch_that_needs_a_snapshot_or_a_truncation_acknowledges_nothing() -> None:
    """The offset is of another log: it does not count for the high watermark."""
    node = ask(serving(), fetch(OTHER, 9, 3)).node

    assert isinstance(node.state, Leader)
    assert node.state.replicas.voters[OTHER].end_offset == 4


def named(snapshot: Position, now_ms: int = NOW_MS) -> Ready:
    """Let the leader name a snapshot to a follower."""
    return respond(follower(), LEADER, FetchResponse(leadership=FROM_LEADER, snapshot=snapshot), now_ms)


def part(data: bytes = b"1234", *, size_bytes: int = 10) -> FetchSnapshotResponse:
    """Return the first bytes of the snapshot."""
    return FetchSnapshotResponse(ErrorCode.NONE, FROM_LEADER, ID, size_bytes, 0, 0, data)


def test_a_follower_asks_for_the_named_snapshot_with_the_size_of_its_settings() -> None:
    """KafkaRaftClientSnapshotTest.testFetchResponseWithSnapshotId: controller.quorum.fetch.snapshot.max.bytes."""
    one = replace(settings(), fetch_snapshot_max_bytes=1024)
    node = start(one, StoredElection(EPOCH, LEADER), LOG, history(), 1, NOW_MS).node
    (outgoing,) = respond(node, LEADER, FetchResponse(leadership=FROM_LEADER, snapshot=ID)).requests

    assert outgoing.body == FetchSnapshotRequest(CLUSTER, EPOCH, key(1), ID, 0, 1024)


@pytest.mark.parametrize("snapshot", [Position(100, -1), Position(-1, 1)])
def test_an_invalid_snapshot_id_is_not_fetched(snapshot: Position) -> None:
    """KafkaRaftClientSnapshotTest.testFetchResponseWithInvalidSnapshotId: the leader is asked again after a backoff, and the fetch timeout runs on."""
    ready = named(snapshot, NOW_MS + 500)
    node = ready.node

    assert [type(notice) for notice in ready.notices] == [Violation]
    assert node.state == follower().state
    assert node.connections.is_backing_off(LEADER, NOW_MS + 500)
    assert isinstance(tick(node, NOW_MS + 2000).node.state, Prospective)


@pytest.mark.shows("Q10")
@pytest.mark.parametrize("diverging", [Position(2, -1), Position(-1, 4)])
def test_nothing_is_truncated_to_an_invalid_position(diverging: Position) -> None:
    """Also where nothing is known as committed."""
    node = replace(follower(), log=replace(LOG, high_watermark=0))
    ready = respond(node, LEADER, FetchResponse(leadership=FROM_LEADER, diverging=diverging))

    assert ready.log == ()
    assert [type(notice) for notice in ready.notices] == [Violation]


@pytest.mark.parametrize("snapshot", [None, Position(-1, EPOCH), Position(8, -1)])
def test_an_answer_without_a_valid_snapshot_id_gives_the_snapshot_up(snapshot: Position | None) -> None:
    """KafkaRaftClientSnapshotTest.testFetchSnapshotResponseWithInvalidId: the next Fetch names another one."""
    ready = respond(named(ID).node, LEADER, replace(part(b""), snapshot=snapshot))

    assert [(request.destination.id, type(request.body)) for request in ready.requests] == [(LEADER, FetchRequest)]
    assert (ready.log, ready.notices) == ((), ())


def test_a_position_behind_the_end_begins_the_snapshot_again_after_a_backoff() -> None:
    """The leader has another file of this id; Kafka's follower would ask for the same position forever."""
    fetching = respond(named(ID).node, LEADER, part()).node
    node = respond(fetching, LEADER, FetchSnapshotResponse(ErrorCode.POSITION_OUT_OF_RANGE, FROM_LEADER)).node

    assert isinstance(node.state, Follower)
    assert node.state.fetching is None
    assert node.connections.is_backing_off(LEADER, NOW_MS)


def test_a_snapshot_that_is_there_is_not_fetched() -> None:
    """KafkaRaftClientReconfigTest.testFollowerDoesNotRequestLeaderBootstrapSnapshot: formatted nodes have that one."""
    node = replace(follower(), log=LOG.add_snapshot(Snapshot(BOOTSTRAP_SNAPSHOT, 10)))
    ready = respond(node, LEADER, FetchResponse(leadership=FROM_LEADER, snapshot=BOOTSTRAP_SNAPSHOT))

    assert [(request.destination.id, type(request.body)) for request in ready.requests] == [(LEADER, FetchRequest)]
    assert ready.notices == ()


def test_a_new_leader_is_asked_for_records_first() -> None:
    """KafkaRaftClientSnapshotTest.testFetchSnapshotResponseFromNewerEpochNotLeader, testFetchSnapshotResponseFromNewerEpochLeader: it may have another snapshot."""
    for leader_id in (LEADER, OTHER):
        known = Leadership(EPOCH + 1, leader_id, endpoints(leader_id)[0])
        answer = FetchSnapshotResponse(ErrorCode.FENCED_LEADER_EPOCH, known)
        ready = respond(named(ID).node, LEADER, answer)

        assert [(request.destination.id, type(request.body)) for request in ready.requests] == [
            (leader_id, FetchRequest)
        ]
        assert isinstance(ready.node.state, Follower)
        assert ready.node.state.fetching is None


def test_an_answer_of_an_earlier_epoch_is_asked_for_again() -> None:
    """KafkaRaftClientSnapshotTest.testFetchSnapshotResponseFromOlderEpoch."""
    old = FetchSnapshotResponse(ErrorCode.UNKNOWN_LEADER_EPOCH, Leadership(EPOCH - 1, OTHER, endpoints(OTHER)[0]))
    ready = respond(named(ID).node, LEADER, old)

    assert [request.body for request in ready.requests] == [FetchSnapshotRequest(CLUSTER, EPOCH, key(1), ID, 0)]


def test_bytes_of_an_earlier_epoch_are_not_written() -> None:
    """Even if they are those of the snapshot."""
    old = replace(part(), leadership=Leadership(EPOCH - 1, LEADER, endpoints(LEADER)[0]))
    ready = respond(named(ID).node, LEADER, old)

    assert ready.log == ()
    assert [type(request.body) for request in ready.requests] == [FetchSnapshotRequest]


def test_bytes_that_come_after_the_fetch_timeout_are_ignored() -> None:
    """KafkaRaftClientSnapshotTest.testFetchSnapshotResponseToNotFollower."""
    fetching = named(ID)
    asking = tick(fetching.node, NOW_MS + 2000).node
    late = step(asking, Response(LEADER, fetching.requests[0].correlation_id, part()), NOW_MS + 2000)

    assert isinstance(asking.state, Prospective)
    assert (late.node, late.log) == (asking, ())


def test_each_part_starts_the_fetch_timeout_again() -> None:
    """A snapshot may take longer than the timeout."""
    node = respond(named(ID).node, LEADER, part(), NOW_MS + 1500)
    slow = replace(node.node, settings=replace(node.node.settings, request_timeout_ms=9000))

    assert node.log == (SnapshotChunk(ID, 0, b"1234", is_last=False),)
    assert isinstance(tick(slow, NOW_MS + 3499).node.state, Follower)
    assert isinstance(tick(slow, NOW_MS + 3500).node.state, Prospective)


@pytest.mark.shows("Q18")
def test_a_snapshot_above_the_high_watermark_is_a_defect_of_the_state_machine() -> None:
    """KafkaRaftClientSnapshotTest.testCreateSnapshotAsLeaderWithInvalidSnapshotId, testCreateSnapshotAsFollowerWithInvalidSnapshotId."""
    for node in (committed(), follower()):
        with pytest.raises(AssertionError):
            step(node, SnapshotCreated(Position(node.log.high_watermark + 1, EPOCH), 10), NOW_MS)
        assert step(node, SnapshotCreated(KEPT, 10), NOW_MS).node.log.latest_snapshot == KEPT
