"""DescribeQuorum: voters and observers as their leader sees them."""

from collections.abc import Iterable

from controller_core.quorum import inputs, messages, ready, states
from controller_core.quorum.progress import Progress
from kafka_wire import ErrorCode


def answer(draft: ready.Draft, request: inputs.Request) -> None:
    """Answer as the leader, or that this node is not."""
    node, state = draft.node, draft.state
    if not isinstance(state, states.Leader):
        draft.answer(request, messages.DescribeQuorumResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return
    replicas = state.replicas.without_silent_observers(draft.now_ms, node.key)
    draft.answer(
        request,
        messages.DescribeQuorumResponse(
            messages.NONE,
            node.leadership(request.listener),
            messages.UNKNOWN if node.high_watermark is None else node.high_watermark,
            _states(draft, replicas.voters.values()),
            _states(draft, replicas.observers.values()),
        ),
    )


def _states(draft: ready.Draft, replicas: Iterable[Progress]) -> tuple[messages.ReplicaState, ...]:
    return tuple(_state(draft, replica) for replica in sorted(replicas, key=lambda replica: replica.key.order()))


def _state(draft: ready.Draft, progress: Progress) -> messages.ReplicaState:
    """Describe a replica. The leader itself is listed with its whole log, flushed or not, as fetched and caught up now."""
    if progress.key.id == draft.node.id:
        now_ms, end_offset = draft.now_ms, draft.node.log.end_offset
        return messages.ReplicaState(progress.key, end_offset, now_ms, now_ms, progress.endpoints)
    return messages.ReplicaState(
        progress.key,
        messages.UNKNOWN if progress.end_offset is None else progress.end_offset,
        messages.UNKNOWN if progress.last_fetch_ms is None else progress.last_fetch_ms,
        messages.UNKNOWN if progress.last_caught_up_ms is None else progress.last_caught_up_ms,
        progress.endpoints,
    )
