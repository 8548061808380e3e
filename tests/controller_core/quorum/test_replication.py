"""Replication: when a leader answers, what it commits, and what a follower does with a response."""

from dataclasses import replace

import pytest

from controller_core.quorum.batches import Batch, LeaderChangeRecord, Position
from controller_core.quorum.inputs import Append, Flushed, Request, SnapshotInstalled, SnapshotRejected
from controller_core.quorum.log_view import Snapshot
from controller_core.quorum.messages import (
    ANY_HIGH_WATERMARK,
    FailedResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Leadership,
    ReadRange,
)
from controller_core.quorum.node import Node, StoredElection
from controller_core.quorum.ready import Appended, Committed, Ready, SnapshotChunk, Truncated, Violation
from controller_core.quorum.start import start
from controller_core.quorum.states import Follower, Leader
from controller_core.quorum.step import step, tick
from controller_core.quorum.voters import NO_NODE
from kafka_wire import ErrorCode
from tests.controller_core.quorum import nodes
from tests.controller_core.quorum.nodes import (
    EPOCH,
    FROM_LEADER,
    LEADER,
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
    voter,
)

OBSERVER = 9


def append(node: Node) -> Ready:
    """Append one record at a leader."""
    return step(node, Append(5, EPOCH, b"data", 1), NOW_MS)


def replies_to(ready: Ready, request_id: int) -> list[object]:
    """Return the replies to a request."""
    return [reply.body for reply in ready.replies if reply.request_id == request_id]


@pytest.mark.shows("Q6")
def test_the_leaders_own_log_counts_once_its_flush_has_ended() -> None:
    """Here differently from Kafka, whose leader counts itself before (ADR 28)."""
    appended = append(committed())
    acknowledged = ask(appended.node, fetch(OTHER, 5, EPOCH))

    assert appended.flush is not None
    assert acknowledged.node.high_watermark == 4
    assert step(acknowledged.node, Flushed(appended.flush), NOW_MS).node.high_watermark == 5


def test_one_flush_at_a_time_covers_all_that_was_appended() -> None:
    """The next one starts when the last one has ended."""
    first = append(committed())
    second = append(first.node)
    assert first.flush is not None

    ended = step(second.node, Flushed(first.flush), NOW_MS)

    assert (second.flush, ended.flush, ended.node.log.flushed_offset) == (None, first.flush + 1, 5)


@pytest.mark.shows("Q11")
def test_nothing_of_earlier_epochs_is_committed_before_a_record_of_the_own_epoch() -> None:
    """Records before it could still be replaced by another leader with a longer log of a later epoch (Raft, figure 8)."""
    node = ask(leader(), fetch(OTHER, 3, 4)).node

    assert node.high_watermark is None
    assert ask(node, fetch(OTHER, 4, EPOCH)).node.high_watermark == 4


def test_a_voter_is_answered_at_the_append() -> None:
    """The commit waits for it."""
    waiting = ask(committed(), fetch(OTHER, 4, EPOCH, high_watermark=4))
    appended = append(waiting.node)

    assert waiting.replies == ()
    (response,) = replies_to(appended, 77)
    assert isinstance(response, FetchResponse)
    assert response.read == ReadRange(4, 5, 1024 * 1024)


def test_an_observer_is_answered_at_the_commit() -> None:
    """It applies no other records (ADR 29)."""
    waiting = ask(committed(), fetch(OBSERVER, 4, EPOCH, high_watermark=4)).node
    appended = append(waiting)
    flushed = step(appended.node, Flushed(appended.flush or 0), NOW_MS)
    acknowledged = step(flushed.node, Request(78, nodes.LISTENER, fetch(OTHER, 5, EPOCH)), NOW_MS)

    assert replies_to(appended, 77) == []
    (response,) = replies_to(acknowledged, 77)
    assert isinstance(response, FetchResponse)
    assert (response.high_watermark, response.read) == (5, ReadRange(4, 5, 1024 * 1024))


