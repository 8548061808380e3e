"""Requests for votes and their answers: checks, lost and late answers (Kafka's KafkaRaftClientTest and KafkaRaftClientPreVoteTest)."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from controller_core.quorum.batches import Position
from controller_core.quorum.inputs import Flushed, Response, Shutdown
from controller_core.quorum.messages import (
    BeginQuorumEpochResponse,
    FailedResponse,
    Leadership,
    VoteRequest,
    VoteResponse,
)
from controller_core.quorum.node import Node
from controller_core.quorum.ready import Ready, Violation
from controller_core.quorum.rules import Rules
from controller_core.quorum.states import Candidate, Follower, Leader, Prospective, Unattached
from controller_core.quorum.step import step, tick
from controller_core.quorum.voters import ReplicaKey
from kafka_wire import ErrorCode
from tests.controller_core.quorum.nodes import (
    CLUSTER,
    EPOCH,
    LATER_MS,
    LEADER,
    NOW_MS,
    OTHER,
    ask,
    begin,
    candidate,
    committed,
    endpoints,
    follower,
    leader,
    prospective,
    reply,
    respond,
    settings,
    unattached,
    vote,
)

SAME = Position(3, 4)
YES = VoteResponse(leadership=Leadership(EPOCH), granted=True)
NO = replace(YES, granted=False)


def asked(ready: Ready) -> list[int]:
    """Return the voters that are asked for a vote or pre-vote."""
    return sorted(request.destination.id for request in ready.requests if isinstance(request.body, VoteRequest))


@pytest.mark.parametrize("pre_vote", [False, True])
@pytest.mark.parametrize(
    ("cluster_id", "error"),
    [
        (CLUSTER, ErrorCode.NONE),
        (None, ErrorCode.NONE),
        ("", ErrorCode.INCONSISTENT_CLUSTER_ID),
        ("other", ErrorCode.INCONSISTENT_CLUSTER_ID),
    ],
)
def test_a_vote_is_for_its_cluster_or_for_any(*, cluster_id: str | None, error: ErrorCode, pre_vote: bool) -> None:
    """KafkaRaftClientTest.testVoteRequestClusterIdValidation, testPreVoteRequestClusterIdValidation; an empty id is another one."""
    response = reply(ask(leader(), replace(vote(3, EPOCH, SAME, pre_vote=pre_vote), cluster_id=cluster_id)))
    known = leader().leadership("CONTROLLER") if error is ErrorCode.NONE else Leadership()

    assert response == VoteResponse(error, known)


@pytest.mark.parametrize(
    ("last", "pre_vote"),
    [
        (Position(-5, 0), False),
        (Position(0, -1), False),
        (Position(0, EPOCH + 1), False),
        (Position(-5, 0), True),
        (Position(0, -1), True),
        (Position(0, EPOCH + 2), True),
    ],
)
def test_a_malformed_vote_is_refused_and_changes_nothing(*, last: Position, pre_vote: bool) -> None:
    """KafkaRaftClientTest.testInvalidVoteRequest, testInvalidPreVoteRequest: not even the epoch, though it is higher."""
    node = follower()
    ready = ask(node, vote(OTHER, EPOCH + 1, last, pre_vote=pre_vote))

    assert reply(ready) == VoteResponse(ErrorCode.INVALID_REQUEST, node.leadership("CONTROLLER"))
    assert (ready.node.state, ready.election) == (node.state, None)


def test_a_prospective_candidate_may_have_a_record_of_its_epoch() -> None:
    """It has not raised the epoch; a candidate of that epoch cannot have one."""
    last = Position(9, EPOCH)
    granted = reply(ask(unattached(), vote(OTHER, EPOCH, last, pre_vote=True)))

    assert granted == VoteResponse(leadership=Leadership(EPOCH), granted=True)


@pytest.mark.parametrize("pre_vote", [False, True])
@pytest.mark.parametrize("other", [ReplicaKey(7, UUID(int=1)), ReplicaKey(1, UUID(int=9))])
def test_a_vote_for_another_replica_is_refused_in_its_epoch(*, other: ReplicaKey, pre_vote: bool) -> None:
    """KafkaRaftClientTest.testInvalidVoterReplicaVoteRequest: another voter has the address in the meantime; the epoch still counts."""
    body = replace(vote(OTHER, EPOCH + 1, Position(100, EPOCH), pre_vote=pre_vote), voter=other)
    ready = ask(leader(), body)

    assert reply(ready) == VoteResponse(ErrorCode.INVALID_VOTER_KEY, Leadership(EPOCH + 1))
    assert (type(ready.node.state), ready.node.voted) == (Unattached, None)


def test_a_vote_without_a_voter_is_for_every_voter() -> None:
    """Vote 0 names none."""
    response = reply(ask(unattached(), replace(vote(OTHER, EPOCH, SAME), voter=None)))

    assert response == YES


def test_votes_are_granted_while_the_node_shuts_down() -> None:
    """KafkaRaftClientTest.testGrantVotesWhenShuttingDown: a leader that hands over helps to elect the next one."""
    node = step(committed(), Shutdown(1000), NOW_MS).node
    response = reply(ask(node, vote(OTHER, EPOCH + 1, Position(4, EPOCH))))

    assert response == VoteResponse(leadership=Leadership(EPOCH + 1), granted=True)


@pytest.mark.shows("Q15")
def test_a_vote_is_repeated_in_the_step_that_starts_the_next_election() -> None:
    """Q15: with 3.x's rules the epoch of its own election is stored before the vote is sent again; the vote was stored before."""
    ready = ask(unattached(Rules.KAFKA_3, voted=OTHER), vote(OTHER, EPOCH, SAME), LATER_MS)

    assert reply(ready) == YES
    assert ready.election is not None
    assert (ready.election.epoch, ready.election.voted) == (EPOCH + 1, ready.node.key)


