"""Requests to add, remove and update voters: their checks and their ends (Kafka's KafkaRaftClientReconfigTest). The changes are in test_reconfigure.py."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from uuid import UUID

import pytest

from controller_core.quorum.batches import VotersRecord
from controller_core.quorum.inputs import Append, Flushed, Request, Resign, UpgradeKRaftVersion
from controller_core.quorum.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    FailedResponse,
    Leadership,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    RequestBody,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoteResponse,
)
from controller_core.quorum.node import Node, StoredElection
from controller_core.quorum.ready import Appended, Ready, UpgradeResult
from controller_core.quorum.rules import Destination
from controller_core.quorum.start import start
from controller_core.quorum.states import Leader, Resigned, Unattached
from controller_core.quorum.step import step, tick
from controller_core.quorum.voters import Endpoint, ReplicaKey, VersionRange
from kafka_wire import ErrorCode
from tests.controller_core.quorum.nodes import (
    CLUSTER,
    EPOCH,
    LEADER,
    LISTENER,
    LOG,
    NEW,
    NOW_MS,
    OTHER,
    ask,
    begin,
    committed,
    elected,
    endpoints,
    fetch,
    follower,
    history,
    key,
    leader,
    reply,
    respond,
    settings,
    static_leader,
)

VERSIONS = VersionRange(0, 1)
ADD = AddRaftVoterRequest(CLUSTER, 1000, key(NEW), endpoints(NEW))
REMOVE = RemoveRaftVoterRequest(CLUSTER, key(OTHER))
UPDATE = UpdateRaftVoterRequest(CLUSTER, EPOCH, key(OTHER), endpoints(7), VERSIONS)
ELSEWHERE = (Endpoint("OTHER", "host-4", 9004),)


def only_voter() -> Node:
    """Return the leader of a quorum of one that has committed its first record."""
    node = start(settings(), StoredElection(EPOCH), LOG, history(1), 1, NOW_MS).node
    return step(node, Flushed(node.log.flush_count), NOW_MS).node


def caught_up() -> Node:
    """Return a leader that the new voter has fetched everything from."""
    return ask(committed(), fetch(NEW, 4, EPOCH)).node


def removing() -> Node:
    """Return a leader that has appended the removal of OTHER."""
    return step(committed(), Request(50, LISTENER, REMOVE), NOW_MS).node


def adding() -> Node:
    """Return a leader that has asked the new voter for its versions."""
    return step(caught_up(), Request(50, LISTENER, ADD), NOW_MS).node


def updating() -> Node:
    """Return a leader whose last voter set, of an update, is not committed."""
    return step(committed(), Request(50, LISTENER, UPDATE), NOW_MS).node


INVALID, NOT_NOW = ErrorCode.INVALID_REQUEST, ErrorCode.REQUEST_TIMED_OUT
WRONG_CLUSTER, NOT_LEADER = ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.NOT_LEADER_OR_FOLLOWER

REFUSED: Mapping[str, tuple[Callable[[], Node], RequestBody, ErrorCode]] = {
    "add, empty cluster id": (committed, replace(ADD, cluster_id=""), WRONG_CLUSTER),
    "add, other cluster": (committed, replace(ADD, cluster_id="other"), WRONG_CLUSTER),
    "add, not the leader": (follower, ADD, NOT_LEADER),
    "add, no endpoint on the quorum's listener": (committed, replace(ADD, endpoints=ELSEWHERE), INVALID),
    "add, no directory id": (committed, replace(ADD, voter=ReplicaKey(NEW)), INVALID),
    "add, nothing committed": (leader, ADD, NOT_NOW),
    "add, another is being added": (adding, replace(ADD, voter=key(5)), NOT_NOW),
    "add, another is being removed": (removing, ADD, NOT_NOW),
    "add, update not committed": (updating, ADD, NOT_NOW),
    "add, kraft.version 0": (static_leader, ADD, ErrorCode.UNSUPPORTED_VERSION),
    "add, another directory of a voter": (
        committed,
        replace(ADD, voter=ReplicaKey(OTHER, UUID(int=9))),
        ErrorCode.DUPLICATE_VOTER,
    ),
    "remove, empty cluster id": (committed, replace(REMOVE, cluster_id=""), WRONG_CLUSTER),
    "remove, other cluster": (committed, replace(REMOVE, cluster_id="other"), WRONG_CLUSTER),
    "remove, not the leader": (follower, REMOVE, NOT_LEADER),
    "remove, no directory id": (committed, replace(REMOVE, voter=ReplicaKey(OTHER)), INVALID),
    "remove, nothing committed": (leader, REMOVE, NOT_NOW),
    "remove, another is being added": (adding, REMOVE, NOT_NOW),
    "remove, another is being removed": (removing, replace(REMOVE, voter=key(LEADER)), NOT_NOW),
    "remove, kraft.version 0": (static_leader, REMOVE, ErrorCode.UNSUPPORTED_VERSION),
    "remove, another directory": (
        committed,
        replace(REMOVE, voter=ReplicaKey(OTHER, UUID(int=9))),
        ErrorCode.VOTER_NOT_FOUND,
    ),
    "remove, another id": (committed, replace(REMOVE, voter=key(8)), ErrorCode.VOTER_NOT_FOUND),
    "remove, the last voter": (only_voter, replace(REMOVE, voter=key(1)), ErrorCode.VOTER_NOT_FOUND),
    "update, empty cluster id": (committed, replace(UPDATE, cluster_id=""), WRONG_CLUSTER),
    "update, other cluster": (committed, replace(UPDATE, cluster_id="other"), WRONG_CLUSTER),
    "update, not the leader": (follower, UPDATE, NOT_LEADER),
    "update, older epoch": (committed, replace(UPDATE, epoch=EPOCH - 1), ErrorCode.FENCED_LEADER_EPOCH),
    "update, newer epoch": (committed, replace(UPDATE, epoch=EPOCH + 1), ErrorCode.UNKNOWN_LEADER_EPOCH),
    "update, no directory id": (committed, replace(UPDATE, voter=ReplicaKey(OTHER)), INVALID),
    "update, no endpoints": (committed, replace(UPDATE, endpoints=()), INVALID),
    "update, no endpoint on the quorum's listener": (committed, replace(UPDATE, endpoints=ELSEWHERE), INVALID),
    "update, empty range of versions": (committed, replace(UPDATE, kraft_versions=VersionRange(1, 0)), INVALID),
    "update, without the level": (committed, replace(UPDATE, kraft_versions=VersionRange(0, 0)), INVALID),
    "update, nothing committed": (leader, UPDATE, NOT_NOW),
    "update, another is being added": (adding, UPDATE, NOT_NOW),
    "update, another directory": (
        committed,
        replace(UPDATE, voter=ReplicaKey(OTHER, UUID(int=9))),
        ErrorCode.VOTER_NOT_FOUND,
    ),
    "update, another id": (committed, replace(UPDATE, voter=key(8)), ErrorCode.VOTER_NOT_FOUND),
    "update, another id at kraft.version 0": (static_leader, replace(UPDATE, voter=key(8)), ErrorCode.VOTER_NOT_FOUND),
}


@pytest.mark.shows("Q19")
@pytest.mark.parametrize("name", REFUSED)
def test_a_change_that_cannot_be_made_now_appends_nothing(name: str) -> None:
    """With Kafka's error; UpdateRaftVoter is answered with the leader in each case."""
    make, body, error = REFUSED[name]
    node = make()
    ready = ask(node, body)
    response = reply(ready)

    assert isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse | UpdateRaftVoterResponse)
    assert (response.error, ready.log, ready.requests) == (error, (), ())
    assert ready.node.history == node.history
    if isinstance(response, UpdateRaftVoterResponse):
        assert response.leadership == node.leadership(LISTENER)