def test_a_late_observer_is_answered_at_once() -> None:
    """There are committed records for it."""
    response = reply(ask(committed(), fetch(OBSERVER, 3, 4, high_watermark=3)))

    assert isinstance(response, FetchResponse)
    assert response.read == ReadRange(3, 4, 1024 * 1024)


def test_a_newer_high_watermark_is_an_answer_from_fetch_18_on() -> None:
    """KIP-1166; below, the request has the highest number, and waits."""
    news = reply(ask(committed(), fetch(OTHER, 4, EPOCH, high_watermark=3)))
    waiting = ask(committed(), fetch(OTHER, 4, EPOCH, high_watermark=ANY_HIGH_WATERMARK))

    assert isinstance(news, FetchResponse)
    assert news.high_watermark == 4
    assert waiting.replies == ()


def test_a_fetch_waits_for_its_own_time() -> None:
    """The tick comes in time."""
    waiting = ask(committed(), fetch(OTHER, 4, EPOCH, high_watermark=4))
    at_end = tick(waiting.node, NOW_MS + 500)

    assert waiting.next_tick_ms <= NOW_MS + 500
    (response,) = replies_to(at_end, 77)
    assert isinstance(response, FetchResponse)
    assert (response.error, response.read) == (ErrorCode.NONE, None)


def test_a_replica_waits_with_one_fetch() -> None:
    """It has given up the one before: a bound for what a leader keeps."""
    waiting = ask(committed(), fetch(OTHER, 4, EPOCH, high_watermark=4)).node
    again = step(waiting, Request(78, nodes.LISTENER, fetch(OTHER, 4, EPOCH, high_watermark=4)), NOW_MS)

    assert [reply.request_id for reply in again.replies] == [77]
    assert isinstance(again.node.state, Leader)
    assert [fetch.request_id for fetch in again.node.state.delayed.by_replica.values()] == [78]


def test_waiting_fetches_are_refused_when_the_leader_learns_of_another() -> None:
    """Their senders fetch from the new one."""
    waiting = ask(committed(), fetch(OTHER, 4, EPOCH, high_watermark=4)).node
    deposed = step(waiting, Request(78, nodes.LISTENER, nodes.begin(LEADER, EPOCH + 1)), NOW_MS)

    (response,) = replies_to(deposed, 77)
    assert isinstance(response, FetchResponse)
    assert (response.error, response.leadership.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, LEADER)


def test_a_follower_appends_and_fetches_again_after_the_flush() -> None:
    """Its next fetch offset confirms that everything before is on disk."""
    node = follower()
    batch = Batch(3, 3, EPOCH, control=(LeaderChangeRecord(LEADER, (1, 2, 3), (2, 3)),))
    appended = respond(node, LEADER, FetchResponse(leadership=FROM_LEADER, high_watermark=3, batches=(batch,)))
    flushed = step(appended.node, Flushed(appended.flush or 0), NOW_MS)

    assert (appended.log, appended.requests) == ((Appended((batch,)),), ())
    assert appended.notices == (Committed(3),)
    (request,) = (request.body for request in flushed.requests)
    assert isinstance(request, FetchRequest)
    assert (request.fetched, request.high_watermark) == (Position(4, EPOCH), 3)


def test_a_follower_appends_only_what_continues_its_log() -> None:
    """A batch elsewhere, of a later epoch than the leader's, or of an earlier one than the last record's is left, with all behind it."""
    good, gap = Batch(3, 3, EPOCH), Batch(5, 5, EPOCH)
    for bad in (gap, Batch(4, 4, EPOCH + 1), Batch(4, 4, 3)):
        batches = (good, bad, Batch(bad.end_offset, bad.end_offset, EPOCH))
        ready = respond(follower(), LEADER, FetchResponse(leadership=FROM_LEADER, batches=batches))

        assert ready.log == (Appended((good,)),)
        assert any(isinstance(notice, Violation) for notice in ready.notices)