@pytest.mark.parametrize("make", [prospective, candidate])
def test_a_vote_that_is_not_answered_is_asked_for_again_and_its_late_answer_ignored(make: Callable[[], Node]) -> None:
    """KafkaRaftClientTest.testVoteRequestTimeout, testPreVoteRequestTimeout."""
    node = replace(make(), settings=replace(make().settings, request_timeout_ms=500))
    node = replace(node, connections=node.connections.reset())
    sent = tick(node, LATER_MS - 1500)
    again = tick(sent.node, LATER_MS - 1000)
    late = step(again.node, Response(OTHER, sent.requests[-1].correlation_id, YES), LATER_MS - 1000).node
    won = respond(late, OTHER, YES, LATER_MS - 1000).node

    assert (asked(sent), asked(again)) == ([2, 3], [2, 3])
    assert late == again.node
    assert type(won.state) is (Candidate if make is prospective else Leader)


def test_a_vote_that_fails_is_asked_for_again_after_a_backoff() -> None:
    """Only of the voter whose answer is missing."""
    failed = respond(candidate(), OTHER, FailedResponse(ErrorCode.NETWORK_EXCEPTION)).node

    assert asked(tick(failed, NOW_MS + 19)) == []
    assert asked(tick(failed, NOW_MS + 20)) == [OTHER]


@pytest.mark.parametrize("make", [prospective, candidate])
def test_votes_that_come_after_the_winner_are_ignored(make: Callable[[], Node]) -> None:
    """KafkaRaftClientTest.testVoteResponseIgnoredAfterBecomingFollower, testPreVoteResponseIgnoredAfterBecomingFollower."""
    asking = make()
    followed = ask(asking, begin(OTHER, EPOCH)).node
    requests = [
        (other_id, flight) for other_id, flight in asking.connections.by_id.items() if other_id in {LEADER, OTHER}
    ]
    late = followed
    for source, flight in requests:
        late = step(late, Response(source, getattr(flight, "correlation_id", 0), YES), NOW_MS).node

    assert len(requests) == 2
    assert late == followed
    assert (type(late.state), late.leader_id) == (Follower, OTHER)


def test_a_pre_vote_that_names_a_leader_is_an_answer_to_the_search_for_it() -> None:
    """KafkaRaftClientPreVoteTest.testProspectiveWithoutLeaderTransitionsToFollower: granted or not."""
    known = Leadership(EPOCH, LEADER, endpoints(LEADER)[0])
    node = respond(prospective(), OTHER, replace(YES, leadership=known)).node

    assert (type(node.state), node.leader_id) == (Follower, LEADER)


def test_a_pre_vote_of_a_later_epoch_names_its_leader() -> None:
    """KafkaRaftClientPreVoteTest.testProspectiveWithLeaderTransitionsToFollower, the last part."""
    known = Leadership(EPOCH + 1, OTHER, endpoints(OTHER)[0])
    asking = tick(follower(), LATER_MS).node
    node = respond(asking, LEADER, VoteResponse(ErrorCode.FENCED_LEADER_EPOCH, known), LATER_MS).node

    assert (type(node.state), node.epoch, node.leader_id) == (Follower, EPOCH + 1, OTHER)


