"""A leader's log and its side of Fetch: appends, flushes, progress of followers, the high watermark, and what waits for them."""

from controller_core.quorum import (
    batches,
    checks,
    delayed,
    inputs,
    log_view,
    messages,
    pending_change,
    ready,
    rules,
    states,
    voter_history,
)
from controller_core.quorum.changed import changed
from controller_core.quorum.progress import Progress
from controller_core.quorum.voters import STATIC_VOTERS, ReplicaKey
from kafka_wire import ErrorCode


def start_of_epoch(draft: ready.Draft, granting: tuple[int, ...]) -> batches.Batch:
    """Return the first batch of an epoch: its leader, and the voters where the log does not have them as they are.

    That is the case for voters of the bootstrap snapshot, which is not replicated, and when the leader's own endpoints or versions changed.
    """
    node = draft.node
    records: list[batches.ControlRecord] = [batches.LeaderChangeRecord(node.id, node.voters.ids, granting)]
    level = node.history.kraft_version
    if level > STATIC_VOTERS:
        is_bootstrap = node.history.voters_offset == voter_history.BOOTSTRAP_OFFSET
        if is_bootstrap or node.voters.needs_update(node.own_voter):
            voters = node.voters.update(node.own_voter)
            assert voters is not None, node.voters
            records += [batches.KRaftVersionRecord(level), batches.VotersRecord(voters)]
    return batches.control_batch(node.log.end_offset, node.epoch, *records)


def append(draft: ready.Draft, batch: batches.Batch) -> None:
    """Append a batch. Voters that wait for records are answered; the leader counts itself once its flush has ended."""
    voters_before = draft.node.voters
    draft.append((batch,))
    draft.flush_log()
    if draft.node.voters is not voters_before:
        state = leading(draft)
        draft.set_state(changed(state, replicas=state.replicas.with_voters(draft.node.voters)))
        update_high_watermark(draft)
    delayed.complete_for_voters(draft)


def append_records(draft: ready.Draft, message: inputs.Append) -> None:
    """Append the controller's records as one batch, or refuse them.

    They are refused in another epoch than that in which they were decided, and above the limit of a batch: a caller whose records need
    not be in one batch splits them.
    """
    state, end_offset = draft.state, draft.node.log.end_offset
    if not isinstance(state, states.Leader) or state.epoch != message.epoch or state.is_resigning:
        draft.replies.append(ready.Reply(message.id, ready.AppendResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)))
        return
    settings = draft.node.settings
    if len(message.payload) > min(settings.append_max_bytes, settings.batch_max_bytes):
        draft.replies.append(ready.Reply(message.id, ready.AppendResult(ErrorCode.RECORD_LIST_TOO_LARGE)))
        return
    append(draft, batches.Batch(end_offset, end_offset + message.record_count - 1, state.epoch, message.payload))
    draft.replies.append(ready.Reply(message.id, ready.AppendResult(ErrorCode.NONE, end_offset)))


def count_flushed(draft: ready.Draft) -> None:
    """Count what the leader itself has on disk, as a follower's fetch offset is counted."""
    state = leading(draft)
    own = state.replicas.find(draft.node.key) or Progress(draft.node.key)
    own = changed(own, end_offset=draft.node.log.flushed_offset)
    draft.set_state(changed(state, replicas=state.replicas.update(draft.node.key, own)))
    update_high_watermark(draft)


def update_high_watermark(draft: ready.Draft) -> None:
    """Raise the high watermark to what a majority of the voters has on disk, once that is beyond the start of the epoch.

    A change of the voters can lower what a majority has; the high watermark stays then.
    """
    state = leading(draft)
    majority_end = state.replicas.majority_end()
    if majority_end is None or majority_end <= state.start_offset or majority_end <= (draft.node.high_watermark or 0):
        return
    draft.commit(majority_end)
    pending_change.complete(draft)
    delayed.complete_after_commit(draft)


