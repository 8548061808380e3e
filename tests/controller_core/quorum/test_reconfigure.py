"""Voters that change: added, removed, updated, one change at a time; and the upgrade to kraft.version 1 (KIP-853)."""

from dataclasses import replace

from controller_core.quorum.batches import (
    BOOTSTRAP_SNAPSHOT,
    KRaftVersionRecord,
    LeaderChangeRecord,
    VotersRecord,
    control_batch,
)
from controller_core.quorum.inputs import Flushed, Request, UpgradeKRaftVersion
from controller_core.quorum.log_view import LogView, Snapshot
from controller_core.quorum.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    ApiVersionsResponse,
    FailedResponse,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from controller_core.quorum.node import Node, StoredElection
from controller_core.quorum.ready import Appended, Ready, UpgradeResult
from controller_core.quorum.start import start
from controller_core.quorum.states import Leader, Prospective, Resigned, Unattached
from controller_core.quorum.step import step, tick
from controller_core.quorum.voter_history import VoterHistory
from controller_core.quorum.voters import ReplicaKey, VersionRange, Voter
from kafka_wire import ErrorCode
from tests.controller_core.quorum import nodes
from tests.controller_core.quorum.nodes import (
    EPOCH,
    LEADER,
    LOG,
    NEW,
    NOW_MS,
    OTHER,
    ask,
    committed,
    endpoints,
    fetch,
    follower,
    history,
    key,
    reply,
    respond,
    settings,
    started,
    static_leader,
    voter,
)

VERSIONS = ApiVersionsResponse(kraft_versions=VersionRange(0, 1))


def adding(*, ack_when_committed: bool = True) -> Node:
    """Return a leader that was asked to add a controller that has caught up."""
    node = ask(committed(), fetch(NEW, 4, EPOCH)).node
    return ask(node, AddRaftVoterRequest(None, 1000, key(NEW), endpoints(NEW), ack_when_committed)).node


def commit(node: Node, offset: int) -> Ready:
    """Let two other voters and the leader's disk reach an offset."""
    node = step(node, Flushed(node.log.flush_count), NOW_MS).node
    for voter_id in (OTHER, LEADER, NEW):
        ready = step(node, Request(78, nodes.LISTENER, fetch(voter_id, offset, EPOCH)), NOW_MS)
        if ready.node.high_watermark == offset:
            return ready
        node = ready.node
    raise AssertionError(node.high_watermark)


def voters_in(ready: Ready) -> tuple[int, ...]:
    """Return the voters that a step has appended."""
    (operation,) = ready.log
    assert isinstance(operation, Appended)
    (record,) = (record for batch in operation.batches for record in batch.control if isinstance(record, VotersRecord))
    return record.voters.ids


def test_a_voter_counts_from_its_record_on_and_is_answered_at_the_commit() -> None:
    """It was asked for its versions first."""
    appended = respond(adding(), NEW, VERSIONS)
    done = commit(appended.node, 5)

    assert voters_in(appended) == (1, 2, 3, 4)
    assert (appended.node.voters.majority, appended.replies) == (3, ())
    assert [reply.body for reply in done.replies if reply.request_id == 77] == [AddRaftVoterResponse()]


def test_a_voter_that_joins_by_itself_is_answered_at_the_append() -> None:
    """KIP-1186, ackWhenCommitted: it must fetch for the commit, on the connection that waits for the answer."""
    appended = respond(adding(ack_when_committed=False), NEW, VERSIONS)

    assert [reply.body for reply in appended.replies] == [AddRaftVoterResponse()]
    assert isinstance(appended.node.state, Leader)
    assert appended.node.state.change is not None


def test_a_voter_is_not_added_without_the_level_or_an_answer_or_the_records() -> None:
    """Each with Kafka's error; nothing is appended."""
    behind = ask(committed(), fetch(NEW, 3, 4)).node
    behind = ask(behind, AddRaftVoterRequest(None, 1000, key(NEW), endpoints(NEW))).node
    old = ApiVersionsResponse(kraft_versions=VersionRange(0, 0))
    cases = [
        (respond(adding(), NEW, old), ErrorCode.INVALID_REQUEST),
        (respond(adding(), NEW, ApiVersionsResponse()), ErrorCode.INVALID_REQUEST),
        (respond(adding(), NEW, FailedResponse(ErrorCode.NETWORK_EXCEPTION)), ErrorCode.REQUEST_TIMED_OUT),
        (respond(behind, NEW, VERSIONS), ErrorCode.REQUEST_TIMED_OUT),
        (tick(adding(), NOW_MS + 2000), ErrorCode.REQUEST_TIMED_OUT),
    ]
    for ready, error in cases:
        assert [reply.body.error for reply in ready.replies if isinstance(reply.body, AddRaftVoterResponse)] == [error]
        assert ready.log == ()


