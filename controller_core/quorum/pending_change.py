"""The one change of the voter set that a leader has under way: its end by a commit, by its time limit, or with the leadership."""

from controller_core.quorum import messages, ready, states
from controller_core.quorum.changed import changed
from kafka_wire import ErrorCode

Change = states.AddingVoter | states.RemovingVoter


def answer(draft: ready.Draft, change: Change, error: ErrorCode, message: str | None = None) -> None:
    """Answer the request for a change, unless it was answered before its commit."""
    if isinstance(change, states.RemovingVoter):
        draft.replies.append(ready.Reply(change.request_id, messages.RemoveRaftVoterResponse(error, message)))
    elif change.request_id is not None:
        draft.replies.append(ready.Reply(change.request_id, messages.AddRaftVoterResponse(error, message)))


def end(draft: ready.Draft, error: ErrorCode, message: str | None = None) -> None:
    """End the change under way with an answer; what was appended for it stays in the log."""
    state = draft.state
    assert isinstance(state, states.Leader), state
    assert state.change is not None, state
    answer(draft, state.change, error, message)
    draft.set_state(changed(state, change=None))


def complete(draft: ready.Draft) -> None:
    """End the change if its record is committed. A leader that is not in the committed voter set resigns."""
    state, high_watermark = draft.state, draft.node.high_watermark or 0
    assert isinstance(state, states.Leader), state
    change, voters_offset = state.change, draft.node.history.voters_offset
    if change is not None and change.offset is not None and high_watermark > change.offset:
        end(draft, ErrorCode.NONE)
        state = draft.state
    if not draft.node.is_voter and voters_offset is not None and high_watermark > voters_offset:
        assert isinstance(state, states.Leader), state
        draft.set_state(changed(state, is_resigning=True))


def expire(draft: ready.Draft) -> int:
    """End the change if its time is over; return when that is. Its record may still be committed later."""
    state = draft.state
    assert isinstance(state, states.Leader), state
    if state.change is None:
        return states.NEVER
    if state.change.due_ms <= draft.now_ms:
        end(draft, ErrorCode.REQUEST_TIMED_OUT)
        return states.NEVER
    return state.change.due_ms


def refuse(draft: ready.Draft, state: states.Leader) -> None:
    """Answer the request for a change at a node that no longer leads."""
    if state.change is not None:
        answer(draft, state.change, ErrorCode.NOT_LEADER_OR_FOLLOWER)
