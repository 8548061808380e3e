"""Elections by both rows of rules: pre-votes, lost elections, successors, and peers that are too old."""

from dataclasses import replace

import pytest

from controller_core.quorum.elections import electorate, may_grant
from controller_core.quorum.inputs import Resign, Shutdown
from controller_core.quorum.messages import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FailedResponse,
    FetchResponse,
    Leadership,
    VoteRequest,
    VoteResponse,
)
from controller_core.quorum.node import Node, StoredElection
from controller_core.quorum.ready import LeaderChanged, Stopped
from controller_core.quorum.rules import Rules
from controller_core.quorum.start import start
from controller_core.quorum.states import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from controller_core.quorum.step import step, tick
from kafka_wire import ErrorCode
from tests.controller_core.quorum.nodes import (
    EPOCH,
    LATER_MS,
    LEADER,
    LOG,
    NOW_MS,
    OTHER,
    ask,
    begin,
    candidate,
    committed,
    endpoints,
    fetch,
    follower,
    history,
    key,
    leader,
    observer,
    prospective,
    resigned,
    respond,
    settings,
    unattached,
)

"""After every election timeout that started at NOW_MS."""

NO = VoteResponse(leadership=Leadership(EPOCH))
YES = replace(NO, granted=True)


def refused(node: Node) -> Node:
    """Return a node that no other voter votes for."""
    return respond(respond(node, LEADER, NO).node, OTHER, NO).node


def test_a_pre_vote_of_a_majority_makes_a_candidate_of_the_next_epoch() -> None:
    """KIP-996. Its own vote is on disk before it asks."""
    ready = respond(prospective(), OTHER, YES, LATER_MS)

    assert isinstance(ready.node.state, Candidate)
    assert ready.node.epoch == EPOCH + 1
    assert ready.election is not None
    assert (ready.election.epoch, ready.election.voted) == (EPOCH + 1, key(1))
    assert all(isinstance(request.body, VoteRequest) and not request.body.pre_vote for request in ready.requests)


def test_a_lost_pre_vote_raises_no_epoch() -> None:
    """A follower goes on to follow; without a leader it waits for another election timeout."""
    unknown = refused(prospective())
    known = refused(tick(follower(), LATER_MS).node)

    assert isinstance(unknown.state, Unattached)
    assert isinstance(known.state, Follower)
    assert (unknown.epoch, known.epoch, known.leader_id) == (EPOCH, EPOCH, LEADER)


@pytest.mark.parametrize(
    "answer", [FailedResponse(ErrorCode.UNSUPPORTED_VERSION), VoteResponse(ErrorCode.UNSUPPORTED_VERSION)]
)
def test_a_voter_without_pre_votes_makes_a_candidate_at_once(answer: FailedResponse | VoteResponse) -> None:
    """Peers before Kafka 4 have no Vote 2."""
    ready = respond(prospective(), OTHER, answer, LATER_MS)

    assert isinstance(ready.node.state, Candidate)
    assert ready.node.epoch == EPOCH + 1


def test_a_lost_candidate_waits_for_the_rest_of_its_timeout() -> None:
    """Kafka 4: it asks no one else, and then for pre-votes in its epoch."""
    lost = refused(candidate())
    later = tick(lost, LATER_MS)

    assert isinstance(lost.state, Candidate)
    assert tick(lost, NOW_MS + 500).requests == ()
    assert isinstance(later.node.state, Prospective)
    assert (later.node.epoch, later.node.voted) == (EPOCH, key(1))


def test_a_lost_candidate_of_kafka_3_backs_off_and_tries_the_next_epoch() -> None:
    """Binary exponential backoff, at most a second."""
    lost = refused(candidate(own=settings(rules=Rules.KAFKA_3)))
    assert isinstance(lost.state, Candidate)
    assert lost.state.backoff_until_ms is not None

    again = tick(lost, lost.state.backoff_until_ms)

    assert lost.state.backoff_until_ms <= NOW_MS + 1000
    assert tick(lost, NOW_MS).next_tick_ms == lost.state.backoff_until_ms
    assert isinstance(again.node.state, Candidate)
    assert (again.node.epoch, again.node.state.retries) == (EPOCH + 1, 2)