def test_one_change_at_a_time() -> None:
    """Q19: another one waits for the answer, and for the commit of the voter set before."""
    under_way = reply(ask(adding(), RemoveRaftVoterRequest(None, key(OTHER))))
    update = UpdateRaftVoterRequest(None, EPOCH, key(OTHER), endpoints(7), VersionRange(0, 1))
    uncommitted = reply(ask(ask(committed(), update).node, RemoveRaftVoterRequest(None, key(OTHER))))

    for response in (under_way, uncommitted):
        assert getattr(response, "error", None) is ErrorCode.REQUEST_TIMED_OUT


def test_a_removed_leader_leads_until_the_commit_and_resigns() -> None:
    """Its own log does not count for it."""
    appended = ask(committed(), RemoveRaftVoterRequest(None, key(1)))
    done = commit(appended.node, 5)

    assert voters_in(appended) == (2, 3)
    assert isinstance(appended.node.state, Leader)
    assert isinstance(done.node.state, Resigned)


def removed(*, committed_end: int) -> Node:
    """Return the leader of EPOCH after a restart: a record at offset 2 has removed it."""
    voters = history().append([control_batch(2, 4, VotersRecord(history(2, 3).voters))])
    log = replace(LOG, high_watermark=committed_end)
    return start(settings(), StoredElection(EPOCH, 1), log, voters, 1, NOW_MS).node


def test_a_removed_leader_asks_for_votes_until_its_removal_is_committed() -> None:
    """A quorum of two could elect no leader without it (ADR 30). Its own vote does not count."""
    waiting, done = removed(committed_end=2), removed(committed_end=3)
    asking = tick(waiting, NOW_MS + 2000).node

    assert isinstance(asking.state, Prospective)
    assert asking.state.votes.granted == frozenset()
    assert isinstance(tick(done, NOW_MS + 60_000).node.state, Unattached)


def test_an_unchanged_report_appends_nothing() -> None:
    """A voter repeats its report until it sees itself in the voter set."""
    known = voter(OTHER)
    body = UpdateRaftVoterRequest(None, EPOCH, known.key, known.endpoints, known.kraft_versions)
    ready = ask(committed(), body)

    assert (reply(ready), ready.log) == (UpdateRaftVoterResponse(leadership=ready.node.leadership(nodes.LISTENER)), ())


def reported(node: Node, *ids: int) -> Node:
    """Return a leader that has got the reports of some voters."""
    for voter_id in ids:
        body = UpdateRaftVoterRequest(None, EPOCH, key(voter_id), endpoints(voter_id), VersionRange(0, 1))
        node = ask(node, body).node
    return node


def upgrade(node: Node, *, validate_only: bool = False) -> Ready:
    """Ask a leader for kraft.version 1."""
    return step(node, UpgradeKRaftVersion(77, EPOCH, 1, validate_only), NOW_MS)


def test_the_upgrade_needs_the_reports_of_all_voters() -> None:
    """Directory ids and endpoints are in no file at kraft.version 0; each new leader collects them again."""
    ready = upgrade(reported(static_leader(), OTHER))

    result = reply(ready)
    assert isinstance(result, UpgradeResult)
    assert (result.error, ready.log) == (ErrorCode.INVALID_UPDATE_VERSION, ())


def test_the_upgrade_writes_level_and_voters_in_one_batch() -> None:
    """Once; a second request finds it under way, and validation writes nothing."""
    node = reported(static_leader(), LEADER, OTHER)
    ready = upgrade(node)

    (operation,) = ready.log
    assert isinstance(operation, Appended)
    assert [type(record) for record in operation.batches[0].control] == [KRaftVersionRecord, VotersRecord]
    assert ready.node.voters.keys == {key(1), key(2), key(3)}
    assert (upgrade(ready.node).log, upgrade(node, validate_only=True).log) == ((), ())