def refuse_waiting(draft: ready.Draft, state: states.Leader) -> None:
    """Answer the requests that wait for a node that no longer leads."""
    delayed.refuse_all(draft, state)
    pending_change.refuse(draft, state)


def leading(draft: ready.Draft) -> states.Leader:
    """Return the state of a node that leads."""
    assert isinstance(draft.state, states.Leader), draft.state
    return draft.state


def answer_fetch(draft: ready.Draft, request: inputs.Request, body: messages.FetchRequest) -> None:
    """Answer a Fetch: with an error, a truncation, a snapshot or records, or later."""
    error = _fetch_error(draft, body)
    if error is ErrorCode.INCONSISTENT_CLUSTER_ID:
        draft.answer(request, messages.FetchResponse(error))
        return
    if error is not messages.NONE:
        draft.answer(request, messages.FetchResponse(error, draft.node.leadership(request.listener)))
        return
    if draft.node.log.validate(body.fetched)[0] is log_view.Validity.VALID:
        _count_fetch(draft, body)
    response = delayed.fetch_response(draft, request.listener, body.fetched, body.max_bytes)
    state = leading(draft)
    has_news = delayed.has_news(state, body, response)
    may_wait = body.max_wait_ms > 0 and len(state.delayed.by_replica) < rules.REPLICAS_MAX
    if may_wait and (not has_news or delayed.must_pause(draft, state, body, response)):
        delayed.park(draft, state, request, body, has_news=has_news)
        return
    draft.answer(request, response)
    if has_news and not state.replicas.is_voter(body.replica):
        delayed.start_pause(draft)


def _fetch_error(draft: ready.Draft, body: messages.FetchRequest) -> ErrorCode:
    if checks.wrong_cluster(draft.node, body.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    fetched = body.fetched
    if body.max_wait_ms < 0 or fetched.offset < 0 or fetched.epoch < 0 or fetched.epoch > body.epoch:
        return ErrorCode.INVALID_REQUEST
    error = checks.leader_error(draft.node, body.epoch)
    if error:
        return error
    # Another process runs with this node's id: it may not count as a replica.
    return ErrorCode.UNKNOWN_SERVER_ERROR if body.replica.id == draft.node.id else messages.NONE


def _count_fetch(draft: ready.Draft, body: messages.FetchRequest) -> None:
    """Count a follower's fetch offset: all before it is on the follower's disk. Fetches of others than replicas have no id."""
    key = body.replica
    if key.id < 0:
        return
    state = leading(draft)
    known = state.replicas.find(key)
    if known is None and len(state.replicas.observers) >= rules.REPLICAS_MAX:
        return
    progress = known or Progress(key)
    progress = progress.fetched(body.fetched.offset, draft.node.log.end_offset, draft.now_ms)
    replicas = state.replicas.update(key, progress)
    draft.set_state(changed(state, replicas=replicas))
    count_voter(draft, key)
    if replicas.is_voter(key):
        update_high_watermark(draft)


def count_voter(draft: ready.Draft, key: ReplicaKey) -> None:
    """Count a voter as following; with a majority, the leader included, the time to the next check starts again.

    A leader that is the only voter has a majority at each Fetch of an observer, so that it does not resign when that is added.
    """
    state = leading(draft)
    voters, is_voter = state.replicas.voters, state.replicas.is_voter(key)
    needed = len(voters) // 2 + 1 - (1 if draft.node.id in voters else 0)
    if not is_voter and needed > 0:
        return
    fetched = state.fetched & voters.keys()
    if is_voter:
        fetched |= {key.id}
    if len(fetched) >= needed:
        due_ms = draft.now_ms + draft.node.settings.check_quorum_timeout_ms
        draft.set_state(changed(state, fetched=frozenset(), check_quorum_due_ms=due_ms))
    else:
        draft.set_state(changed(state, fetched=fetched))
