"""A follower's own place among the voters: UpdateRaftVoter of a voter, AddRaftVoter and RemoveRaftVoter of an observer that joins by itself."""

from controller_core.quorum import leadership, messages, ready, roles, states
from controller_core.quorum.changed import changed
from controller_core.quorum.node import Node
from controller_core.quorum.rules import Destination, Rules
from controller_core.quorum.voters import STATIC_VOTERS
from kafka_wire import ErrorCode

_DONE_OR_LATER = {messages.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_VOTER, ErrorCode.VOTER_NOT_FOUND}
"""The voter set is as it should be, or the leader cannot change it now: try again after the usual time."""


def poll(draft: ready.Draft, state: states.Follower, leader: Destination) -> tuple[bool, int]:
    """Send a due request to change the voter set.

    Returns whether the connection to the leader is used, or waited for, for that, and the time at which the next such request may be sent.
    """
    body = wanted_request(draft.node, state)
    if body is None:
        return False, states.NEVER
    if state.update_due_ms > draft.now_ms:
        return False, max(state.update_due_ms, draft.node.connections.ready_at(leader.id, draft.now_ms))
    is_sent = draft.send(leader, body)
    if is_sent:
        _wait(draft)
    connections = draft.node.connections
    # If another request to the leader is under way, this one is next. After a failure the leader may be another one.
    is_used = is_sent or not connections.is_backing_off(leader.id, draft.now_ms)
    return is_used, connections.ready_at(leader.id, draft.now_ms)


def wanted_request(node: Node, state: states.Follower) -> messages.RequestBody | None:
    """Return the request by which the voter set would become right; None if it is."""
    settings, is_static = node.settings, node.history.kraft_version == STATIC_VOTERS
    if node.is_voter:
        if is_static:
            wanted = settings.rules is Rules.KAFKA_4 and not state.has_updated_leader
        else:
            wanted = node.voters.needs_update(node.own_voter)
        if not wanted:
            return None
        return messages.UpdateRaftVoterRequest(
            settings.cluster_id, node.epoch, node.key, settings.endpoints, settings.kraft_versions
        )
    if is_static or not settings.auto_join or not settings.can_become_voter:
        return None
    old = node.voters.voter(node.id)
    if old is not None:
        # The id is that of a voter, but the directory is another: the voter of before the disk was replaced leaves first.
        return messages.RemoveRaftVoterRequest(settings.cluster_id, old.key)
    return messages.AddRaftVoterRequest(
        settings.cluster_id, settings.request_timeout_ms, node.key, settings.endpoints, ack_when_committed=False
    )


def take_update_response(draft: ready.Draft, body: messages.UpdateRaftVoterResponse) -> bool:
    """Note that the leader has this voter's report; return whether it may be asked again at once."""
    handled = leadership.learn_from_response(draft, body.error, body.leadership)
    state = draft.state
    if handled is not None or not isinstance(state, states.Follower):
        return handled is not False
    if body.error not in {messages.NONE, ErrorCode.UNSUPPORTED_VERSION}:
        return False
    draft.set_state(changed(state, has_updated_leader=True))
    roles.count_as_fetch(draft)
    return True


def take_change_response(
    draft: ready.Draft, body: messages.AddRaftVoterResponse | messages.RemoveRaftVoterResponse
) -> bool:
    """Wait for the usual time after an answer that needs no other; return whether the leader may be asked again at once."""
    if body.error not in _DONE_OR_LATER or not isinstance(draft.state, states.Follower):
        return False
    _wait(draft)
    return True


def skip_update(draft: ready.Draft) -> None:
    """Send no reports to a leader that does not have the API."""
    state = draft.state
    if isinstance(state, states.Follower):
        draft.set_state(changed(state, has_updated_leader=True))


def _wait(draft: ready.Draft) -> None:
    state = draft.state
    assert isinstance(state, states.Follower), state
    draft.set_state(changed(state, update_due_ms=draft.now_ms + draft.node.settings.fetch_timeout_ms))