def test_the_new_voter_is_asked_for_its_versions_at_the_address_of_the_request() -> None:
    """KafkaRaftClientReconfigTest.testAddVoter: on the quorum's listener."""
    ready = ask(caught_up(), replace(ADD, endpoints=(*ELSEWHERE, *endpoints(NEW))))

    (outgoing,) = ready.requests
    assert (outgoing.destination, outgoing.body) == (Destination(NEW, "host-4", 9004), ApiVersionsRequest())


def test_versions_of_another_node_are_ignored() -> None:
    """KafkaRaftClientReconfigTest.testAddVoterWithApiVersionsFromIncorrectNode: an error of the right one ends the request."""
    busy = adding()
    connections = busy.connections.sent(OTHER, NOW_MS + 2000, ApiVersionsRequest)
    ignored = respond(replace(busy, connections=connections), OTHER, ApiVersionsResponse(kraft_versions=VERSIONS))
    failed = respond(busy, NEW, ApiVersionsResponse(ErrorCode.INVALID_REQUEST))

    assert (ignored.log, ignored.replies) == ((), ())
    assert ignored.node.connections.is_ready(OTHER, NOW_MS)
    assert [(reply.request_id, getattr(reply.body, "error", None)) for reply in failed.replies] == [(50, NOT_NOW)]