def test_a_follower_leaves_a_batch_that_its_log_cannot_take_and_backs_off() -> None:
    """A larger batch than a segment ends Kafka's node (UnifiedLog.append throws RecordBatchTooLargeException in its Raft thread)."""
    node = follower()
    node = replace(node, settings=replace(node.settings, batch_max_bytes=8))
    fits, too_large = Batch(3, 3, EPOCH, bytes(8)), Batch(4, 4, EPOCH, bytes(9))
    ready = respond(node, LEADER, FetchResponse(leadership=FROM_LEADER, batches=(fits, too_large)))

    assert (ready.log, ready.requests) == ((Appended((fits,)),), ())
    assert ready.notices == (Violation("a fetched batch at 4 has 9 bytes; the log takes at most 8"),)
    assert ready.node.connections.is_backing_off(LEADER, NOW_MS)


@pytest.mark.shows("Q10")
def test_a_follower_truncates_what_diverges_but_nothing_committed() -> None:
    """A leader that asks for more has lost committed records: Kafka's follower exits then, this one keeps them and reports it."""
    diverging = respond(follower(), LEADER, FetchResponse(leadership=FROM_LEADER, diverging=Position(2, 4)))
    too_far = respond(follower(), LEADER, FetchResponse(leadership=FROM_LEADER, diverging=Position(1, 4)))

    assert diverging.log == (Truncated(2),)
    assert diverging.node.log.end == Position(2, 4)
    assert too_far.log == ()
    assert [type(notice) for notice in too_far.notices] == [Violation]


def test_a_follower_whose_leader_does_not_answer_asks_others() -> None:
    """A request that fails, and one that has timed out."""
    node = follower()
    failed = respond(node, LEADER, FailedResponse(ErrorCode.NETWORK_EXCEPTION))
    slow = tick(node, NOW_MS + node.settings.request_timeout_ms - 1)

    assert [request.destination.id < 0 for request in failed.requests] == [True]
    assert slow.requests == ()
    assert isinstance(failed.node.state, Follower)


def test_a_follower_learns_of_a_new_leader_from_any_response() -> None:
    """NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH name it."""
    known = Leadership(EPOCH + 1, OTHER, endpoints(OTHER)[0])
    ready = respond(follower(), LEADER, FetchResponse(ErrorCode.FENCED_LEADER_EPOCH, known))

    assert (ready.node.epoch, ready.node.leader_id) == (EPOCH + 1, OTHER)
    assert [request.destination.id for request in ready.requests] == [OTHER]


def test_a_refusal_without_news_backs_off() -> None:
    """A leader that has resigned answers so until there is another one; without the wait both would do nothing else."""
    node = follower()
    ready = respond(node, LEADER, FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, FROM_LEADER))
    unknown = respond(node, LEADER, FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, Leadership(EPOCH, NO_NODE)))

    for some_ready in (ready, unknown):
        assert some_ready.node.connections.is_backing_off(LEADER, NOW_MS)


def fetching() -> Node:
    """Return a follower that fetches the snapshot 8@5."""
    answer = FetchResponse(leadership=FROM_LEADER, snapshot=Position(8, EPOCH))
    return respond(follower(), LEADER, answer).node


def chunk(position: int, data: bytes) -> FetchSnapshotResponse:
    """Return bytes of a snapshot of 10 bytes."""
    return FetchSnapshotResponse(
        leadership=FROM_LEADER, snapshot=Position(8, EPOCH), size_bytes=10, position=position, data=data
    )