def test_a_pre_vote_that_times_out_returns_to_the_known_leader_or_begins_again() -> None:
    """KafkaRaftClientPreVoteTest.testProspectiveTransitionsToUnattachedOnElectionFailure, testProspectiveWithLeaderTransitionsToFollower."""
    answered = respond(prospective(), OTHER, NO, LATER_MS).node
    unknown = tick(answered, LATER_MS + 2000).node
    known = tick(tick(follower(), LATER_MS).node, LATER_MS + 2000).node

    assert isinstance(unknown.state, Prospective)
    assert [other_id.id for other_id in unknown.state.votes.missing] == [LEADER, OTHER]
    assert unknown.state.election_due_ms >= LATER_MS + 3000
    assert isinstance(known.state, Follower)
    assert isinstance(tick(known, LATER_MS + 4000).node.state, Prospective)


def test_a_candidate_without_pre_votes_among_its_voters_asks_for_pre_votes_again_later() -> None:
    """KafkaRaftClientPreVoteTest.testPreVoteNotSupportedByRemote: the next election begins with them, and later refusals of the same kind change nothing."""
    too_old = VoteResponse(ErrorCode.UNSUPPORTED_VERSION)
    campaigning = respond(prospective(), LEADER, too_old, LATER_MS).node
    again = tick(campaigning, LATER_MS + 2000).node
    won = respond(again, LEADER, replace(YES, leadership=Leadership(EPOCH + 1)), LATER_MS + 2000).node
    refused = respond(won, OTHER, too_old, LATER_MS + 2000).node

    assert [type(some_node.state) for some_node in (campaigning, again, won)] == [Candidate, Prospective, Candidate]
    assert (refused.state, refused.epoch) == (won.state, EPOCH + 2)


def test_an_election_leaves_out_voters_without_an_address() -> None:
    """Their voter set entry has no endpoint on the quorum's listener; the others are asked."""
    node = prospective()
    voters = [replace(voter, endpoints=()) if voter.key.id == OTHER else voter for voter in node.voters.voters]
    history = node.history.from_snapshot(2, replace(node.voters, voters=tuple(voters)), 1)
    node = replace(node, history=history, connections=node.connections.reset())

    assert asked(tick(node, LATER_MS)) == [LEADER]


def test_votes_are_not_asked_for_before_the_flush_that_a_campaign_waits_for() -> None:
    """They are sent when it ends."""
    node = candidate()
    log = replace(node.log, flushed_offset=2).start_flush()
    waiting = replace(node, log=log, connections=node.connections.reset())

    assert asked(tick(waiting, NOW_MS)) == []
    assert asked(step(waiting, Flushed(log.flush_count), NOW_MS)) == [2, 3]


def test_a_candidate_backs_off_from_a_voter_that_does_not_have_the_version() -> None:
    """Only a pre-vote is left out for it: a candidate's Vote has an older version."""
    node = candidate()
    ready = respond(node, OTHER, FailedResponse(ErrorCode.UNSUPPORTED_VERSION))

    assert ready.node.state == node.state
    assert ready.node.connections.is_backing_off(OTHER, NOW_MS)


def test_node_0_is_a_node_and_one_below_is_none() -> None:
    """KafkaRaftClient.validateVoterOnlyRequest: ids begin at 0."""
    zero = ask(unattached(), vote(0, EPOCH, SAME))
    none = ask(unattached(), replace(vote(OTHER, EPOCH, SAME), candidate=ReplicaKey(-1)))

    assert reply(zero) == YES
    assert reply(none) == VoteResponse(ErrorCode.INVALID_REQUEST, Leadership(EPOCH))
    assert reply(ask(unattached(), begin(0, EPOCH))) == BeginQuorumEpochResponse(
        leadership=Leadership(EPOCH, 0, endpoints(0)[0])
    )


def test_kafka_3s_rules_refuse_pre_votes() -> None:
    """As a node without Vote 2 does, without a leader in the answer."""
    response = reply(ask(candidate(own=settings(rules=Rules.KAFKA_3)), vote(OTHER, EPOCH, SAME, pre_vote=True)))

    assert response == VoteResponse(ErrorCode.UNSUPPORTED_VERSION)


def test_a_refusal_as_invalid_is_reported_and_not_repeated_at_once() -> None:
    """Kafka's node ends with IllegalStateException: one of the two has a defect."""
    ready = respond(candidate(), OTHER, VoteResponse(ErrorCode.INVALID_REQUEST, Leadership(EPOCH)))

    assert ready.notices == (Violation("another node refused a request as invalid"),)
    assert ready.node.connections.is_backing_off(OTHER, NOW_MS)
