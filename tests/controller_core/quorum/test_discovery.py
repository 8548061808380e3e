"""Discovery of the leader, and steps of a node when the leader does not answer (Kafka's KafkaRaftClientTest)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from controller_core.quorum.batches import Batch, Position
from controller_core.quorum.inputs import Flushed, Response, SnapshotInstalled
from controller_core.quorum.log_view import LogView
from controller_core.quorum.messages import (
    BeginQuorumEpochResponse,
    EndQuorumEpochResponse,
    FailedResponse,
    FetchRequest,
    FetchResponse,
    Leadership,
    ResponseBody,
    UpdateRaftVoterResponse,
    VoteResponse,
)
from controller_core.quorum.node import Node, StoredElection
from controller_core.quorum.ready import Appended, Committed, Outgoing, Ready, Violation
from controller_core.quorum.rules import Destination
from controller_core.quorum.start import start
from controller_core.quorum.states import Follower, Prospective, Unattached
from controller_core.quorum.step import step, tick
from controller_core.quorum.voter_history import VoterHistory
from controller_core.quorum.voters import NO_NODE
from kafka_wire import ErrorCode
from tests.controller_core.quorum.nodes import (
    EPOCH,
    FROM_LEADER,
    LEADER,
    LOG,
    NOW_MS,
    OTHER,
    ask,
    begin,
    candidate,
    endpoints,
    fetch,
    follower,
    history,
    leader,
    observer,
    prospective,
    reply,
    resigned,
    respond,
    settings,
    started,
    unattached,
)

RECORDS = FetchResponse(leadership=FROM_LEADER, high_watermark=3, batches=(Batch(3, 3, EPOCH),))


def fetches(ready: Ready) -> list[Outgoing]:
    """Return the Fetches that a step sends."""
    return [request for request in ready.requests if isinstance(request.body, FetchRequest)]


def following_observer() -> Ready:
    """Start a controller that is no voter, and knows the leader."""
    return start(settings(4), StoredElection(EPOCH, LEADER), LOG, history(), 1, NOW_MS)


def test_a_node_without_voters_asks_the_bootstrap_servers() -> None:
    """KafkaRaftClientReconfigTest.testObserverDiscoversLeaderWithUnknownVoters: their ids are not known, and begin at -2."""
    one = replace(settings(4), bootstrap=(Destination(-2, "bootstrap", 1234),))
    (outgoing,) = start(one, StoredElection(EPOCH), LogView(), VoterHistory(), 1, NOW_MS).requests

    assert outgoing.destination == Destination(-2, "bootstrap", 1234)
    assert isinstance(outgoing.body, FetchRequest)
    assert (outgoing.body.fetched, outgoing.body.high_watermark) == (Position(0, 0), -1)


def test_a_server_that_fails_is_followed_by_another_one() -> None:
    """KafkaRaftClientTest.testObserverQuorumDiscoveryFailure: at once, and that server again after its backoff."""
    ready = start(settings(4), StoredElection(EPOCH), LOG, history(), 1, NOW_MS)
    asked = [ready.requests[0].destination.id]
    for now_ms in (NOW_MS, NOW_MS, NOW_MS, NOW_MS + 20):
        busy = ready.requests[0].destination.id if ready.requests else None
        ready = (
            tick(ready.node, now_ms)
            if busy is None
            else respond(ready.node, busy, FetchResponse(ErrorCode.UNKNOWN_SERVER_ERROR), now_ms)
        )
        asked += [request.destination.id for request in ready.requests]

    assert sorted(asked[:3]) == [-4, -3, -2]
    assert len(asked) == 4


@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NONE])
def test_a_voter_without_a_leader_follows_the_one_that_an_answer_names(error: ErrorCode) -> None:
    """With any error in the answer (testUnattachedAsVoterCanBecomeFollowerAfterFindingLeader)."""
    node = unattached()
    (server,) = node.connections.by_id
    found = respond(node, server, FetchResponse(error, FROM_LEADER))

    assert (type(found.node.state), found.node.leader_id) == (Follower, LEADER)
    assert [fetch.destination.id for fetch in fetches(found)] == [LEADER]


def test_a_voter_that_finds_no_leader_waits_for_its_election_timeout() -> None:
    """KafkaRaftClientTest.testInitializeAsUnattachedAndBecomeLeader: an answer without a leader changes nothing."""
    node = unattached()
    (server,) = node.connections.by_id
    answer = FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, Leadership(EPOCH, NO_NODE))
    answered = respond(node, server, answer, NOW_MS + 500).node

    assert answered.state == node.state
    assert isinstance(tick(answered, NOW_MS + 2000).node.state, Prospective)


def test_a_leader_that_is_not_available_is_left_for_a_bootstrap_server() -> None:
    """KafkaRaftClientTest.testObserverLeaderRediscoveryAfterBrokerNotAvailableError, and of a follower: a leader that shuts down answers so."""
    for ready in (following_observer(), started(StoredElection(EPOCH, LEADER))):
        answer = FetchResponse(ErrorCode.BROKER_NOT_AVAILABLE, Leadership(EPOCH, NO_NODE))
        other = respond(ready.node, LEADER, answer)
        confirmed = FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, FROM_LEADER)
        (outgoing,) = fetches(other)
        again = respond(other.node, outgoing.destination.id, confirmed).node

        assert [fetch.destination.id for fetch in fetches(ready)] == [LEADER]
        assert outgoing.destination.id < 0
        assert (type(again.state), again.leader_id) == (Follower, LEADER)


def test_a_leader_that_does_not_answer_and_a_server_that_does_not_take_turns() -> None:
    """KafkaRaftClientTest.testObserverFollowerSendFetchToBestNode, testObserverHandleRetryFetchToLeader: one Fetch at a time."""
    ready = following_observer()
    sent = [fetch.destination.id for fetch in fetches(ready)]
    for now_ms in (2000, 3999, 4000):
        ready = tick(ready.node, NOW_MS + now_ms)
        sent += [fetch.destination.id for fetch in fetches(ready)]

    assert [node_id < 0 for node_id in sent] == [False, True, False]


def test_the_late_response_of_a_leader_is_not_appended_after_that_of_the_server() -> None:
    """KafkaRaftClientTest.testObserverHandleRetryFetchToBootstrapServer: both have the same records."""
    ready = following_observer()
    retried = tick(ready.node, NOW_MS + 2000)
    late = step(retried.node, Response(LEADER, ready.requests[0].correlation_id, RECORDS), NOW_MS + 2001)
    answered = respond(late.node, retried.requests[0].destination.id, RECORDS, NOW_MS + 2002)

    assert (late.log, late.node) == ((), retried.node)
    assert answered.log == (Appended(RECORDS.batches),)


@pytest.mark.parametrize(
    "change",
    [lambda node: tick(node, NOW_MS + 1999).node, lambda node: ask(node, begin(OTHER, EPOCH + 1)).node],
    ids=["asks for votes", "follows another leader"],
)
def test_what_a_leader_of_before_sends_is_not_appended(change: Callable[[Node], Node]) -> None:
    """KafkaRaftClientTest.testFetchResponseIgnoredAfterBecomingProspective, testFetchResponseIgnoredAfterBecomingFollowerOfDifferentLeader."""
    ready = started(StoredElection(EPOCH, LEADER))
    node = replace(ready.node, state=replace(ready.node.state, fetch_due_ms=NOW_MS + 1999))
    changed = change(node)
    late = step(changed, Response(LEADER, ready.requests[0].correlation_id, RECORDS), NOW_MS + 1999)

    assert type(changed.state) is not Follower or changed.leader_id == OTHER
    assert (late.log, late.node) == ((), changed)


def test_an_empty_answer_raises_the_high_watermark() -> None:
    """KafkaRaftClientTest.testEmptyRecordSetInFetchResponse: the records came before."""
    appended = respond(follower(), LEADER, RECORDS)
    flushed = step(appended.node, Flushed(appended.flush or 0), NOW_MS)
    empty = respond(flushed.node, LEADER, FetchResponse(leadership=FROM_LEADER, high_watermark=4))

    assert (empty.log, empty.notices) == ((), (Committed(4),))
    (request,) = fetches(empty)
    assert isinstance(request.body, FetchRequest)
    assert (request.body.fetched, request.body.high_watermark) == (Position(4, EPOCH), 4)


def test_a_high_watermark_below_the_known_one_is_left() -> None:
    """FollowerStateTest.testMonotonicHighWatermark: the answer of a leader that does not know it yet; Kafka's follower fails."""
    known = respond(follower(), LEADER, FetchResponse(leadership=FROM_LEADER, high_watermark=3)).node
    for high_watermark in (-1, 2, 3):
        lower = respond(known, LEADER, FetchResponse(leadership=FROM_LEADER, high_watermark=high_watermark))
        assert (lower.node.high_watermark, lower.notices) == (3, ())


