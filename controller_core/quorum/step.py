"""One step of a node: a message or a point of time in, the next node and what the shell does out."""

from typing import assert_never

from controller_core.quorum import (
    describe,
    elections,
    following,
    handing_over,
    inputs,
    joining,
    leader,
    leadership,
    messages,
    reconfigure,
    snapshots,
    states,
    voter_updates,
)
from controller_core.quorum.changed import changed
from controller_core.quorum.node import Node
from controller_core.quorum.ready import Draft, LeaderChanged, Ready, Stopped
from kafka_wire import ErrorCode

POLLS_MAX = 8
"""Transitions that one step may take: a lone voter is Resigned, Unattached, Prospective, Candidate and Leader; more is a defect."""

_NEEDS_A_PERSON = {ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INCONSISTENT_CLUSTER_ID}
"""Errors that stay until settings or rights are changed. Kafka's process ends at the first one and logs the second one."""


def step(node: Node, message: inputs.Input, now_ms: int) -> Ready:
    """Handle a message. A node that has stopped ignores all."""
    draft = Draft(node, now_ms)
    if not node.is_stopped:
        _handle(draft, message)
    return conclude(draft)


def tick(node: Node, now_ms: int) -> Ready:
    """Do what is due by time."""
    return conclude(Draft(node, now_ms))


def conclude(draft: Draft) -> Ready:
    """Do what follows from the node's state, until it stays in one."""
    due_ms = states.NEVER
    for _ in range(POLLS_MAX):
        if _stop(draft):
            due_ms = states.NEVER
            break
        state = draft.state
        due_ms = _poll(draft)
        if type(draft.state) is type(state) and draft.state.epoch == state.epoch:
            break
    else:
        raise AssertionError(draft.state)
    _announce_leader(draft)
    if draft.node.shutdown_due_ms is not None and not draft.node.is_stopped:
        due_ms = min(due_ms, draft.node.shutdown_due_ms)
    return draft.finish(due_ms)


def _poll(draft: Draft) -> int:
    """Do what is due in the node's state; return the time at which something is due again."""
    match draft.state:
        case states.Unattached() as state:
            return following.poll_unattached(draft, state)
        case states.Follower() as state:
            return following.poll_follower(draft, state)
        case states.Prospective() as state:
            return elections.poll_prospective(draft, state)
        case states.Candidate() as state:
            return elections.poll_candidate(draft, state)
        case states.Leader() as state:
            return handing_over.poll_leader(draft, state)
        case states.Resigned() as state:
            return handing_over.poll_resigned(draft, state)
        case state:
            assert_never(state)


def _stop(draft: Draft) -> bool:
    """Stop if the node shuts down and is not needed any more, or if its time is over."""
    node = draft.node
    if node.is_stopped:
        return True
    if node.shutdown_due_ms is None:
        return False
    timed_out = node.shutdown_due_ms <= draft.now_ms
    if not (timed_out or not node.is_voter or node.is_only_voter or node.has_remote_leader):
        return False
    draft.node = changed(node, is_stopped=True)
    draft.notices.append(Stopped(timed_out))
    return True


def _announce_leader(draft: Draft) -> None:
    """Notify the shell of a new epoch or leader. A leader that has resigned is none any more."""
    node = draft.node
    leader_id = None if isinstance(node.state, states.Resigned) else node.leader_id
    if (node.epoch, leader_id) != node.announced:
        start_offset = node.state.start_offset if isinstance(node.state, states.Leader) else None
        draft.notices.append(LeaderChanged(node.epoch, leader_id, start_offset))
        draft.node = changed(node, announced=(node.epoch, leader_id))


def _handle(draft: Draft, message: inputs.Input) -> None:
    match message:
        case inputs.Request():
            _handle_request(draft, message)
        case inputs.Response():
            _handle_response(draft, message)
        case inputs.Flushed():
            _handle_flushed(draft, message)
        case inputs.Append():
            leader.append_records(draft, message)
        case inputs.SnapshotInstalled():
            snapshots.install(draft, message)
        case inputs.SnapshotRejected():
            snapshots.reject(draft, message)
        case inputs.SnapshotCreated():
            snapshots.add(draft, message)
        case inputs.LogCleaned():
            snapshots.clean(draft, message)
        case inputs.UpgradeKRaftVersion():
            voter_updates.upgrade(draft, message)
        case inputs.Resign(epoch=epoch):
            if isinstance(draft.state, states.Leader) and draft.state.epoch == epoch:
                draft.set_state(changed(draft.state, is_resigning=True))
        case inputs.Shutdown(timeout_ms=timeout_ms):
            draft.node = changed(draft.node, shutdown_due_ms=draft.now_ms + timeout_ms)
        case _:
            assert_never(message)


