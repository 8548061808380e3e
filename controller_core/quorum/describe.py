"""DescribeQuorum: voters and observers as their leader sees them."""

from collections.abc import Iterable

from controller_core.quorum.inputs import Request
from controller_core.quorum.messages import (
    NONE,
    UNKNOWN,
    DescribeQuorumResponse,
    ReplicaState,
)
from controller_core.quorum.progress import Progress
from controller_core.quorum.ready import Draft
from controller_core.quorum.states import Leader
from kafka_wire import ErrorCode


def answer(draft: Draft, request: Request) -> None:
    """Answer as the leader, or that this node is not."""
    node, state = draft.node, draft.state
    if not isinstance(state, Leader):
        draft.answer(request, DescribeQuorumResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return
    replicas = state.replicas.without_silent_observers(draft.now_ms, node.key)
    draft.answer(
        request,
        DescribeQuorumResponse(
            NONE,
            node.leadership(request.listener),
            UNKNOWN if node.high_watermark is None else node.high_watermark,
            _states(draft, replicas.voters.values()),
            _states(draft, replicas.observers.values()),
        ),
    )


def _states(draft: Draft, replicas: Iterable[Progress]) -> tuple[ReplicaState, ...]:
    return tuple(_state(draft, replica) for replica in sorted(replicas, key=lambda replica: replica.key.order()))


def _state(draft: Draft, progress: Progress) -> ReplicaState:
    """Describe a replica. The leader itself is listed with its whole log, flushed or not, as fetched and caught up now."""
    if progress.key.id == draft.node.id:
        now_ms, end_offset = draft.now_ms, draft.node.log.end_offset
        return ReplicaState(progress.key, end_offset, now_ms, now_ms, progress.endpoints)
    return ReplicaState(
        progress.key,
        UNKNOWN if progress.end_offset is None else progress.end_offset,
        UNKNOWN if progress.last_fetch_ms is None else progress.last_fetch_ms,
        UNKNOWN if progress.last_caught_up_ms is None else progress.last_caught_up_ms,
        progress.endpoints,
    )
