"""DescribeQuorum: voters and observers as the leader sees them (the cases testDescribeQuorum of Kafka's KafkaRaftClientTest)."""

from dataclasses import replace

from controller_core.quorum.inputs import Append
from controller_core.quorum.messages import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
)
from controller_core.quorum.node import Node
from controller_core.quorum.step import step, tick
from controller_core.quorum.voters import ReplicaKey
from kafka_wire import ErrorCode
from tests.controller_core.quorum.nodes import (
    EPOCH,
    NOW_MS,
    OTHER,
    ask,
    committed,
    elected,
    endpoints,
    fetch,
    follower,
    history,
    key,
    leader,
    reply,
    static_leader,
)

OBSERVER = 9


def described(node: Node, now_ms: int) -> DescribeQuorumResponse:
    """Ask a node for the replicas."""
    found = reply(ask(node, DescribeQuorumRequest(), now_ms))
    assert isinstance(found, DescribeQuorumResponse)
    return found


def replica(node_id: int, end_offset: int, fetched_ms: int, caught_up_ms: int) -> ReplicaState:
    """Return a voter as it is described, with times after NOW_MS; -1 is never."""
    times = [time_ms if time_ms < 0 else NOW_MS + time_ms for time_ms in (fetched_ms, caught_up_ms)]
    return ReplicaState(key(node_id), end_offset, times[0], times[1], endpoints(node_id))


def observer(end_offset: int, fetched_ms: int, caught_up_ms: int) -> ReplicaState:
    """Return the observer as it is described: its endpoints are not known."""
    return replace(replica(OBSERVER, end_offset, fetched_ms, caught_up_ms), endpoints=())


def test_a_leader_describes_itself_with_its_whole_log_and_others_by_their_fetches() -> None:
    """KafkaRaftClientTest.testDescribeQuorumWithFollowers: a voter that has not fetched has -1; one that lags has caught up when it fetched what was the end."""
    fresh = described(leader(), NOW_MS + 100)
    followed = ask(leader(), fetch(OTHER, 4, EPOCH), NOW_MS + 200).node
    appended = step(followed, Append(5, EPOCH, b"data", 2), NOW_MS + 300).node
    lagging = described(appended, NOW_MS + 400)
    caught_up = ask(appended, fetch(2, 6, EPOCH), NOW_MS + 500).node

    assert fresh.voters == (replica(1, 4, 100, 100), replica(2, -1, -1, -1), replica(3, -1, -1, -1))
    assert (fresh.high_watermark, fresh.observers) == (-1, ())
    assert lagging.voters == (replica(1, 6, 400, 400), replica(2, -1, -1, -1), replica(3, 4, 200, 200))
    assert lagging.high_watermark == 4
    assert described(caught_up, NOW_MS + 600).voters[1] == replica(2, 6, 500, 500)


def test_a_replica_that_fetches_the_end_of_before_had_caught_up_then() -> None:
    """KIP-836: LastCaughtUpTimestamp of a replica that is always one append behind."""
    node = ask(committed(), fetch(OTHER, 4, EPOCH), NOW_MS + 100).node
    node = step(node, Append(5, EPOCH, b"data", 2), NOW_MS + 200).node
    node = step(node, Append(6, EPOCH, b"data", 2), NOW_MS + 300).node
    behind = ask(node, fetch(OTHER, 4, EPOCH), NOW_MS + 400).node
    node = step(behind, Append(7, EPOCH, b"data", 2), NOW_MS + 450).node
    later = ask(node, fetch(OTHER, 8, EPOCH), NOW_MS + 500).node

    assert described(behind, NOW_MS + 400).voters[2] == replica(OTHER, 4, 400, 100)
    assert described(later, NOW_MS + 500).voters[2] == replica(OTHER, 8, 500, 400)


def test_an_observer_is_listed_until_it_was_silent_for_five_minutes() -> None:
    """KafkaRaftClientTest.testDescribeQuorumWithObserver; a fetch without a node id, as of a consumer, is listed nowhere."""
    behind = ask(committed(), fetch(OBSERVER, 3, 4), NOW_MS + 100).node
    caught_up = ask(behind, fetch(OBSERVER, 4, EPOCH), NOW_MS + 200).node
    consumer = ask(caught_up, replace(fetch(OBSERVER, 3, 4), replica=ReplicaKey(-1)), NOW_MS + 300).node

    assert described(behind, NOW_MS + 100).observers == (observer(3, 100, -1),)
    assert described(caught_up, NOW_MS + 300_199).observers == (observer(4, 200, 200),)
    assert described(caught_up, NOW_MS + 300_200).observers == ()
    assert described(consumer, NOW_MS + 300).observers == (observer(4, 200, 200),)


def test_a_voter_that_begins_again_is_described_with_its_lower_end() -> None:
    """KafkaRaftClientTest.testDescribeQuorumNonMonotonicFollowerFetch: it was caught up when it last fetched the end."""
    node = ask(committed(), fetch(OTHER, 4, EPOCH), NOW_MS + 100).node
    restarted = ask(node, fetch(OTHER, 3, 4), NOW_MS + 200).node

    found = described(restarted, NOW_MS + 200)
    assert (found.high_watermark, found.voters[2]) == (4, replica(OTHER, 3, 200, 100))


def test_static_voters_are_described_without_directory_ids() -> None:
    """KafkaRaftClientTest.testDescribeQuorumWithOnlyStaticVoters: also the leader itself, and followers that send theirs."""
    found = described(static_leader(), NOW_MS)

    assert [voter.key for voter in found.voters] == [ReplicaKey(1), ReplicaKey(2), ReplicaKey(3)]
    assert (found.high_watermark, found.observers) == (4, ())


def test_recorded_voters_are_described_where_others_are_configured() -> None:
    """KafkaRaftClientTest.testStaticVotersIgnoredWithBootstrapSnapshot."""
    configured = replace(history(), static=history(1, 2, level=0).voters)

    assert [voter.key.id for voter in described(elected(configured).node, NOW_MS).voters] == [1, 2, 3]


def test_only_the_leader_describes() -> None:
    """KafkaRaftClientTest.testDescribeQuorumNonLeader; one that has resigned is none."""
    for node in (follower(), tick(leader(), NOW_MS + 3000).node):
        assert described(node, NOW_MS + 3000) == DescribeQuorumResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
