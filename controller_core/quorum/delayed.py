"""Fetches that a leader has received: when they are answered, and with what.

A voter is answered as soon as there are records, since the commit waits for it. An observer is answered once records are committed: it
applies no others, and would otherwise fetch twice for each commit (ADR 29). Many observers are answered together, with a pause between two
times, in which the leader can append (ADR 46).
"""

from collections.abc import Callable, Iterable

from controller_core.quorum import batches, inputs, log_view, messages, ready, rules, states, voters
from controller_core.quorum.changed import changed
from kafka_wire import ErrorCode


def fetch_response(
    draft: ready.Draft, listener: str, fetched: batches.Position, max_bytes: int
) -> messages.FetchResponse:
    """Return the response of a leader, as its log is now, to a Fetch from `fetched` on."""
    node = draft.node
    validity, position = node.log.validate(fetched)
    has_records = validity is log_view.Validity.VALID and fetched.offset < node.log.end_offset
    read_bytes = min(max_bytes, rules.RESPONSE_BYTES_MAX)
    return messages.FetchResponse(
        leadership=node.leadership(listener),
        high_watermark=messages.UNKNOWN if node.high_watermark is None else node.high_watermark,
        log_start_offset=node.log.start_offset,
        diverging=position if validity is log_view.Validity.DIVERGING else None,
        snapshot=position if validity is log_view.Validity.SNAPSHOT else None,
        read=messages.ReadRange(position.offset, node.log.end_offset, read_bytes) if has_records else None,
    )


def has_news(state: states.Leader, request: messages.FetchRequest, response: messages.FetchResponse) -> bool:
    """Whether a follower is answered now: its log differs, it has to fetch a snapshot, or there are records or commits for it."""
    if response.diverging or response.snapshot or response.high_watermark > request.high_watermark:
        return True
    if state.replicas.is_voter(request.replica):
        return response.read is not None
    return response.high_watermark > request.fetched.offset


def must_pause(
    draft: ready.Draft, state: states.Leader, request: messages.FetchRequest, response: messages.FetchResponse
) -> bool:
    """Whether a follower waits for the end of the observers' pause, although there are commits for it.

    A log that differs is corrected at once.
    """
    is_correction = response.diverging is not None or response.snapshot is not None
    is_pause = draft.now_ms < state.delayed.pause_end_ms
    return is_pause and not is_correction and not state.replicas.is_voter(request.replica)


def park(
    draft: ready.Draft, state: states.Leader, request: inputs.Request, fetch: messages.FetchRequest, *, has_news: bool
) -> None:
    """Answer later. A replica waits with one Fetch: an earlier one, whose answer it no longer expects, is answered now.

    `has_news`: it waits for the end of the observers' pause, not for a commit.
    """
    waiting = state.delayed
    earlier = waiting.by_replica.get(fetch.replica)
    if earlier is not None:
        _answer(draft, [earlier])
    new = states.DelayedFetch(request.id, request.listener, fetch, draft.now_ms + fetch.max_wait_ms)
    waiting = changed(
        waiting,
        by_replica={**waiting.by_replica, fetch.replica: new},
        due_ms=min(waiting.due_ms, new.due_ms),
        observers_have_news=waiting.observers_have_news or has_news,
    )
    draft.set_state(changed(state, delayed=waiting))


def start_pause(draft: ready.Draft) -> None:
    """Let the observers wait, after one of them was answered with news."""
    state = draft.state
    assert isinstance(state, states.Leader), state
    pause_ms = rules.observer_pause_ms(len(state.replicas.observers))
    if pause_ms > 0:
        draft.set_state(changed(state, delayed=changed(state.delayed, pause_end_ms=draft.now_ms + pause_ms)))


def complete_for_voters(draft: ready.Draft) -> None:
    """Answer voters after an append."""
    end_offset = draft.node.log.end_offset
    _complete(
        draft,
        lambda state, fetch: (
            state.replicas.is_voter(fetch.request.replica) and fetch.request.fetched.offset < end_offset
        ),
    )


def complete_after_commit(draft: ready.Draft) -> None:
    """Answer voters after a commit, and observers unless they have to wait for the end of their pause."""
    _complete(draft, lambda state, fetch: state.replicas.is_voter(fetch.request.replica))
    state = draft.state
    assert isinstance(state, states.Leader), state
    draft.set_state(changed(state, delayed=changed(state.delayed, observers_have_news=True)))
    _complete_for_observers(draft)


def complete_due(draft: ready.Draft) -> int:
    """Answer those that have waited long enough; return the time before which no other one has."""
    _complete_for_observers(draft)
    state = draft.state
    assert isinstance(state, states.Leader), state
    if state.delayed.due_ms <= draft.now_ms:
        state = _complete(draft, lambda _state, fetch: fetch.due_ms <= draft.now_ms)
    waiting = state.delayed
    return min(waiting.due_ms, waiting.pause_end_ms) if waiting.observers_have_news else waiting.due_ms


def _complete_for_observers(draft: ready.Draft) -> None:
    """Answer observers with news at the end of their pause, and start the next one."""
    state = draft.state
    assert isinstance(state, states.Leader), state
    waiting = state.delayed
    if waiting.observers_have_news and waiting.pause_end_ms <= draft.now_ms:
        draft.set_state(changed(state, delayed=changed(waiting, observers_have_news=False)))
        answered = _complete(draft, lambda state, fetch: not state.replicas.is_voter(fetch.request.replica))
        if len(answered.delayed.by_replica) < len(waiting.by_replica):
            start_pause(draft)


def refuse_all(draft: ready.Draft, state: states.Leader) -> None:
    """Answer all that wait for a node that no longer leads, so that they find the next leader."""
    for fetch in state.delayed.by_replica.values():
        leadership = draft.node.leadership(fetch.listener)
        draft.replies.append(
            ready.Reply(fetch.request_id, messages.FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, leadership))
        )


def _complete(draft: ready.Draft, is_due: Callable[[states.Leader, states.DelayedFetch], bool]) -> states.Leader:
    """Answer those that are due, and return the state."""
    state = draft.state
    assert isinstance(state, states.Leader), state
    due: list[states.DelayedFetch] = []
    waiting: dict[voters.ReplicaKey, states.DelayedFetch] = {}
    for key, fetch in state.delayed.by_replica.items():
        if is_due(state, fetch):
            due.append(fetch)
        else:
            waiting[key] = fetch
    if due or state.delayed.due_ms <= draft.now_ms:
        due_ms = min((fetch.due_ms for fetch in waiting.values()), default=states.NEVER)
        state = changed(state, delayed=changed(state.delayed, by_replica=waiting, due_ms=due_ms))
        draft.set_state(state)
        _answer(draft, due)
    return state


def _answer(draft: ready.Draft, due: Iterable[states.DelayedFetch]) -> None:
    """Answer Fetches. Those that ask for the same records get the same response, which the shell reads and encodes once."""
    responses: dict[tuple[str, int, int, int], messages.FetchResponse] = {}
    for fetch in due:
        fetched, max_bytes = fetch.request.fetched, fetch.request.max_bytes
        asked = (fetch.listener, fetched.offset, fetched.epoch, max_bytes)
        response = responses.get(asked)
        if response is None:
            response = responses[asked] = fetch_response(draft, fetch.listener, fetched, max_bytes)
        draft.replies.append(ready.Reply(fetch.request_id, response))