def test_what_is_known_as_committed_is_not_announced_again() -> None:
    """After a restart, or an election: the state machine has applied it."""
    ready = respond(follower(), LEADER, FetchResponse(leadership=FROM_LEADER, high_watermark=LOG.high_watermark))

    assert (ready.node.high_watermark, ready.notices) == (LOG.high_watermark, ())


def test_only_replicas_that_may_vote_flush_what_they_fetch() -> None:
    """KafkaRaftClientTest.testObserverReplication: a broker's log of the quorum is rebuilt from its leader; it fetches again at once."""
    for can_become_voter in (True, False):
        one = replace(settings(4), can_become_voter=can_become_voter)
        node = start(one, StoredElection(EPOCH, LEADER), LOG, history(), 1, NOW_MS).node
        ready = respond(node, LEADER, RECORDS)
        assert (ready.flush is not None, len(fetches(ready))) == (can_become_voter, int(not can_become_voter))


def test_a_fetch_has_the_sizes_and_the_wait_of_the_settings() -> None:
    """KafkaRaftClientFetchTest.testSentFetchUsesQuorumMaxBytesConfiguration: controller.quorum.fetch.max.bytes."""
    one = replace(settings(), fetch_max_bytes=1024, fetch_max_wait_ms=300)
    (outgoing,) = start(one, StoredElection(EPOCH, LEADER), LOG, history(), 1, NOW_MS).requests

    assert isinstance(outgoing.body, FetchRequest)
    assert (outgoing.body.max_bytes, outgoing.body.max_wait_ms) == (1024, 300)


