"""A leader's log: appends, its own flushes, the high watermark, and what waits for them."""

from controller_core.quorum import delayed, pending_change
from controller_core.quorum.batches import (
    Batch,
    ControlRecord,
    KRaftVersionRecord,
    LeaderChangeRecord,
    VotersRecord,
    control_batch,
)
from controller_core.quorum.changed import changed
from controller_core.quorum.inputs import Append
from controller_core.quorum.progress import Progress
from controller_core.quorum.ready import AppendResult, Draft, Reply
from controller_core.quorum.states import Leader
from controller_core.quorum.voter_history import BOOTSTRAP_OFFSET
from controller_core.quorum.voters import STATIC_VOTERS
from kafka_wire.errors import ErrorCode


def start_of_epoch(draft: Draft, granting: tuple[int, ...]) -> Batch:
    """Return the first batch of an epoch: its leader, and the voters where the log does not have them as they are.

    That is the case for voters of the bootstrap snapshot, which is not replicated, and when the leader's own endpoints or versions changed.
    """
    node = draft.node
    records: list[ControlRecord] = [LeaderChangeRecord(node.id, node.voters.ids, granting)]
    level = node.history.kraft_version
    if level > STATIC_VOTERS:
        is_bootstrap = node.history.voters_offset == BOOTSTRAP_OFFSET
        if is_bootstrap or node.voters.needs_update(node.own_voter):
            voters = node.voters.update(node.own_voter)
            assert voters is not None, node.voters
            records += [KRaftVersionRecord(level), VotersRecord(voters)]
    return control_batch(node.log.end_offset, node.epoch, *records)


def append(draft: Draft, batch: Batch) -> None:
    """Append a batch. Voters that wait for records are answered; the leader counts itself once its flush has ended."""
    voters_before = draft.node.voters
    draft.append((batch,))
    draft.flush_log()
    if draft.node.voters is not voters_before:
        state = leading(draft)
        draft.set_state(changed(state, replicas=state.replicas.with_voters(draft.node.voters)))
        update_high_watermark(draft)
    delayed.complete_for_voters(draft)


def append_records(draft: Draft, message: Append) -> None:
    """Append the controller's records as one batch, or refuse them.

    They are refused in another epoch than that in which they were decided, and above the limit of a batch: a caller whose records need
    not be in one batch splits them.
    """
    state, end_offset = draft.state, draft.node.log.end_offset
    if not isinstance(state, Leader) or state.epoch != message.epoch or state.is_resigning:
        draft.replies.append(Reply(message.id, AppendResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)))
        return
    settings = draft.node.settings
    if len(message.payload) > min(settings.append_max_bytes, settings.batch_max_bytes):
        draft.replies.append(Reply(message.id, AppendResult(ErrorCode.RECORD_LIST_TOO_LARGE)))
        return
    append(draft, Batch(end_offset, end_offset + message.record_count - 1, state.epoch, message.payload))
    draft.replies.append(Reply(message.id, AppendResult(ErrorCode.NONE, end_offset)))


def count_flushed(draft: Draft) -> None:
    """Count what the leader itself has on disk, as a follower's fetch offset is counted."""
    state = leading(draft)
    own = state.replicas.find(draft.node.key) or Progress(draft.node.key)
    own = changed(own, end_offset=draft.node.log.flushed_offset)
    draft.set_state(changed(state, replicas=state.replicas.update(draft.node.key, own)))
    update_high_watermark(draft)


def update_high_watermark(draft: Draft) -> None:
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


def refuse_waiting(draft: Draft, state: Leader) -> None:
    """Answer the requests that wait for a node that no longer leads."""
    delayed.refuse_all(draft, state)
    pending_change.refuse(draft, state)


def leading(draft: Draft) -> Leader:
    """Return the state of a node that leads."""
    assert isinstance(draft.state, Leader), draft.state
    return draft.state
