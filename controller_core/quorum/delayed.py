"""Fetches that a leader has received: when they are answered, and with what.

A voter is answered as soon as there are records, since the commit waits for it. An observer is answered once records are committed: it
applies no others, and would otherwise fetch twice for each commit (ADR 29).
"""

from collections.abc import Callable

from controller_core.quorum.changed import changed
from controller_core.quorum.inputs import Request
from controller_core.quorum.log_view import Validity
from controller_core.quorum.messages import UNKNOWN, FetchRequest, FetchResponse, ReadRange
from controller_core.quorum.ready import Draft, Reply
from controller_core.quorum.rules import RESPONSE_BYTES_MAX
from controller_core.quorum.states import NEVER, DelayedFetch, Leader
from kafka_wire.errors import ErrorCode


def fetch_response(draft: Draft, listener: str, request: FetchRequest) -> FetchResponse:
    """Return the response of a leader as its log is now."""
    node = draft.node
    validity, position = node.log.validate(request.fetched)
    has_records = validity is Validity.VALID and request.fetched.offset < node.log.end_offset
    max_bytes = min(request.max_bytes, RESPONSE_BYTES_MAX)
    return FetchResponse(
        leadership=node.leadership(listener),
        high_watermark=UNKNOWN if node.high_watermark is None else node.high_watermark,
        log_start_offset=node.log.start_offset,
        diverging=position if validity is Validity.DIVERGING else None,
        snapshot=position if validity is Validity.SNAPSHOT else None,
        read=ReadRange(position.offset, node.log.end_offset, max_bytes) if has_records else None,
    )


def has_news(state: Leader, request: FetchRequest, response: FetchResponse) -> bool:
    """Whether a follower is answered now: its log differs, it has to fetch a snapshot, or there are records or commits for it."""
    if response.diverging or response.snapshot or response.high_watermark > request.high_watermark:
        return True
    if state.replicas.is_voter(request.replica):
        return response.read is not None
    return response.high_watermark > request.fetched.offset


def park(draft: Draft, state: Leader, request: Request, fetch: FetchRequest) -> None:
    """Answer later. A replica waits with one Fetch: an earlier one, whose answer it no longer expects, is answered now."""
    kept = []
    for one in state.delayed:
        if one.request.replica == fetch.replica:
            _answer(draft, one)
        else:
            kept.append(one)
    kept.append(DelayedFetch(request.id, request.listener, fetch, draft.now_ms + fetch.max_wait_ms))
    draft.set_state(changed(state, delayed=tuple(kept)))


def complete_for_voters(draft: Draft) -> None:
    """Answer voters after an append."""
    end_offset = draft.node.log.end_offset
    _complete(
        draft,
        lambda state, one: state.replicas.is_voter(one.request.replica) and one.request.fetched.offset < end_offset,
    )


def complete_all(draft: Draft) -> None:
    """Answer all after a commit."""
    _complete(draft, lambda _state, _one: True)


def complete_due(draft: Draft) -> int:
    """Answer those that have waited long enough; return when the next one has."""
    _complete(draft, lambda _state, one: one.due_ms <= draft.now_ms)
    state = draft.state
    return min((one.due_ms for one in state.delayed), default=NEVER) if isinstance(state, Leader) else NEVER


def refuse_all(draft: Draft, state: Leader) -> None:
    """Answer all that wait for a node that no longer leads, so that they find the next leader."""
    for one in state.delayed:
        leadership = draft.node.leadership(one.listener)
        draft.replies.append(Reply(one.request_id, FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, leadership)))


def _complete(draft: Draft, is_due: Callable[[Leader, DelayedFetch], bool]) -> None:
    state = draft.state
    assert isinstance(state, Leader), state
    due: list[DelayedFetch] = []
    waiting: list[DelayedFetch] = []
    for one in state.delayed:
        (due if is_due(state, one) else waiting).append(one)
    if due:
        draft.set_state(changed(state, delayed=tuple(waiting)))
        for one in due:
            _answer(draft, one)


def _answer(draft: Draft, one: DelayedFetch) -> None:
    draft.replies.append(Reply(one.request_id, fetch_response(draft, one.listener, one.request)))