def test_voters_cannot_be_added_at_kraft_version_0() -> None:
    """UNSUPPORTED_VERSION, as Kafka."""
    response = reply(ask(static_leader(), AddRaftVoterRequest(None, 1000, key(NEW), endpoints(NEW))))

    assert getattr(response, "error", None) is ErrorCode.UNSUPPORTED_VERSION


def test_a_voter_reports_itself_to_each_new_leader_at_kraft_version_0() -> None:
    """After a fetch timeout, once; a leader without the API gets no more reports."""
    node = started(StoredElection(EPOCH, LEADER), level=0).node
    node = replace(node, connections=node.connections.reset())
    ready = tick(node, NOW_MS + 1999)
    due = tick(replace(node, state=replace(node.state, fetch_due_ms=NOW_MS + 9000)), NOW_MS + 2000)
    too_old = respond(due.node, LEADER, FailedResponse(ErrorCode.UNSUPPORTED_VERSION), NOW_MS + 2001)

    assert not any(isinstance(request.body, UpdateRaftVoterRequest) for request in ready.requests)
    assert [type(request.body) for request in due.requests] == [UpdateRaftVoterRequest]
    assert not any(isinstance(request.body, UpdateRaftVoterRequest) for request in too_old.requests)


def test_a_voter_whose_endpoints_changed_reports_them_at_kraft_version_1() -> None:
    """Until the log has them."""
    node = follower()
    moved = replace(node, settings=replace(node.settings, endpoints=endpoints(7)), connections=node.connections.reset())
    later = replace(moved, state=replace(moved.state, fetch_due_ms=NOW_MS + 9000))

    assert [type(request.body) for request in tick(later, NOW_MS + 2000).requests] == [UpdateRaftVoterRequest]


def joining(voters: VoterHistory) -> Ready:
    """Let a controller with auto join follow for a fetch timeout."""
    node = start(settings(NEW, auto_join=True), StoredElection(EPOCH, LEADER), LOG, voters, 1, NOW_MS).node
    return tick(replace(node, connections=node.connections.reset()), NOW_MS + 2000)


def test_a_controller_that_is_no_voter_adds_itself() -> None:
    """controller.quorum.auto.join.enable."""
    (request,) = (request.body for request in joining(history()).requests)

    assert request == AddRaftVoterRequest(nodes.CLUSTER, 2000, key(NEW), endpoints(NEW), ack_when_committed=False)


def test_a_controller_with_a_new_disk_removes_its_old_one_first() -> None:
    """The id of the old directory cannot be taken by two voters."""
    old = ReplicaKey(NEW, key(9).directory_id)
    voters = history().voters.add(Voter(old, endpoints(NEW)))
    (request,) = (request.body for request in joining(VoterHistory().from_snapshot(2, voters, 1)).requests)

    assert request == RemoveRaftVoterRequest(nodes.CLUSTER, old)


def test_the_first_leader_writes_the_voters_of_the_bootstrap_snapshot() -> None:
    """That snapshot is on formatted nodes only."""
    formatted = LogView().add_snapshot(Snapshot(BOOTSTRAP_SNAPSHOT, 10))
    voters = VoterHistory().from_snapshot(0, history(1).voters, 1)
    ready = start(settings(), None, formatted, voters, 1, NOW_MS)

    (operation,) = ready.log
    assert isinstance(operation, Appended)
    kinds = [type(record) for record in operation.batches[0].control]
    assert kinds == [LeaderChangeRecord, KRaftVersionRecord, VotersRecord]


def test_the_only_voter_goes_on_leading_when_a_second_one_is_added() -> None:
    """It needed no fetches of others until now, so the time of the next check starts with the observer's Fetch.

    Source: LeaderState.updateCheckQuorumForFollowingVoter.
    """
    later_ms = NOW_MS + 60_000
    alone = start(settings(), None, LOG, history(1), seed=1, now_ms=NOW_MS).node
    alone = step(alone, Flushed(alone.log.flush_count), NOW_MS).node
    end = alone.log.end
    observed = ask(alone, fetch(NEW, end.offset, end.epoch, epoch=alone.epoch), later_ms).node
    asked = ask(observed, AddRaftVoterRequest(None, 1000, key(NEW), endpoints(NEW)), later_ms).node
    added = respond(asked, NEW, VERSIONS, later_ms).node

    assert added.voters.ids == (1, NEW)
    assert isinstance(tick(added, later_ms + 1).node.state, Leader)
