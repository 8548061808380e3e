"""When a follower or observer asks the leader to change the voters (Kafka's KafkaRaftClientAutoJoinTest and KafkaRaftClientReconfigTest)."""

from dataclasses import replace

import pytest

from controller_core.quorum.batches import VotersRecord, control_batch
from controller_core.quorum.inputs import Flushed
from controller_core.quorum.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    FailedResponse,
    FetchRequest,
    FetchResponse,
    Leadership,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from controller_core.quorum.node import Node, StoredElection
from controller_core.quorum.ready import Ready
from controller_core.quorum.rules import Settings
from controller_core.quorum.start import start
from controller_core.quorum.step import step
from controller_core.quorum.voter_history import VoterHistory
from controller_core.quorum.voters import ReplicaKey, Voter, VoterSet
from kafka_wire import ErrorCode
from tests.controller_core.quorum.nodes import (
    CLUSTER,
    EPOCH,
    FROM_LEADER,
    LEADER,
    LOG,
    NEW,
    NOW_MS,
    OTHER,
    ask,
    begin,
    endpoints,
    history,
    key,
    respond,
    settings,
    voter,
)

EMPTY = FetchResponse(leadership=FROM_LEADER)
DUE_MS = NOW_MS + 2000
"""A request to change the voters is due one fetch timeout after the last one, or after the start."""

ADD = AddRaftVoterRequest(CLUSTER, 9000, key(NEW), endpoints(NEW), ack_when_committed=False)


def patient(node_id: int = NEW, *, auto_join: bool = True) -> Settings:
    """Return settings with which no request times out in these tests."""
    return replace(settings(node_id, auto_join=auto_join), request_timeout_ms=9000)


def following(one: Settings, known: VoterHistory, *, now_ms: int = DUE_MS) -> Ready:
    """Start a follower, and let its first Fetch be answered at a time."""
    node = start(one, StoredElection(EPOCH, LEADER), LOG, known, 1, NOW_MS).node
    return respond(node, LEADER, EMPTY, now_ms)


def bodies(ready: Ready) -> list[type]:
    """Return the kinds of requests that a step sends."""
    return [type(request.body) for request in ready.requests]


def fetched_voters(node: Node, voters: VoterSet, now_ms: int) -> Ready:
    """Answer a Fetch with a voter set."""
    batch = control_batch(node.log.end_offset, EPOCH, VotersRecord(voters))
    ready = respond(node, LEADER, replace(EMPTY, batches=(batch,)), now_ms)
    return step(ready.node, Flushed(ready.flush or 0), now_ms)


def test_a_controller_adds_itself_and_tries_again_until_it_is_a_voter() -> None:
    """KafkaRaftClientAutoJoinTest.testAutoAddNewVoter: between two tries it fetches."""
    asked = following(patient(), history())
    answered = respond(asked.node, LEADER, AddRaftVoterResponse(ErrorCode.REQUEST_TIMED_OUT), DUE_MS)
    again = respond(answered.node, LEADER, EMPTY, DUE_MS + 2000)
    done = respond(again.node, LEADER, AddRaftVoterResponse(), DUE_MS + 2000)
    joined = fetched_voters(done.node, history(1, 2, 3, 4).voters, DUE_MS + 2001)
    later = respond(joined.node, LEADER, EMPTY, DUE_MS + 4000)

    assert [request.body for request in asked.requests] == [ADD]
    assert (bodies(answered), bodies(again), bodies(done)) == ([FetchRequest], [AddRaftVoterRequest], [FetchRequest])
    assert joined.node.is_voter
    assert bodies(later) == [FetchRequest]


def test_a_controller_with_a_new_disk_removes_its_old_voter_and_then_joins() -> None:
    """KafkaRaftClientAutoJoinTest.testAutoRemoveOldVoter, testObserverRemovesOldVoterAndAutoJoins."""
    old = ReplicaKey(NEW, key(9).directory_id)
    voters = VoterSet.of((*history().voters.voters, Voter(old, endpoints(NEW))))
    asked = following(patient(), VoterHistory().from_snapshot(2, voters, 1))
    removed = respond(asked.node, LEADER, RemoveRaftVoterResponse(), DUE_MS)
    without = fetched_voters(removed.node, history().voters, DUE_MS + 1)
    joins = respond(without.node, LEADER, EMPTY, DUE_MS + 2000)

    assert [request.body for request in asked.requests] == [RemoveRaftVoterRequest(CLUSTER, old)]
    assert bodies(removed) == [FetchRequest]
    assert [request.body for request in joins.requests] == [ADD]


@pytest.mark.parametrize(
    ("one", "level"),
    [
        (patient(auto_join=False), 1),
        (replace(patient(), can_become_voter=False), 1),
        (patient(), 0),
    ],
    ids=["auto join is off", "broker", "kraft.version 0"],
)
def test_others_do_not_join(one: Settings, level: int) -> None:
    """KafkaRaftClientAutoJoinTest.testObserversDoNotAutoJoin, testObserverDoesNotAddItselfWhenAutoJoinDisabled and ...WithKRaftVersion0."""
    ready = following(one, history(level=level))
    later = respond(ready.node, LEADER, EMPTY, DUE_MS + 5000)

    assert (bodies(ready), bodies(later)) == ([FetchRequest], [FetchRequest])