def errors_for(ready: Ready) -> list[ErrorCode]:
    """Return the answers to the request for a change."""
    return [getattr(reply.body, "error", ErrorCode.NONE) for reply in ready.replies if reply.request_id == 50]


def test_a_change_that_is_not_committed_in_time_is_answered_and_its_voters_stay() -> None:
    """KafkaRaftClientReconfigTest.testAddVoterTimeout, testRemoveVoterTimedOut: it may still be committed."""
    added = respond(adding(), NEW, ApiVersionsResponse(kraft_versions=VERSIONS)).node
    for node, voters in ((added, (1, 2, 3, 4)), (removing(), (1, 2))):
        timed_out = tick(node, NOW_MS + 2000)

        assert errors_for(tick(node, NOW_MS + 1999)) == []
        assert errors_for(timed_out) == [NOT_NOW]
        assert timed_out.node.voters.ids == voters


@pytest.mark.parametrize("make", [adding, removing])
@pytest.mark.parametrize(
    "depose",
    [
        lambda node: step(node, Resign(EPOCH), NOW_MS),
        lambda node: ask(node, begin(LEADER, EPOCH + 1)),
        lambda node: tick(replace(node, state=replace(node.state, check_quorum_due_ms=NOW_MS)), NOW_MS),
    ],
    ids=["resigns", "another leader", "no majority"],
)
def test_a_change_ends_with_the_leadership(make: Callable[[], Node], depose: Callable[[Node], Ready]) -> None:
    """KafkaRaftClientReconfigTest.testAddVoterFailsWhenLosingLeadership, testRemoveVoterFailsWhenLosingLeadership."""
    node = make()
    deposed = depose(node)

    assert not isinstance(deposed.node.state, Leader)
    assert errors_for(deposed) == [NOT_LEADER]
    assert deposed.node.voters == node.voters


def test_a_new_epoch_begins_without_a_change() -> None:
    """KafkaRaftClientReconfigTest.testLeaderMetricsAreReset: the one of before does not block others."""
    resigned = step(adding(), Resign(EPOCH), NOW_MS).node
    asking = tick(resigned, NOW_MS + 2000).node
    yes = VoteResponse(leadership=Leadership(EPOCH + 1), granted=True)
    node = respond(asking, OTHER, yes, NOW_MS + 2000).node
    yes = replace(yes, leadership=Leadership(EPOCH + 2))
    node = respond(node, OTHER, yes, NOW_MS + 2000).node

    assert isinstance(node.state, Leader)
    assert node.state.change is None


def test_a_removed_leader_ends_as_an_observer() -> None:
    """KafkaRaftClientReconfigTest.testRemoveVoterIsLeader: it names its successors first, and a request to resign changes nothing then."""
    node = ask(committed(), replace(REMOVE, voter=key(1))).node
    for voter_id in (LEADER, OTHER):
        ready = ask(node, fetch(voter_id, 5, EPOCH))
        node = ready.node
    resigned = step(node, Resign(EPOCH), NOW_MS).node
    ended = tick(resigned, NOW_MS + 2000).node

    assert sorted(request.destination.id for request in ready.requests) == [LEADER, OTHER]
    assert [isinstance(some_node.state, Resigned) for some_node in (node, resigned)] == [True, True]
    assert (type(ended.state), ended.epoch, ended.is_voter) == (Unattached, EPOCH + 1, False)


def test_an_update_is_answered_at_the_append() -> None:
    """KafkaRaftClientReconfigTest.testUpdateVoter: with the leader; the voter fetches for the commit on the same connection."""
    ready = ask(committed(), UPDATE)

    assert reply(ready) == UpdateRaftVoterResponse(leadership=committed().leadership(LISTENER))
    assert ready.node.voters.endpoints(OTHER) == endpoints(7)


