"""BeginQuorumEpoch, EndQuorumEpoch, Fetch and appends at each state: checks and effects (Kafka's KafkaRaftClientTest)."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from controller_core.quorum.batches import LeaderChangeRecord, Position
from controller_core.quorum.inputs import Append, Flushed, Request, Resign, Shutdown
from controller_core.quorum.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    Leadership,
    ReadRange,
    RequestBody,
)
from controller_core.quorum.node import Node, StoredElection
from controller_core.quorum.ready import Appended, AppendResult, LeaderChanged, Reply, Stopped
from controller_core.quorum.rules import RESPONSE_BYTES_MAX
from controller_core.quorum.start import start
from controller_core.quorum.states import Follower, Prospective, Resigned, Unattached
from controller_core.quorum.step import step, tick
from controller_core.quorum.voters import ReplicaKey
from kafka_wire import ErrorCode
from tests.controller_core.quorum.nodes import (
    CLUSTER,
    EPOCH,
    LEADER,
    LISTENER,
    LOG,
    NOW_MS,
    OTHER,
    ask,
    begin,
    candidate,
    committed,
    elected,
    endpoints,
    fetch,
    follower,
    history,
    key,
    leader,
    prospective,
    reply,
    resigned,
    settings,
    unattached,
    vote,
)

END = EndQuorumEpochRequest(CLUSTER, EPOCH, LEADER, (key(1), key(OTHER)), endpoints(LEADER))


@pytest.mark.parametrize(("cluster_id", "accepted"), [(CLUSTER, True), (None, True), ("", False), ("other", False)])
@pytest.mark.parametrize(
    "body",
    [
        replace(begin(1, EPOCH), voter=key(1)),
        EndQuorumEpochRequest(CLUSTER, EPOCH, 1, (key(OTHER),), endpoints(1)),
        fetch(OTHER, 4, EPOCH),
    ],
    ids=["begin", "end", "fetch"],
)
def test_a_request_is_for_its_cluster_or_for_any(*, body: RequestBody, cluster_id: str | None, accepted: bool) -> None:
    """Cases ClusterIdValidation of each API: an empty id is another one, and the leader is not named to another cluster."""
    assert isinstance(body, BeginQuorumEpochRequest | EndQuorumEpochRequest | FetchRequest)
    response = reply(ask(committed(), replace(body, cluster_id=cluster_id)))

    assert isinstance(response, BeginQuorumEpochResponse | EndQuorumEpochResponse | FetchResponse)
    assert response.error is (ErrorCode.NONE if accepted else ErrorCode.INCONSISTENT_CLUSTER_ID)
    assert response.leadership == (committed().leadership(LISTENER) if accepted else Leadership())


@pytest.mark.parametrize("make", [unattached, prospective, candidate, follower, leader, resigned])
def test_the_end_of_an_earlier_epoch_starts_no_election(make: Callable[[], Node]) -> None:
    """KafkaRaftClientTest.testEndQuorumIgnoredAsCandidateIfOlderEpoch, testEndQuorumIgnoredAsLeaderIfOlderEpoch."""
    node = make()
    ready = ask(node, replace(END, epoch=EPOCH - 2))

    assert reply(ready) == EndQuorumEpochResponse(ErrorCode.FENCED_LEADER_EPOCH, node.leadership(LISTENER))
    assert ready.node.state == node.state


def test_the_end_of_an_epoch_may_be_the_first_news_of_its_leader() -> None:
    """KafkaRaftClientTest.testEndQuorumStartsNewElectionImmediatelyIfFollowerUnattached: the leader stays on disk."""
    ready = ask(unattached(), END)

    assert reply(ready) == EndQuorumEpochResponse(leadership=Leadership(EPOCH, LEADER, endpoints(LEADER)[0]))
    assert isinstance(ready.node.state, Prospective)
    assert ready.node.stored.leader_id == LEADER


@pytest.mark.parametrize("successors", [(), (key(8), key(9))])
def test_a_voter_that_is_no_successor_waits_unless_there_is_none(successors: tuple[ReplicaKey, ...]) -> None:
    """KafkaRaftClient.endEpochElectionBackoff: the longest backoff, and none with an empty list."""
    node = ask(follower(), replace(END, successors=successors)).node

    assert isinstance(node.state, Follower if successors else Prospective)
    assert isinstance(tick(node, NOW_MS + 1000).node.state, Prospective)


@pytest.mark.parametrize("other", [ReplicaKey(10, UUID(int=3)), ReplicaKey(1, UUID(int=9))])
def test_an_announcement_for_another_replica_is_used_for_its_leader(other: ReplicaKey) -> None:
    """KafkaRaftClientTest.testInvalidVoterReplicaBeginQuorumEpochRequest: the leader has an old voter set."""
    ready = ask(unattached(), replace(begin(LEADER, EPOCH), voter=other))
    known = Leadership(EPOCH, LEADER, endpoints(LEADER)[0])

    assert reply(ready) == BeginQuorumEpochResponse(ErrorCode.INVALID_VOTER_KEY, known)
    assert (type(ready.node.state), ready.node.leader_id) == (Follower, LEADER)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (fetch(OTHER, -5, 0), ErrorCode.INVALID_REQUEST),
        (fetch(OTHER, 0, -1), ErrorCode.INVALID_REQUEST),
        (fetch(OTHER, 0, EPOCH + 1), ErrorCode.INVALID_REQUEST),
        (replace(fetch(OTHER, 0, 0), max_wait_ms=-1), ErrorCode.INVALID_REQUEST),
        (fetch(OTHER, 0, 0, epoch=EPOCH + 1), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_fetch_that_no_replica_sends_is_refused(body: FetchRequest, error: ErrorCode) -> None:
    """KafkaRaftClientTest.testInvalidFetchRequest."""
    assert reply(ask(committed(), body)) == FetchResponse(error, committed().leadership(LISTENER))


@pytest.mark.parametrize(("max_bytes", "expected"), [(1, 1), (100, 100), (2_147_483_647, RESPONSE_BYTES_MAX)])
def test_a_response_has_the_size_that_the_follower_requests_and_not_that_of_this_nodes_settings(
    max_bytes: int, expected: int
) -> None:
    """KafkaRaftClientFetchTest, cases FetchMaxBytes: the read returns at least one batch; a limit bounds memory."""
    node = replace(committed(), settings=replace(committed().settings, fetch_max_bytes=50))
    response = reply(ask(node, replace(fetch(OTHER, 3, 4), max_bytes=max_bytes)))

    assert isinstance(response, FetchResponse)
    assert response.read == ReadRange(3, 4, expected)


def test_an_unknown_high_watermark_is_no_news() -> None:
    """KafkaRaftClientFetchTest.testUnknownHwmDeferredWhenLeaderDoesNotKnowHwm; once known it is, and higher ones are."""
    unknown = ask(leader(), fetch(9, 4, EPOCH, high_watermark=-1))
    known = step(unknown.node, Request(78, LISTENER, fetch(OTHER, 4, EPOCH)), NOW_MS)

    assert unknown.replies == ()
    (response,) = (reply.body for reply in known.replies if reply.request_id == 77)
    assert isinstance(response, FetchResponse)
    assert (response.high_watermark, response.read) == (4, None)


@pytest.mark.parametrize(("high_watermark", "answered"), [(-1, True), (3, True), (4, False), ((1 << 63) - 1, False)])
def test_a_fetch_at_the_end_is_answered_when_the_follower_knows_a_lower_high_watermark(
    high_watermark: int, *, answered: bool
) -> None:
    """KafkaRaftClientFetchTest.testOutdatedHwmCompletedWhenLeaderKnowsHwm, testUnchangedHighWatermarkDeferred, testDefaultHwmDeferred."""
    ready = ask(committed(), fetch(9, 4, EPOCH, high_watermark=high_watermark))

    assert bool(ready.replies) is answered


@pytest.mark.parametrize("epoch", [EPOCH - 1, EPOCH + 1])
def test_appends_and_resignations_are_of_the_leaders_epoch(epoch: int) -> None:
    """KafkaRaftClientTest.testAppendFailedWithFencedEpoch, testResignInOlderEpochIgnored; Kafka throws for a larger epoch."""
    node = committed()
    appended = step(node, Append(5, epoch, b"data", 1), NOW_MS)
    resign = step(node, Resign(epoch), NOW_MS)

    assert appended.replies == (Reply(5, AppendResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)),)
    assert (appended.log, appended.node.state, resign.node.state) == ((), node.state, node.state)


@pytest.mark.parametrize(("append_max_bytes", "batch_max_bytes"), [(8, 100), (100, 8)])
def test_an_append_above_the_limit_is_refused_and_the_leader_goes_on(
    append_max_bytes: int, batch_max_bytes: int
) -> None:
    """KafkaRaftClientTest.testAppendFailedWithRecordBatchTooLargeException. The second limit is that of a small segment."""
    node = committed()
    limits = replace(node.settings, append_max_bytes=append_max_bytes, batch_max_bytes=batch_max_bytes)
    node = replace(node, settings=limits)
    refused = step(node, Append(5, EPOCH, bytes(9), 1), NOW_MS)
    appended = step(refused.node, Append(6, EPOCH, bytes(8), 1), NOW_MS)

    assert refused.replies == (Reply(5, AppendResult(ErrorCode.RECORD_LIST_TOO_LARGE)),)
    assert (refused.log, refused.node.state) == ((), node.state)
    assert appended.replies == (Reply(6, AppendResult(ErrorCode.NONE, 4)),)


@pytest.mark.parametrize("message", [Resign(EPOCH), Shutdown(1000)])
def test_a_leader_that_resigns_answers_what_waits(message: Resign | Shutdown) -> None:
    """KafkaRaftClientTest.testResignWillCompleteFetchPurgatory, and Fetches from then on; it is no leader of the state machine any more."""
    waiting = ask(committed(), fetch(OTHER, 4, EPOCH, high_watermark=4)).node
    ready = step(waiting, message, NOW_MS)
    later = reply(ask(ready.node, fetch(OTHER, 4, EPOCH)))

    refused = FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, committed().leadership(LISTENER))
    assert (reply(ready), later) == (refused, refused)
    assert LeaderChanged(EPOCH, None) in ready.notices


def test_a_resigned_leader_follows_the_next_one() -> None:
    """KafkaRaftClientTest.testHandleBeginQuorumEpochAfterUserInitiatedResign."""
    ready = ask(step(committed(), Resign(EPOCH), NOW_MS).node, begin(OTHER, EPOCH + 1))

    assert LeaderChanged(EPOCH + 1, OTHER) in ready.notices


def test_a_resigned_leader_asks_again_in_the_next_epoch() -> None:
    """KafkaRaftClientTest.testElectionTimeoutAfterUserInitiatedResign, testInitializeAsResignedLeaderFromStateStore."""
    later = tick(resigned(), NOW_MS + 2000)

    assert isinstance(later.node.state, Prospective)
    assert LeaderChanged(EPOCH + 1, None) in later.notices


@pytest.mark.parametrize("make", [leader, resigned])
def test_a_leader_that_cannot_hand_over_stops_late(make: Callable[[], Node]) -> None:
    """KafkaRaftClientTest.testLeaderGracefulShutdownTimeout."""
    node = step(make(), Shutdown(5000), NOW_MS).node

    assert isinstance(tick(node, NOW_MS + 4999).node.state, Resigned)
    assert tick(node, NOW_MS + 5000).notices == (Stopped(timed_out=True),)


def test_a_node_that_is_not_needed_stops_at_once() -> None:
    """KafkaRaftClientTest.testGracefulShutdownSingleMemberQuorum, testFollowerGracefulShutdown, testObserverGracefulShutdown."""
    only = start(settings(), StoredElection(EPOCH), LOG, history(1), 1, NOW_MS).node
    observer = start(settings(4), StoredElection(EPOCH), LOG, history(), 1, NOW_MS).node
    for node in (only, follower(), observer):
        assert step(node, Shutdown(5000), NOW_MS).notices == (Stopped(timed_out=False),)


def test_records_of_before_an_election_stay_committed_and_are_applied_in_it() -> None:
    """KafkaRaftClientTest.testHandleCommitCallbackFiresInVotedState, ...InCandidateState: no notice takes a commit back."""
    voted = ask(committed(), vote(OTHER, EPOCH + 1, Position(4, EPOCH))).node
    asking = tick(voted, NOW_MS + 2000).node

    assert [type(found_node.state) for found_node in (voted, asking)] == [Unattached, Prospective]
    assert [found_node.high_watermark for found_node in (voted, asking)] == [4, 4]


def test_a_new_leader_names_the_first_offset_of_its_epoch() -> None:
    """KafkaRaftClientTest.testHandleLeaderChangeFiresAfterListenerReachesEpochStartOffset: its state machine leads once that is applied."""
    node = start(settings(), StoredElection(EPOCH), LOG, history(1), 1, NOW_MS)
    ready = step(node.node, Flushed(node.node.log.flush_count), NOW_MS)

    assert node.notices == (LeaderChanged(EPOCH + 1, 1, 3),)
    assert ready.node.high_watermark == 4


def test_a_restarted_candidate_refuses_other_candidates_of_its_epoch_and_not_of_the_next() -> None:
    """KafkaRaftClientTest.testRejectVotesFromSameEpochAfterResigningCandidacy, testGrantVotesFromHigherEpochAfterResigningCandidacy."""
    for make in (candidate, resigned):
        node = make()
        same = ask(node, vote(OTHER, EPOCH, Position(3, 4)))
        higher = ask(node, vote(OTHER, EPOCH + 1, Position(3, 4)))

        assert (type(same.node.state), getattr(reply(same), "granted", None)) == (type(node.state), False)
        assert (higher.node.voted, getattr(reply(higher), "granted", None)) == (key(OTHER), True)


def begins(node: Node, now_ms: int) -> list[int]:
    """Return the voters that a leader announces itself to."""
    ready = tick(node, now_ms)
    return sorted(
        request.destination.id for request in ready.requests if isinstance(request.body, BeginQuorumEpochRequest)
    )


def test_a_leader_announces_itself_every_half_fetch_timeout_until_a_voter_fetches() -> None:
    """KafkaRaftClientTest.testBeginQuorumEpochHeartbeat, testBeginQuorumShouldNotSendAfterFetchRequest."""
    node = replace(leader(), settings=replace(leader().settings, request_timeout_ms=500))
    node = replace(node, connections=node.connections.reset())
    again = tick(node, NOW_MS + 1000).node
    fetched = ask(again, fetch(OTHER, 4, EPOCH), NOW_MS + 1700).node

    assert (begins(node, NOW_MS + 999), begins(node, NOW_MS + 1000)) == ([], [LEADER, OTHER])
    assert (begins(again, NOW_MS + 1999), begins(again, NOW_MS + 2000)) == ([], [LEADER, OTHER])
    assert begins(fetched, NOW_MS + 2000) == [LEADER]
    assert begins(tick(fetched, NOW_MS + 2000).node, NOW_MS + 3000) == [LEADER, OTHER]


def test_the_first_record_of_an_epoch_names_who_voted_for_its_leader() -> None:
    """KafkaRaftClientTest.testInitializeAsCandidateAndBecomeLeaderQuorumOfThree: with all voters."""
    ready = elected()

    (operation,) = ready.log
    assert isinstance(operation, Appended)
    assert operation.batches[0].control == (LeaderChangeRecord(1, (1, 2, 3), (1, 3)),)