def _handle_flushed(draft: Draft, message: inputs.Flushed) -> None:
    draft.node = changed(draft.node, log=draft.node.log.end_flush(message.number))
    draft.flush_log()
    if isinstance(draft.state, states.Leader):
        leader.count_flushed(draft)


def _handle_request(draft: Draft, request: inputs.Request) -> None:
    match request.body:
        case messages.VoteRequest() as body:
            elections.answer_vote(draft, request, body)
        case messages.BeginQuorumEpochRequest() as body:
            leadership.begin_epoch(draft, request, body)
        case messages.EndQuorumEpochRequest() as body:
            leadership.end_epoch(draft, request, body)
        case messages.FetchRequest() as body:
            leader.answer_fetch(draft, request, body)
        case messages.FetchSnapshotRequest() as body:
            snapshots.answer_fetch(draft, request, body)
        case messages.AddRaftVoterRequest() as body:
            reconfigure.add_voter(draft, request, body)
        case messages.RemoveRaftVoterRequest() as body:
            reconfigure.remove_voter(draft, request, body)
        case messages.UpdateRaftVoterRequest() as body:
            voter_updates.update_voter(draft, request, body)
        case messages.DescribeQuorumRequest():
            describe.answer(draft, request)
        case messages.ApiVersionsRequest():
            draft.answer(request, messages.ApiVersionsResponse(kraft_versions=draft.node.settings.kraft_versions))
        case body:
            assert_never(body)


def _handle_response(draft: Draft, response: inputs.Response) -> None:
    """Handle the response to the last request to a node; others came too late."""
    source, correlation_id = response.source, response.correlation_id
    if not draft.node.connections.is_expected(source, correlation_id, draft.now_ms):
        return
    is_ready = _take_response(draft, response)
    connections = draft.node.connections
    if connections.is_expected(source, correlation_id, draft.now_ms):
        backoff_ms = draft.node.settings.retry_backoff_ms
        connections = (
            connections.answered(source) if is_ready else connections.failed(source, draft.now_ms + backoff_ms)
        )
        draft.node = changed(draft.node, connections=connections)


def _name_of(node: Node, source: int) -> str:
    """Return a node's id for messages; of a bootstrap server only the address is known."""
    server = next((node for node in node.settings.bootstrap if node.id == source), None)
    return f"node {source}" if server is None else f"bootstrap server {server.host}:{server.port}"


def _take_response(draft: Draft, response: inputs.Response) -> bool:
    """Handle a response by its type; return whether its sender may be asked again at once."""
    error = response.body.error
    if error in _NEEDS_A_PERSON:
        draft.violation(f"{_name_of(draft.node, response.source)} rejected a request with {error.name}")
    match response.body:
        case messages.VoteResponse() as body:
            return elections.count_vote(draft, response.source, body)
        case messages.BeginQuorumEpochResponse() as body:
            return leadership.learn_from_response(draft, body.error, body.leadership) is not False
        case messages.EndQuorumEpochResponse() as body:
            handled = leadership.learn_from_response(draft, body.error, body.leadership)
            if handled is None and body.error is ErrorCode.NONE:
                leadership.acknowledge_end(draft, response.source)
            return handled is not False
        case messages.FetchResponse() as body:
            return following.take_fetched(draft, body)
        case messages.FetchSnapshotResponse() as body:
            return snapshots.take_chunk(draft, body)
        case messages.ApiVersionsResponse() as body:
            return reconfigure.take_versions(draft, response.source, body)
        case messages.UpdateRaftVoterResponse() as body:
            return joining.take_update_response(draft, body)
        case messages.AddRaftVoterResponse() | messages.RemoveRaftVoterResponse() as body:
            return joining.take_change_response(draft, body)
        case messages.FailedResponse() as body:
            return _take_failure(draft, response.source, body)
        case messages.DescribeQuorumResponse():
            return True
        case body:
            assert_never(body)


def _take_failure(draft: Draft, source: int, body: messages.FailedResponse) -> bool:
    """Handle a request without a response: the node backs off, unless the peer is too old for what was asked."""
    api = draft.node.connections.api_in_flight(source)
    if api is messages.ApiVersionsRequest:
        return reconfigure.take_versions(draft, source, body)
    if body.error is ErrorCode.UNSUPPORTED_VERSION:
        if api is messages.VoteRequest and isinstance(draft.state, states.Prospective):
            return elections.campaign_without_prevote(draft)
        if api is messages.UpdateRaftVoterRequest:
            joining.skip_update(draft)
            return True
    return False