def moved(node_id: int = 1) -> Settings:
    """Return settings of a voter whose endpoints changed."""
    return replace(patient(node_id, auto_join=False), endpoints=endpoints(7))


def test_a_changed_voter_reports_itself_when_the_fetch_under_way_has_ended() -> None:
    """KafkaRaftClientReconfigTest.testFollowerSendsUpdateVoterIfPendingFetchDuringTimeout: one request at a time."""
    early = following(moved(), history(), now_ms=NOW_MS + 1000)
    node = replace(early.node, state=replace(early.node.state, fetch_due_ms=NOW_MS + 9000))
    waiting = step(node, Flushed(99), DUE_MS)
    asked = respond(waiting.node, LEADER, EMPTY, DUE_MS + 500)

    assert (bodies(early), waiting.requests) == ([FetchRequest], ())
    assert bodies(asked) == [UpdateRaftVoterRequest]


def test_a_report_counts_as_a_fetch_and_fetches_follow() -> None:
    """KafkaRaftClientReconfigTest.testFollowerSendsUpdateVoter: it shows that the leader is there."""
    asked = following(moved(), history())
    done = respond(asked.node, LEADER, UpdateRaftVoterResponse(leadership=FROM_LEADER), DUE_MS + 1500)

    assert [request.body for request in asked.requests] == [
        UpdateRaftVoterRequest(CLUSTER, EPOCH, key(1), endpoints(7), voter(1).kraft_versions)
    ]
    assert bodies(done) == [FetchRequest]
    assert getattr(done.node.state, "fetch_due_ms", None) == DUE_MS + 3500


def test_a_report_to_a_deposed_leader_finds_the_new_one() -> None:
    """KafkaRaftClientReconfigTest.testUpdateVoterResponseCausesEpochChange."""
    asked = following(moved(), history())
    known = Leadership(EPOCH + 1, OTHER, endpoints(OTHER)[0])
    found = respond(asked.node, LEADER, UpdateRaftVoterResponse(leadership=known), DUE_MS)

    assert [(request.destination.id, type(request.body)) for request in found.requests] == [(OTHER, FetchRequest)]
    assert found.node.epoch == EPOCH + 1


def test_an_unchanged_voter_reports_nothing_and_waits() -> None:
    """KafkaRaftClientReconfigTest.testFollowerSendsUpdateVoterWhenDifferent: the time of the next report that is not needed wakes nothing."""
    ready = following(patient(1, auto_join=False), history())

    assert bodies(ready) == [FetchRequest]
    assert ready.next_tick_ms > DUE_MS


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION])
def test_a_static_voter_reports_itself_once_to_each_leader(error: ErrorCode) -> None:
    """KafkaRaftClientReconfigTest.testFollowerSendsUpdateVoterWithKraftVersion0 and ...AfterElectionWithKraftVersion0."""
    asked = following(patient(1, auto_join=False), history(level=0))
    done = respond(asked.node, LEADER, UpdateRaftVoterResponse(error, FROM_LEADER), DUE_MS)
    later = respond(done.node, LEADER, EMPTY, DUE_MS + 1999)
    much_later = respond(later.node, LEADER, EMPTY, DUE_MS + 3998)
    elected = ask(much_later.node, begin(OTHER, EPOCH + 1), DUE_MS + 3998)
    known = Leadership(EPOCH + 1, OTHER, endpoints(OTHER)[0])
    again = respond(elected.node, OTHER, FetchResponse(leadership=known), DUE_MS + 5998)

    assert bodies(asked) == [UpdateRaftVoterRequest]
    assert [bodies(ready) for ready in (done, later, much_later, elected)] == [[FetchRequest]] * 4
    assert [(request.destination.id, type(request.body)) for request in again.requests] == [
        (OTHER, UpdateRaftVoterRequest)
    ]


def test_a_voter_set_that_is_fetched_counts_at_once() -> None:
    """KafkaRaftClientReconfigTest.testFollowerReadsKRaftBootstrapRecords: committed or not."""
    ready = following(patient(1, auto_join=False), history(), now_ms=NOW_MS + 100)
    learned = fetched_voters(ready.node, history(1, 2, 3, 4).voters, NOW_MS + 200).node

    assert learned.voters.ids == (1, 2, 3, 4)
    assert (learned.history.voters_offset, learned.log.high_watermark) == (3, 2)


def test_a_leader_without_the_api_gets_fetches_at_once_and_no_more_reports() -> None:
    """A leader before Kafka 3.9: the connection answers UNSUPPORTED_VERSION."""
    asked = following(patient(1, auto_join=False), history(level=0))
    too_old = respond(asked.node, LEADER, FailedResponse(ErrorCode.UNSUPPORTED_VERSION), DUE_MS)
    later = respond(too_old.node, LEADER, EMPTY, DUE_MS + 1999)
    much_later = respond(later.node, LEADER, EMPTY, DUE_MS + 3998)

    assert [(request.destination.id, type(request.body)) for request in too_old.requests] == [(LEADER, FetchRequest)]
    assert [bodies(ready) for ready in (later, much_later)] == [[FetchRequest]] * 2