def test_a_follower_fetches_a_snapshot_and_goes_on_behind_it() -> None:
    """The log starts at its end, with its voters; nothing else is fetched until it is installed."""
    first = respond(fetching(), LEADER, chunk(0, b"123456"))
    last = respond(first.node, LEADER, chunk(6, b"7890"))
    voters = history(1, 2).voters
    installed = step(last.node, SnapshotInstalled(Position(8, EPOCH), 10, voters, 1), NOW_MS)

    (request,) = (request.body for request in first.requests)
    assert isinstance(request, FetchSnapshotRequest)
    assert request.position == 6
    assert last.log == (SnapshotChunk(Position(8, EPOCH), 6, b"7890", is_last=True),)
    assert last.requests == ()
    assert (installed.node.log.start_offset, installed.node.log.end) == (8, Position(8, EPOCH))
    assert (installed.node.voters, installed.notices) == (voters, (Committed(8),))
    (next_request,) = (request.body for request in installed.requests)
    assert isinstance(next_request, FetchRequest)
    assert next_request.fetched == Position(8, EPOCH)


def test_a_voter_that_installs_a_snapshot_starts_no_election() -> None:
    """Its voters may be those of a later set; a majority of the old one must not elect it."""
    node = respond(fetching(), LEADER, chunk(0, b"1234567890")).node

    assert isinstance(tick(node, NOW_MS + 60_000).node.state, Follower)


def test_a_rejected_snapshot_is_fetched_again_when_the_leader_names_it() -> None:
    """The bytes were damaged on the way to the disk."""
    node = respond(fetching(), LEADER, chunk(0, b"1234567890")).node
    rejected = step(node, SnapshotRejected(Position(8, EPOCH)), NOW_MS)

    (request,) = (request.body for request in rejected.requests)
    assert isinstance(request, FetchRequest)
    assert request.fetched == LOG.end


def test_bytes_of_a_snapshot_that_were_not_asked_for_are_left() -> None:
    """Another position or none at all; Kafka's follower exits."""
    for wrong in (chunk(3, b"4567"), chunk(0, b"")):
        ready = respond(fetching(), LEADER, wrong)

        assert ready.log == ()
        assert [type(notice) for notice in ready.notices] == [Violation]


def test_a_snapshot_that_the_leader_has_deleted_is_given_up() -> None:
    """The next Fetch names a later one."""
    ready = respond(fetching(), LEADER, FetchSnapshotResponse(ErrorCode.SNAPSHOT_NOT_FOUND, FROM_LEADER))

    assert [type(request.body) for request in ready.requests] == [FetchRequest]


def test_the_bootstrap_snapshot_is_not_served() -> None:
    """Its records are in the log of the first leader."""
    node = replace(leader(), log=leader().log.add_snapshot(Snapshot(Position(0, 0), 10)))
    request = FetchSnapshotRequest(nodes.CLUSTER, EPOCH, key(OTHER), Position(0, 0), 0)

    response = reply(ask(node, request))

    assert isinstance(response, FetchSnapshotResponse)
    assert response.error is ErrorCode.SNAPSHOT_NOT_FOUND


def test_an_observer_finds_the_leader_through_a_bootstrap_server_and_fetches_in_one() -> None:
    """The response that names the leader may have its records already."""
    ready = start(settings(4), StoredElection(EPOCH), LOG, history(), 1, NOW_MS)
    (outgoing,) = ready.requests
    answer = FetchResponse(leadership=FROM_LEADER, high_watermark=4, batches=(Batch(3, 3, EPOCH),))

    found = respond(ready.node, outgoing.destination.id, answer)

    assert isinstance(found.node.state, Follower)
    assert (found.node.leader_id, found.node.log.end_offset) == (LEADER, 4)


def test_a_leader_without_an_address_is_looked_for() -> None:
    """A voter set without an endpoint on the quorum's listener must not stop the node."""
    silent = replace(voter(LEADER), endpoints=())
    voters = history(1, 3).voters.add(silent)
    known = history().from_snapshot(2, voters, 1)
    ready = start(settings(), StoredElection(EPOCH, LEADER), LOG, known, 1, NOW_MS)

    assert ready.node.leader_id == LEADER
    assert [request.destination.id < 0 for request in ready.requests] == [True]
