"""A leader's side of Fetch: checks, the follower's progress, and the answer now or later."""

from controller_core.quorum import checks, delayed, leader
from controller_core.quorum.changed import changed
from controller_core.quorum.inputs import Request
from controller_core.quorum.log_view import Validity
from controller_core.quorum.messages import NONE, FetchRequest, FetchResponse
from controller_core.quorum.progress import Progress
from controller_core.quorum.ready import Draft
from controller_core.quorum.replicas import ReplicaKey
from controller_core.quorum.rules import REPLICAS_MAX
from kafka_wire.errors import ErrorCode


def answer_fetch(draft: Draft, request: Request, body: FetchRequest) -> None:
    """Answer a Fetch: with an error, a truncation, a snapshot or records, or later."""
    error = _error(draft, body)
    if error is ErrorCode.INCONSISTENT_CLUSTER_ID:
        draft.answer(request, FetchResponse(error))
        return
    if error is not NONE:
        draft.answer(request, FetchResponse(error, draft.node.leadership(request.listener)))
        return
    if draft.node.log.validate(body.fetched)[0] is Validity.VALID:
        _count(draft, body)
    response = delayed.fetch_response(draft, request.listener, body.fetched, body.max_bytes)
    state = leader.leading(draft)
    has_news = delayed.has_news(state, body, response)
    may_wait = body.max_wait_ms > 0 and len(state.delayed.by_replica) < REPLICAS_MAX
    if may_wait and (not has_news or delayed.must_pause(draft, state, body, response)):
        delayed.park(draft, state, request, body, has_news=has_news)
        return
    draft.answer(request, response)
    if has_news and not state.replicas.is_voter(body.replica):
        delayed.start_pause(draft)


def _error(draft: Draft, body: FetchRequest) -> ErrorCode:
    if checks.wrong_cluster(draft.node, body.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    fetched = body.fetched
    if body.max_wait_ms < 0 or fetched.offset < 0 or fetched.epoch < 0 or fetched.epoch > body.epoch:
        return ErrorCode.INVALID_REQUEST
    error = checks.leader_error(draft.node, body.epoch)
    if error:
        return error
    # Another process runs with this node's id: it may not count as a replica.
    return ErrorCode.UNKNOWN_SERVER_ERROR if body.replica.id == draft.node.id else NONE


def _count(draft: Draft, body: FetchRequest) -> None:
    """Count a follower's fetch offset: all before it is on the follower's disk. Fetches of others than replicas have no id."""
    key = body.replica
    if key.id < 0:
        return
    state = leader.leading(draft)
    known = state.replicas.find(key)
    if known is None and len(state.replicas.observers) >= REPLICAS_MAX:
        return
    progress = known or Progress(key)
    progress = progress.fetched(body.fetched.offset, draft.node.log.end_offset, draft.now_ms)
    replicas = state.replicas.update(key, progress)
    draft.set_state(changed(state, replicas=replicas))
    count_voter(draft, key)
    if replicas.is_voter(key):
        leader.update_high_watermark(draft)


def count_voter(draft: Draft, key: ReplicaKey) -> None:
    """Count a voter as following; with a majority, the leader included, the time to the next check starts again.

    A leader that is the only voter has a majority at each Fetch of an observer, so that it does not resign when that is added.
    """
    state = leader.leading(draft)
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
