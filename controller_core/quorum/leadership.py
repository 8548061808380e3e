"""News of leaders: BeginQuorumEpoch and EndQuorumEpoch, and the leader and epoch in every response."""

from controller_core.quorum import checks, inputs, messages, ready, roles, rules, states, voters
from controller_core.quorum.changed import changed
from controller_core.quorum.node import Node
from kafka_wire import ErrorCode

_NEW_LEADER_ERRORS = {ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER}


def begin_epoch(draft: ready.Draft, request: inputs.Request, body: messages.BeginQuorumEpochRequest) -> None:
    """Follow the leader that announces itself."""
    error = _announced(draft, body)
    if error is messages.NONE and not checks.is_for_this_node(draft.node, body.voter):
        error = ErrorCode.INVALID_VOTER_KEY
    draft.answer(request, messages.BeginQuorumEpochResponse(error, _leadership(draft, request, error)))


def end_epoch(draft: ready.Draft, request: inputs.Request, body: messages.EndQuorumEpochRequest) -> None:
    """Start an election soon, because the leader has resigned: the first successor at once, others after a backoff.

    Pre-votes are granted from now on. Kafka's followers refuse them until their own backoff ends, so that of five voters the second
    successor is elected, and not the first.
    """
    error = _announced(draft, body)
    state = draft.state
    if error is messages.NONE and isinstance(state, states.Follower) and state.leader_id == body.leader_id:
        names = [key.accepts(draft.node.key) for key in body.successors]
        position = names.index(True) if True in names else len(names)
        settings = draft.node.settings
        # With an empty list each voter may start at once, as in Kafka.
        wait_ms = rules.successor_backoff_ms(position, len(names), settings.election_backoff_max_ms)
        draft.set_state(changed(state, fetch_due_ms=draft.now_ms + wait_ms, has_fetched=False))
    draft.answer(request, messages.EndQuorumEpochResponse(error, _leadership(draft, request, error)))


def _announced(
    draft: ready.Draft, body: messages.BeginQuorumEpochRequest | messages.EndQuorumEpochRequest
) -> ErrorCode:
    """Learn the leader that a request of its own names; return the error to answer."""
    node = draft.node
    if checks.wrong_cluster(node, body.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    error = checks.election_error(node, body.leader_id, body.epoch)
    if error:
        return error
    endpoints = body.endpoints or node.voters.endpoints(body.leader_id)
    # A leader whose own node runs under another id, or a second leader in an epoch: neither can be right.
    return messages.NONE if learn(draft, body.epoch, body.leader_id, endpoints) else ErrorCode.UNKNOWN_SERVER_ERROR


def _leadership(draft: ready.Draft, request: inputs.Request, error: ErrorCode) -> messages.Leadership:
    if error in {ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.UNKNOWN_SERVER_ERROR}:
        return messages.Leadership()
    return draft.node.leadership(request.listener)


def learn(draft: ready.Draft, epoch: int, leader_id: int | None, endpoints: voters.Endpoints) -> bool:
    """Act on an epoch and leader that another node reports; return whether they agree with what is known here.

    A leader whose endpoints are not known cannot be followed: the node searches for it as Unattached.
    """
    node = draft.node
    if not checks.consistent_leader(node, epoch, leader_id):
        draft.violation(
            f"this node, {node.id}, is reported as the leader of epoch {epoch}, in which it does not lead: another process has this "
            "node.id, or this node's disk was replaced after it was elected"
            if leader_id == node.id
            else f"node {leader_id} is reported as the leader of epoch {epoch}, which has leader {node.leader_id}"
        )
        return False
    if epoch > node.epoch:
        if leader_id is not None and endpoints:
            roles.become_follower(draft, epoch, leader_id, endpoints)
        else:
            roles.become_unattached(draft, epoch, leader_id)
    elif leader_id not in {None, node.id} and epoch == node.epoch and len(endpoints) > len(node.leader_endpoints):
        assert leader_id is not None, epoch
        roles.become_follower(draft, epoch, leader_id, endpoints)
    return True


def learn_from_response(draft: ready.Draft, error: ErrorCode, leadership: messages.Leadership) -> bool | None:
    """Act on the error, epoch and leader of a response (KafkaRaftClient.maybeHandleCommonResponse).

    Returns None if the response itself is to be handled, else whether its sender may be asked again at once.
    """
    node = draft.node
    if leadership.epoch == messages.UNKNOWN and error is not messages.NONE:
        return False
    leader_id = None if leadership.leader_id == voters.NO_NODE else leadership.leader_id
    endpoints = _endpoints(draft, leadership, leader_id)
    if leadership.epoch < node.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
        return True
    if leadership.epoch > node.epoch or error in _NEW_LEADER_ERRORS:
        # Without news the same request would be refused again: as long as a leader is Resigned, for example.
        return learn(draft, leadership.epoch, leader_id, endpoints) and draft.state is not node.state
    if leader_id is not None and endpoints and _looks_for(node, leader_id):
        roles.become_follower(draft, node.epoch, leader_id, endpoints)
        return None if error is messages.NONE else True
    if error is ErrorCode.INVALID_VOTER_KEY:
        return True
    if error is ErrorCode.INVALID_REQUEST:
        draft.violation("another node refused a request as invalid")
        return False
    return False if error is ErrorCode.BROKER_NOT_AVAILABLE else None


def _looks_for(node: Node, leader_id: int) -> bool:
    """Whether a node does not know this leader of its epoch, or not how to reach it."""
    return leader_id != node.id and node.leader_id in {None, leader_id} and not node.leader_endpoints


def _endpoints(draft: ready.Draft, leadership: messages.Leadership, leader_id: int | None) -> voters.Endpoints:
    """Return the leader's endpoints: of the response, or of the voter set where the sender is too old to send them."""
    if leader_id is None:
        return ()
    if leadership.endpoint is not None:
        return (changed(leadership.endpoint, listener=draft.node.settings.listener),)
    return draft.node.voters.endpoints(leader_id)


def acknowledge_end(draft: ready.Draft, voter_id: int) -> None:
    """Stop sending EndQuorumEpoch to a voter that has answered it."""
    state = draft.state
    if isinstance(state, states.Resigned):
        draft.set_state(changed(state, unacknowledged=state.unacknowledged - {voter_id}))