def test_votes_of_a_majority_make_the_leader_on_disk_before_it_announces_itself() -> None:
    """Its first batch follows, and the others are asked to follow."""
    ready = respond(candidate(), OTHER, YES)

    assert isinstance(ready.node.state, Leader)
    assert ready.election is not None
    assert (ready.election.epoch, ready.election.leader_id, ready.election.voted) == (EPOCH, 1, None)
    assert LeaderChanged(EPOCH, 1, 3) in ready.notices
    assert sorted(request.destination.id for request in ready.requests) == [2, 3]


def test_a_candidate_follows_the_winner() -> None:
    """Of its own epoch; its vote for itself stays."""
    node = ask(candidate(), begin(LEADER, EPOCH)).node

    assert isinstance(node.state, Follower)
    assert (node.leader_id, node.voted) == (LEADER, key(1))


def test_a_candidate_asks_for_votes_once_its_log_is_on_disk() -> None:
    """Else a crash could shorten the log that it was elected for, and voters would vote for it again in the same epoch."""
    node = replace(prospective(), log=replace(prospective().log, flushed_offset=2))
    ready = respond(node, OTHER, YES, LATER_MS)

    assert isinstance(ready.node.state, Candidate)
    assert ready.requests == ()


@pytest.mark.parametrize(("position", "wait_ms"), [(0, 0), (1, 500), (2, 1000)])
def test_a_successor_waits_by_its_place(position: int, wait_ms: int) -> None:
    """Strict exponential backoff; one that is not named waits longest."""
    others = [key(8), key(9)]
    others.insert(position, key(1))
    body = EndQuorumEpochRequest(None, EPOCH, LEADER, tuple(others)[:2], endpoints(LEADER))
    ready = ask(follower(), body)

    assert isinstance(ready.node.state, Follower if wait_ms else Prospective)
    assert wait_ms == 0 or isinstance(tick(ready.node, NOW_MS + wait_ms - 1).node.state, Follower)
    assert isinstance(tick(ready.node, NOW_MS + wait_ms).node.state, Prospective)


def test_a_follower_grants_pre_votes_once_its_leader_has_resigned() -> None:
    """Of five voters the first successor else gets only its own pre-vote and the old leader's, and the second one is elected later."""
    body = EndQuorumEpochRequest(None, EPOCH, LEADER, (key(OTHER), key(1)), endpoints(LEADER))
    before = follower(has_fetched=True)
    after = ask(before, body).node

    assert [may_grant(found_node, key(OTHER), up_to_date=True, pre_vote=True) for found_node in (before, after)] == [
        False,
        True,
    ]


def test_followers_of_one_leader_campaign_at_different_times() -> None:
    """Each draws its fetch timeout around the setting, and keeps it as long as it follows this leader."""
    stored, own = StoredElection(EPOCH, LEADER), replace(settings(), fetch_timeout_spread_ms=100)
    nodes = [start(own, stored, LOG, history(), seed, NOW_MS).node for seed in range(20)]
    waits_ms = [node.state.fetch_timeout_ms for node in nodes if isinstance(node.state, Follower)]
    fetched = respond(nodes[0], LEADER, FetchResponse(leadership=Leadership(EPOCH, LEADER)), NOW_MS + 7).node

    assert len(waits_ms) == len(nodes)
    assert len(set(waits_ms)) > len(nodes) / 2
    assert all(1950 <= wait_ms < 2050 for wait_ms in waits_ms)
    assert getattr(fetched.state, "fetch_due_ms", None) == NOW_MS + 7 + waits_ms[0]