ANSWERS: list[tuple[Callable[[], Node], int, ResponseBody]] = [
    (follower, LEADER, FetchResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)),
    (leader, OTHER, BeginQuorumEpochResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)),
    (candidate, OTHER, VoteResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)),
    (prospective, OTHER, VoteResponse(ErrorCode.INCONSISTENT_CLUSTER_ID)),
    (resigned, OTHER, EndQuorumEpochResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)),
    (follower, LEADER, UpdateRaftVoterResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)),
    (follower, LEADER, FailedResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)),
]


@pytest.mark.parametrize(("make", "source", "answer"), ANSWERS)
def test_a_node_that_may_not_ask_reports_it_and_goes_on(
    make: Callable[[], Node], source: int, answer: ResponseBody
) -> None:
    """KafkaRaftClientClusterAuthTest: Kafka's process ends; this one backs off, so that mended rights need no restart."""
    node = make()
    ready = respond(node, source, answer)

    assert ready.notices == (Violation(f"node {source} rejected a request with {answer.error.name}"),)
    assert type(ready.node.state) is type(node.state)
    assert ready.node.connections.is_backing_off(source, NOW_MS)


def test_an_installed_snapshot_may_make_an_observer_a_voter() -> None:
    """It then has an election timeout."""
    node = replace(observer(), installing=Position(8, EPOCH))
    installed = step(node, SnapshotInstalled(Position(8, EPOCH), 10, history(1, 2, 4).voters, 1), NOW_MS).node

    assert isinstance(installed.state, Unattached)
    assert isinstance(tick(installed, NOW_MS + 2000).node.state, Prospective)


def test_a_leader_that_follows_answers_an_old_follower_with_the_new_leader() -> None:
    """A Fetch of its own former epoch: FENCED_LEADER_EPOCH with the endpoint."""
    deposed = ask(leader(), begin(LEADER, EPOCH + 1)).node
    response = reply(ask(deposed, fetch(OTHER, 4, EPOCH)))

    assert response == FetchResponse(ErrorCode.FENCED_LEADER_EPOCH, Leadership(EPOCH + 1, LEADER, endpoints(LEADER)[0]))


@pytest.mark.shows("Q8")
@pytest.mark.parametrize(
    "known",
    [Leadership(EPOCH - 1, LEADER, endpoints(LEADER)[0]), Leadership(EPOCH + 1, OTHER, endpoints(OTHER)[0])],
    ids=["earlier", "later"],
)
def test_records_of_another_epoch_than_the_followers_are_not_appended(known: Leadership) -> None:
    """KafkaRaftClient.maybeHandleCommonResponse: an answer of an earlier epoch is dropped, one of a later epoch is news of it only."""
    ready = respond(follower(), LEADER, replace(RECORDS, leadership=known))

    assert ready.log == ()
    assert (ready.node.epoch, ready.node.high_watermark) == (max(EPOCH, known.epoch), None)


@pytest.mark.shows("Q10")
def test_a_truncation_counts_as_a_fetch_and_a_refused_one_does_not() -> None:
    """A follower that refuses it would follow a leader that has lost records forever."""
    truncated = respond(follower(), LEADER, FetchResponse(leadership=FROM_LEADER, diverging=Position(2, 4)), NOW_MS + 9)
    refused = respond(follower(), LEADER, FetchResponse(leadership=FROM_LEADER, diverging=Position(1, 4)), NOW_MS + 9)
    unshared = respond(follower(), LEADER, FetchResponse(leadership=FROM_LEADER, diverging=Position(5, 3)))

    assert [fetch.destination.id for fetch in fetches(truncated)] == [LEADER]
    assert getattr(truncated.node.state, "fetch_due_ms", None) == NOW_MS + 2009
    assert (refused.node.state, unshared.node.state) == (follower().state, follower().state)
    assert (refused.log, unshared.log) == ((), ())
    assert refused.node.connections.is_backing_off(LEADER, NOW_MS + 9)