def test_a_leader_with_new_endpoints_writes_them_in_its_first_batch() -> None:
    """KafkaRaftClientReconfigTest.testLeaderUpdatesVoter."""
    ready = elected(own=replace(settings(), endpoints=endpoints(7)))

    (operation,) = ready.log
    assert isinstance(operation, Appended)
    (record,) = (record for record in operation.batches[0].control if isinstance(record, VotersRecord))
    assert record.voters.endpoints(1) == endpoints(7)
    assert [
        request.body.endpoints for request in ready.requests if isinstance(request.body, BeginQuorumEpochRequest)
    ] == [endpoints(7)] * 2


def test_a_leader_writes_no_voters_at_kraft_version_0() -> None:
    """KafkaRaftClientReconfigTest.testLeaderDoesNotBootstrapRecordsWithKraftVersion0."""
    node = static_leader()

    assert (node.history.voters_offset, node.history.kraft_version) == (None, 0)
    assert node.log.end_offset == LOG.end_offset + 1


def test_the_upgrade_is_of_the_epoch_of_its_leader() -> None:
    """LeaderStateTest.testInvalidMaybeAppendUpgradedKRaftVersion; the current level is nothing to do."""
    node = static_leader()
    for voter_id in (LEADER, OTHER):
        node = ask(node, UpdateRaftVoterRequest(None, EPOCH, key(voter_id), endpoints(voter_id), VERSIONS)).node
    results = [
        step(node, UpgradeKRaftVersion(77, epoch, level), NOW_MS)
        for epoch, level in ((EPOCH - 1, 1), (EPOCH + 1, 1), (EPOCH, 2), (EPOCH, 0))
    ]

    bodies = [reply(ready) for ready in results]
    assert [body.error for body in bodies if isinstance(body, UpgradeResult)] == [
        NOT_LEADER,
        NOT_LEADER,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NONE,
    ]
    assert [ready.log for ready in results] == [()] * 4


def test_voters_are_updated_after_the_upgrade_as_before_in_the_log() -> None:
    """KafkaRaftClientReconfigTest.testUpdateVoterAfterKRaftVersionUpgrade: once the upgrade is committed."""
    node = static_leader()
    for voter_id in (LEADER, OTHER):
        node = ask(node, UpdateRaftVoterRequest(None, EPOCH, key(voter_id), endpoints(voter_id), VERSIONS)).node
    upgraded = step(node, UpgradeKRaftVersion(77, EPOCH, 1), NOW_MS)
    early = ask(upgraded.node, UPDATE)
    flushed = step(upgraded.node, Flushed(upgraded.flush or 0), NOW_MS).node
    done = ask(ask(flushed, fetch(OTHER, 6, EPOCH)).node, UPDATE)

    assert (reply(early), early.log) == (UpdateRaftVoterResponse(NOT_NOW, node.leadership(LISTENER)), ())
    assert done.node.voters.endpoints(OTHER) == endpoints(7)
    assert done.node.history.voters_offset == 6


def test_a_voter_that_cannot_be_asked_for_its_versions_is_not_added() -> None:
    """The connection is busy, or backs off after an answer that failed."""
    failed = respond(adding(), NEW, FailedResponse(ErrorCode.NETWORK_EXCEPTION)).node
    appended = step(failed, Append(9, EPOCH, b"data", 1), NOW_MS).node
    response = reply(ask(appended, ADD))

    assert isinstance(response, AddRaftVoterResponse)
    assert response.error is NOT_NOW


def test_a_change_is_complete_when_its_own_record_is_committed() -> None:
    """Not when the records before it are: a removed leader goes on until then."""
    node = step(committed(), Append(9, EPOCH, b"data", 1), NOW_MS).node
    removed = step(node, Request(50, LISTENER, replace(REMOVE, voter=key(1))), NOW_MS).node
    before = ask(ask(removed, fetch(LEADER, 5, EPOCH)).node, fetch(OTHER, 5, EPOCH))
    after = ask(ask(before.node, fetch(LEADER, 6, EPOCH)).node, fetch(OTHER, 6, EPOCH))

    assert (before.node.high_watermark, type(before.node.state), errors_for(before)) == (5, Leader, [])
    assert (after.node.high_watermark, type(after.node.state), errors_for(after)) == (6, Resigned, [ErrorCode.NONE])