@pytest.mark.shows("Q12")
def test_a_leader_resigns_after_one_and_a_half_fetch_timeouts_without_a_majority() -> None:
    """A fetch of one of two other voters is enough for another period."""
    silent = tick(leader(), NOW_MS + 3000)
    followed = ask(leader(), fetch(OTHER, 4, EPOCH), NOW_MS + 2000).node

    assert isinstance(silent.node.state, Resigned)
    assert LeaderChanged(EPOCH, None) in silent.notices
    assert isinstance(tick(followed, NOW_MS + 4999).node.state, Leader)
    assert isinstance(tick(followed, NOW_MS + 5000).node.state, Resigned)


def test_a_leader_announces_itself_again_only_to_voters_that_do_not_fetch() -> None:
    """Every half fetch timeout."""
    node = ask(leader(), fetch(OTHER, 4, EPOCH), NOW_MS + 900).node
    node = replace(node, connections=node.connections.reset())

    ready = tick(node, NOW_MS + 1000)

    assert [request.destination.id for request in ready.requests] == [LEADER]


def test_a_leader_that_resigns_names_the_longest_logs_first() -> None:
    """They are elected at once, one after the other."""
    ready = step(committed(), Resign(EPOCH), NOW_MS)

    bodies = [request.body for request in ready.requests]
    assert all(isinstance(body, EndQuorumEpochRequest) for body in bodies)
    assert {body.successors for body in bodies if isinstance(body, EndQuorumEpochRequest)} == {
        (key(OTHER), key(LEADER))
    }


def test_a_resigned_leader_notifies_each_voter_once_and_leaves_with_the_next_epoch() -> None:
    """A response in its old epoch would still name it as the leader."""
    node = respond(resigned(), OTHER, EndQuorumEpochResponse(leadership=Leadership(EPOCH, 1))).node
    again = tick(replace(node, connections=node.connections.reset()), NOW_MS + 10)
    later = tick(node, NOW_MS + 2000).node

    assert [request.destination.id for request in again.requests] == [LEADER]
    assert later.epoch == EPOCH + 1


def test_a_shutdown_ends_late_if_no_other_node_leads() -> None:
    """The voter stays in its state until then, and starts no election."""
    node = step(unattached(), Shutdown(1000), NOW_MS).node
    waiting, late = tick(node, NOW_MS + 999), tick(node, NOW_MS + 1000)

    assert (waiting.notices, late.notices) == ((), (Stopped(timed_out=True),))
    assert isinstance(late.node.state, Unattached)
    assert tick(late.node, NOW_MS + 9000).requests == ()


def test_a_candidate_that_shuts_down_may_still_win_and_hand_over() -> None:
    """It starts no other election."""
    node = step(candidate(), Shutdown(60_000), NOW_MS).node

    assert isinstance(tick(node, LATER_MS).node.state, Candidate)
    assert isinstance(respond(node, OTHER, YES).node.state, Resigned)


def test_a_candidate_of_kafka_3_backs_off_when_its_time_is_over() -> None:
    """Without answers, as after a lost election; the next step is due at the end of the backoff."""
    ready = tick(candidate(own=settings(rules=Rules.KAFKA_3)), LATER_MS)

    assert isinstance(ready.node.state, Candidate)
    assert ready.node.state.backoff_until_ms is not None
    assert LATER_MS <= ready.node.state.backoff_until_ms == ready.next_tick_ms


def test_a_resigned_leader_wakes_up_at_its_election_timeout_unless_it_shuts_down() -> None:
    """Also when all voters have answered."""
    node = resigned()
    for voter_id in (LEADER, OTHER):
        ready = respond(node, voter_id, EndQuorumEpochResponse(leadership=Leadership(EPOCH, 1)))
        node = ready.node

    assert isinstance(node.state, Resigned)
    assert ready.next_tick_ms == node.state.election_due_ms
    assert step(node, Shutdown(60_000), NOW_MS).next_tick_ms == NOW_MS + 60_000


def test_the_electorate_of_a_voter_are_the_other_voters_and_an_observer_has_none() -> None:
    """A voter keeps connections to them; an observer asks for no votes."""
    assert [voter_key.id for voter_key in electorate(follower())] == [LEADER, OTHER]
    assert electorate(observer()) == ()
