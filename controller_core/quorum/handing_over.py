"""Timers of a leader and of one that has resigned."""

from controller_core.quorum import delayed, elections, messages, pending_change, ready, roles, states
from controller_core.quorum.changed import changed


def poll_leader(draft: ready.Draft, state: states.Leader) -> int:
    """Resign if asked to, or if no majority has fetched for too long; else announce the epoch and end what has waited long enough."""
    check_due_ms = states.NEVER if draft.node.is_only_voter else state.check_quorum_due_ms
    if draft.node.shutdown_due_ms is not None or state.is_resigning or check_due_ms <= draft.now_ms:
        roles.become_resigned(draft)
        return draft.now_ms
    return min(
        check_due_ms,
        pending_change.expire(draft),
        delayed.complete_due(draft),
        _announce_epoch(draft),
    )


def _announce_epoch(draft: ready.Draft) -> int:
    """Send BeginQuorumEpoch to voters that have not fetched for half a fetch timeout; return when to check again.

    At the same time observers that have not fetched for long are forgotten.
    """
    state, settings = draft.state, draft.node.settings
    assert isinstance(state, states.Leader), state
    if state.begin_epoch_due_ms > draft.now_ms:
        return state.begin_epoch_due_ms
    for progress in state.replicas.voters.values():
        last_ms = progress.last_fetch_ms
        is_silent = last_ms is None or draft.now_ms - last_ms >= settings.begin_epoch_interval_ms
        destination = elections.voter_destination(draft.node, progress.key.id)
        if is_silent and destination is not None and progress.key.id != draft.node.id:
            body = messages.BeginQuorumEpochRequest(
                settings.cluster_id, state.epoch, draft.node.id, settings.endpoints, progress.key
            )
            draft.send(destination, body)
    due_ms = draft.now_ms + settings.begin_epoch_interval_ms
    replicas = state.replicas.without_silent_observers(draft.now_ms, draft.node.key)
    draft.set_state(changed(state, replicas=replicas, begin_epoch_due_ms=due_ms))
    return due_ms


def poll_resigned(draft: ready.Draft, state: states.Resigned) -> int:
    """Notify the voters that the leader has resigned, and leave the state after the election timeout."""
    node, settings = draft.node, draft.node.settings
    if node.shutdown_due_ms is None and state.election_due_ms <= draft.now_ms:
        if node.may_campaign:
            roles.RESIGNED_ENDS[settings.rules](draft)
        else:
            roles.become_unattached(draft, state.epoch + 1)
        return draft.now_ms
    due_ms = state.election_due_ms if node.shutdown_due_ms is None else states.NEVER
    body = messages.EndQuorumEpochRequest(
        settings.cluster_id, state.epoch, node.id, state.successors, settings.endpoints
    )
    for voter_id in sorted(state.unacknowledged):
        destination = elections.voter_destination(node, voter_id)
        if destination is not None:
            draft.send(destination, body)
            due_ms = min(due_ms, draft.node.connections.ready_at(voter_id, draft.now_ms))
    return due_ms
