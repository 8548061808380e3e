"""Snapshots between nodes: a leader's answers to FetchSnapshot, and a follower's way from the first byte to a new log."""

from controller_core.quorum import (
    batches,
    checks,
    inputs,
    leader,
    leadership,
    log_view,
    messages,
    ready,
    roles,
    rules,
    states,
)
from controller_core.quorum.changed import changed
from kafka_wire import ErrorCode


def answer_fetch(draft: ready.Draft, request: inputs.Request, body: messages.FetchSnapshotRequest) -> None:
    """Answer with bytes of a snapshot. A voter that fetches a snapshot follows this leader, as one that fetches records does."""
    error = _error(draft, body)
    if error is ErrorCode.INCONSISTENT_CLUSTER_ID:
        draft.answer(request, messages.FetchSnapshotResponse(error))
        return
    snapshot = draft.node.log.snapshot(body.snapshot)
    known = draft.node.leadership(request.listener)
    if error is not messages.NONE or snapshot is None:
        draft.answer(request, messages.FetchSnapshotResponse(error, known))
        return
    leader.count_voter(draft, body.replica)
    size = snapshot.size_bytes
    read_bytes = min(body.max_bytes, rules.RESPONSE_BYTES_MAX, size - body.position)
    draft.answer(
        request, messages.FetchSnapshotResponse(messages.NONE, known, body.snapshot, size, body.position, read_bytes)
    )


def _error(draft: ready.Draft, body: messages.FetchSnapshotRequest) -> ErrorCode:
    """Check a request; the bootstrap snapshot is not served, as its records are in the log of the first leader."""
    if checks.wrong_cluster(draft.node, body.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    error = checks.leader_error(draft.node, body.epoch)
    if error:
        return error
    snapshot = draft.node.log.snapshot(body.snapshot)
    if snapshot is None or body.snapshot == batches.BOOTSTRAP_SNAPSHOT:
        return ErrorCode.SNAPSHOT_NOT_FOUND
    return messages.NONE if 0 <= body.position < snapshot.size_bytes else ErrorCode.POSITION_OUT_OF_RANGE


def take_chunk(draft: ready.Draft, body: messages.FetchSnapshotResponse) -> bool:
    """Write bytes of the snapshot that is being fetched; return whether the sender may be asked again at once."""
    handled = leadership.learn_from_response(draft, body.error, body.leadership)
    state = draft.state
    if handled is not None or not isinstance(state, states.Follower):
        return handled is not False
    has_snapshot = body.snapshot is not None and body.snapshot.is_valid
    if body.error is ErrorCode.SNAPSHOT_NOT_FOUND or (body.error is messages.NONE and not has_snapshot):
        # The leader has deleted it, because it has a later one: the next Fetch names that.
        draft.set_state(changed(state, fetching=None))
        roles.count_as_fetch(draft)
        return True
    if body.error is ErrorCode.POSITION_OUT_OF_RANGE and state.fetching is not None:
        # Not the snapshot of before: start again.
        draft.set_state(changed(state, fetching=None))
        return False
    if body.error is not messages.NONE:
        return False
    fetching = state.fetching
    if fetching is None or fetching.id != body.snapshot or fetching.position != body.position or not body.data:
        draft.violation(f"bytes of snapshot {body.snapshot} at {body.position} were not asked for")
        return False
    _write(draft, state, fetching, body)
    roles.count_as_fetch(draft)
    return True


def _write(
    draft: ready.Draft, state: states.Follower, fetching: states.SnapshotFetch, body: messages.FetchSnapshotResponse
) -> None:
    position = fetching.position + len(body.data)
    is_last = position >= body.size_bytes
    draft.log.append(ready.SnapshotChunk(fetching.id, fetching.position, body.data, is_last))
    draft.set_state(changed(state, fetching=None if is_last else changed(fetching, position=position)))
    if is_last:
        draft.node = changed(draft.node, installing=fetching.id)


def install(draft: ready.Draft, message: inputs.SnapshotInstalled) -> None:
    """Go on from a fetched snapshot: the log starts at its end, with the voters in it."""
    assert draft.node.installing == message.id, message
    node, offset = draft.node, message.id.offset
    log = node.log.restart_at(log_view.Snapshot(message.id, message.size_bytes))
    history = node.history.from_snapshot(offset, message.voters, message.kraft_version)
    high_watermark = max(offset, node.high_watermark or 0)
    draft.node = changed(node, log=log, history=history, installing=None, high_watermark=high_watermark)
    if log.high_watermark > node.log.high_watermark:
        draft.notices.append(ready.Committed(log.high_watermark))


def reject(draft: ready.Draft, message: inputs.SnapshotRejected) -> None:
    """Forget a fetched snapshot that was not valid; the next Fetch names one again."""
    assert draft.node.installing == message.id, message
    draft.node = changed(draft.node, installing=None)


def add(draft: ready.Draft, message: inputs.SnapshotCreated) -> None:
    """Note a snapshot of the state machine; older voter sets are removed from the history."""
    node = draft.node
    assert message.id.offset <= node.log.high_watermark, message
    log = node.log.add_snapshot(log_view.Snapshot(message.id, message.size_bytes))
    draft.node = changed(node, log=log, history=node.history.forget_before(message.id.offset - 1))


def clean(draft: ready.Draft, message: inputs.LogCleaned) -> None:
    """Note that the beginning of the log was deleted."""
    draft.node = changed(draft.node, log=draft.node.log.start_from(message.start_offset))
