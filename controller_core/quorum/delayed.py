"""Fetches that a leader has received: when they are answered, and with what.

A voter is answered as soon as there are records, since the commit waits for it. An observer is answered once records are committed: it
applies no others, and would otherwise fetch twice for each commit (ADR 29). Many observers are answered together, with a pause between two
times, in which the leader can append (ADR 46).
"""

from collections.abc import Callable, Iterable

from controller_core.quorum.batches import Position
from controller_core.quorum.changed import changed
from controller_core.quorum.inputs import Request
from controller_core.quorum.log_view import Validity
from controller_core.quorum.messages import UNKNOWN, FetchRequest, FetchResponse, ReadRange
from controller_core.quorum.ready import Draft, Reply
from controller_core.quorum.rules import RESPONSE_BYTES_MAX, observer_pause_ms
from controller_core.quorum.states import NEVER, DelayedFetch, Leader
from controller_core.quorum.voters import ReplicaKey
from kafka_wire import ErrorCode


def fetch_response(draft: Draft, listener: str, fetched: Position, max_bytes: int) -> FetchResponse:
    """Return the response of a leader, as its log is now, to a Fetch from `fetched` on."""
    node = draft.node
    validity, position = node.log.validate(fetched)
    has_records = validity is Validity.VALID and fetched.offset < node.log.end_offset
    read_bytes = min(max_bytes, RESPONSE_BYTES_MAX)
    return FetchResponse(
        leadership=node.leadership(listener),
        high_watermark=UNKNOWN if node.high_watermark is None else node.high_watermark,
        log_start_offset=node.log.start_offset,
        diverging=position if validity is Validity.DIVERGING else None,
        snapshot=position if validity is Validity.SNAPSHOT else None,
        read=ReadRange(position.offset, node.log.end_offset, read_bytes) if has_records else None,
    )


def has_news(state: Leader, request: FetchRequest, response: FetchResponse) -> bool:
    """Whether a follower is answered now: its log differs, it has to fetch a snapshot, or there are records or commits for it."""
    if response.diverging or response.snapshot or response.high_watermark > request.high_watermark:
        return True
    if state.replicas.is_voter(request.replica):
        return response.read is not None
    return response.high_watermark > request.fetched.offset


def must_pause(draft: Draft, state: Leader, request: FetchRequest, response: FetchResponse) -> bool:
    """Whether a follower waits for the end of the observers' pause, although there are commits for it.

    A log that differs is corrected at once.
    """
    is_correction = response.diverging is not None or response.snapshot is not None
    is_pause = draft.now_ms < state.delayed.pause_end_ms
    return is_pause and not is_correction and not state.replicas.is_voter(request.replica)


def park(draft: Draft, state: Leader, request: Request, fetch: FetchRequest, *, has_news: bool) -> None:
    """Answer later. A replica waits with one Fetch: an earlier one, whose answer it no longer expects, is answered now.

    `has_news`: it waits for the end of the observers' pause, not for a commit.
    """
    waiting = state.delayed
    earlier = waiting.by_replica.get(fetch.replica)
    if earlier is not None:
        _answer(draft, [earlier])
    new = DelayedFetch(request.id, request.listener, fetch, draft.now_ms + fetch.max_wait_ms)
    waiting = changed(
        waiting,
        by_replica={**waiting.by_replica, fetch.replica: new},
        due_ms=min(waiting.due_ms, new.due_ms),
        observers_have_news=waiting.observers_have_news or has_news,
    )
    draft.set_state(changed(state, delayed=waiting))


def start_pause(draft: Draft) -> None:
    """Let the observers wait, after one of them was answered with news."""
    state = draft.state
    assert isinstance(state, Leader), state
    pause_ms = observer_pause_ms(len(state.replicas.observers))
    if pause_ms > 0:
        draft.set_state(changed(state, delayed=changed(state.delayed, pause_end_ms=draft.now_ms + pause_ms)))


def complete_for_voters(draft: Draft) -> None:
    """Answer voters after an append."""
    end_offset = draft.node.log.end_offset
    _complete(
        draft,
        lambda state, fetch: (
            state.replicas.is_voter(fetch.request.replica) and fetch.request.fetched.offset < end_offset
        ),
    )


def complete_after_commit(draft: Draft) -> None:
    """Answer voters after a commit, and observers unless they have to wait for the end of their pause."""
    _complete(draft, lambda state, fetch: state.replicas.is_voter(fetch.request.replica))
    state = draft.state
    assert isinstance(state, Leader), state
    draft.set_state(changed(state, delayed=changed(state.delayed, observers_have_news=True)))
    _complete_for_observers(draft)


def complete_due(draft: Draft) -> int:
    """Answer those that have waited long enough; return the time before which no other one has."""
    _complete_for_observers(draft)
    state = draft.state
    assert isinstance(state, Leader), state
    if state.delayed.due_ms <= draft.now_ms:
        state = _complete(draft, lambda _state, fetch: fetch.due_ms <= draft.now_ms)
    waiting = state.delayed
    return min(waiting.due_ms, waiting.pause_end_ms) if waiting.observers_have_news else waiting.due_ms


def _complete_for_observers(draft: Draft) -> None:
    """Answer observers with news at the end of their pause, and start the next one."""
    state = draft.state
    assert isinstance(state, Leader), state
    waiting = state.delayed
    if waiting.observers_have_news and waiting.pause_end_ms <= draft.now_ms:
        draft.set_state(changed(state, delayed=changed(waiting, observers_have_news=False)))
        answered = _complete(draft, lambda state, fetch: not state.replicas.is_voter(fetch.request.replica))
        if len(answered.delayed.by_replica) < len(waiting.by_replica):
            start_pause(draft)


def refuse_all(draft: Draft, state: Leader) -> None:
    """Answer all that wait for a node that no longer leads, so that they find the next leader."""
    for fetch in state.delayed.by_replica.values():
        leadership = draft.node.leadership(fetch.listener)
        draft.replies.append(Reply(fetch.request_id, FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, leadership)))


def _complete(draft: Draft, is_due: Callable[[Leader, DelayedFetch], bool]) -> Leader:
    """Answer those that are due, and return the state."""
    state = draft.state
    assert isinstance(state, Leader), state
    due: list[DelayedFetch] = []
    waiting: dict[ReplicaKey, DelayedFetch] = {}
    for key, fetch in state.delayed.by_replica.items():
        if is_due(state, fetch):
            due.append(fetch)
        else:
            waiting[key] = fetch
    if due or state.delayed.due_ms <= draft.now_ms:
        due_ms = min((fetch.due_ms for fetch in waiting.values()), default=NEVER)
        state = changed(state, delayed=changed(state.delayed, by_replica=waiting, due_ms=due_ms))
        draft.set_state(state)
        _answer(draft, due)
    return state


def _answer(draft: Draft, due: Iterable[DelayedFetch]) -> None:
    """Answer Fetches. Those that ask for the same records get the same response, which the shell reads and encodes once."""
    responses: dict[tuple[str, int, int, int], FetchResponse] = {}
    for fetch in due:
        fetched, max_bytes = fetch.request.fetched, fetch.request.max_bytes
        asked = (fetch.listener, fetched.offset, fetched.epoch, max_bytes)
        response = responses.get(asked)
        if response is None:
            response = responses[asked] = fetch_response(draft, fetch.listener, fetched, max_bytes)
        draft.replies.append(Reply(fetch.request_id, response))
