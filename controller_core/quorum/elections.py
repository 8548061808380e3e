"""Elections: votes and pre-votes that others ask for, and those that this node asks for."""

from controller_core.quorum import checks, inputs, leadership, messages, ready, roles, states, voters
from controller_core.quorum.changed import changed
from controller_core.quorum.node import Node
from controller_core.quorum.rules import Destination, Rules, retry_backoff_ms
from kafka_wire import ErrorCode

_DRAW_BOUND = 1 << 32
"""Larger than any number of slots of the exponential backoff."""


def answer_vote(draft: ready.Draft, request: inputs.Request, body: messages.VoteRequest) -> None:
    """Answer a candidate; a granted vote is on disk before the answer is sent."""
    error, granted = _vote(draft, body)
    known = messages.Leadership() if _is_for_the_request(error) else draft.node.leadership(request.listener)
    draft.answer(request, messages.VoteResponse(error, known, granted))


def _is_for_the_request(error: ErrorCode) -> bool:
    """Whether an error is about the request as a whole, without an epoch and leader."""
    return error in {ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.UNSUPPORTED_VERSION}


def _vote(draft: ready.Draft, body: messages.VoteRequest) -> tuple[ErrorCode, bool]:
    if checks.wrong_cluster(draft.node, body.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID, False
    if body.pre_vote and not draft.node.settings.rules.pre_vote:
        return ErrorCode.UNSUPPORTED_VERSION, False
    if _is_malformed(body):
        return ErrorCode.INVALID_REQUEST, False
    error = checks.election_error(draft.node, body.candidate.id, body.epoch)
    if error:
        return error, False
    if body.epoch > draft.node.epoch:
        roles.become_unattached(draft, body.epoch)
    if not checks.is_for_this_node(draft.node, body.voter):
        return ErrorCode.INVALID_VOTER_KEY, False
    granted = may_grant(draft.node, body.candidate, up_to_date=body.last >= draft.node.log.end, pre_vote=body.pre_vote)
    if granted and not body.pre_vote and draft.node.voted is None:
        roles.vote(draft, body.candidate)
    return messages.NONE, granted


def _is_malformed(body: messages.VoteRequest) -> bool:
    """Whether no correct candidate sends this: a candidate's epoch is above that of its log, a prospective one's not below it."""
    too_high = body.last.epoch > body.epoch if body.pre_vote else body.last.epoch >= body.epoch
    return body.last.offset < 0 or body.last.epoch < 0 or too_high


def may_grant(node: Node, candidate: voters.ReplicaKey, *, up_to_date: bool, pre_vote: bool) -> bool:
    """Whether a node grants a vote or pre-vote in its state.

    A vote binds: one for an epoch, and none where its leader is known. A pre-vote does not; a follower refuses it once it has fetched
    from its leader, so that a voter that is cut off from a working leader starts no election.
    """
    match node.state:
        case states.Leader():
            return False
        case states.Follower(has_fetched=has_fetched):
            return pre_vote and up_to_date and not has_fetched
        case states.Candidate() | states.Resigned():
            return pre_vote and up_to_date
        case states.Unattached() | states.Prospective() if pre_vote:
            return up_to_date
        case states.Unattached(voted=voted) | states.Prospective(voted=voted) if voted is not None:
            return voted.accepts(candidate)
        case states.Unattached(leader_id=leader_id) | states.Prospective(leader_id=leader_id):
            # A candidate with this node's id is another process with it; the node has no vote for itself to give.
            return up_to_date and leader_id is None and candidate.id != node.id


def count_vote(draft: ready.Draft, voter_id: int, body: messages.VoteResponse) -> bool:
    """Count the answer of a voter; return whether it may be asked again at once."""
    if body.error is ErrorCode.UNSUPPORTED_VERSION and isinstance(draft.state, states.Prospective):
        return campaign_without_prevote(draft)
    handled = leadership.learn_from_response(draft, body.error, body.leadership)
    if handled is not None:
        return handled
    if body.error is not messages.NONE:
        return False
    state = draft.state
    if isinstance(state, states.Prospective | states.Candidate):
        state = changed(state, votes=state.votes.record(voter_id, granted=body.granted))
        draft.set_state(state)
        _conclude(draft, state)
    return True


def campaign_without_prevote(draft: ready.Draft) -> bool:
    """Ask for votes at once, because a voter is too old for pre-votes."""
    roles.become_candidate(draft)
    return True


def _conclude(draft: ready.Draft, state: states.Prospective | states.Candidate) -> None:
    """Go on when the votes are decided. A candidate that has lost waits, and does not ask for the rest of the votes."""
    match state:
        case states.Prospective(votes=votes) if votes.is_won:
            roles.become_candidate(draft)
        case states.Prospective(votes=votes) if votes.is_lost:
            roles.lose_prevote(draft)
        case states.Candidate(votes=votes) if votes.is_won:
            roles.become_leader(draft)
        case states.Candidate(votes=votes, backoff_until_ms=None) if votes.is_lost:
            _back_off(draft, state)
        case _:
            pass


def _back_off(draft: ready.Draft, state: states.Candidate) -> int:
    """Start Kafka 3's wait after a lost election; Kafka 4 waits for the election timeout. Return the end of the wait."""
    settings = draft.node.settings
    if settings.rules is Rules.KAFKA_4:
        return state.election_due_ms
    wait_ms = retry_backoff_ms(state.retries, draft.draw(_DRAW_BOUND), settings.election_backoff_max_ms)
    draft.set_state(changed(state, backoff_until_ms=draft.now_ms + wait_ms))
    return draft.now_ms + wait_ms


def poll_prospective(draft: ready.Draft, state: states.Prospective) -> int:
    """Ask for pre-votes until they are decided or the time is over."""
    if draft.node.shutdown_due_ms is None and state.election_due_ms <= draft.now_ms:
        roles.lose_prevote(draft)
        return draft.now_ms
    return min(_ask(draft, state), states.NEVER if draft.node.shutdown_due_ms else state.election_due_ms)


def poll_candidate(draft: ready.Draft, state: states.Candidate) -> int:
    """Ask for votes; after the election timeout try again.

    A node that shuts down goes on with this election, since a leader can hand over, and starts no other.
    """
    if draft.node.shutdown_due_ms is not None:
        return _ask(draft, state)
    if state.backoff_until_ms is not None:
        if state.backoff_until_ms <= draft.now_ms:
            roles.become_candidate(draft)
            return draft.now_ms
        return state.backoff_until_ms
    if state.election_due_ms <= draft.now_ms:
        if draft.node.settings.rules is Rules.KAFKA_3:
            return _back_off(draft, state)
        roles.become_prospective(draft)
        return draft.now_ms
    return min(_ask(draft, state), state.election_due_ms)


def may_ask(node: Node) -> bool:
    """Whether a node may ask for votes: a candidate's log is on disk.

    A candidate that loses records in a crash goes on in its epoch, and voters that have voted for it do so again without comparing logs.
    """
    return isinstance(node.state, states.Prospective) or node.log.flushed_offset == node.log.end_offset


def _ask(draft: ready.Draft, state: states.Prospective | states.Candidate) -> int:
    """Send requests to the voters that have not answered; return when the next one may be sent."""
    if state.votes.is_lost or not may_ask(draft.node):
        return states.NEVER
    node, due_ms = draft.node, states.NEVER
    for voter in state.votes.missing:
        destination = voter_destination(node, voter.id)
        if destination is None:
            continue
        body = messages.VoteRequest(
            node.settings.cluster_id, node.epoch, node.key, voter, node.log.end, isinstance(state, states.Prospective)
        )
        draft.send(destination, body)
        due_ms = min(due_ms, draft.node.connections.ready_at(voter.id, draft.now_ms))
    return due_ms


def voter_destination(node: Node, voter_id: int) -> Destination | None:
    """Return where to reach a voter; None if the voter set has no endpoint for the quorum's listener."""
    endpoint = voters.endpoint_of(node.voters.endpoints(voter_id), node.settings.listener)
    return None if endpoint is None else Destination(voter_id, endpoint.host, endpoint.port)


def electorate(node: Node) -> tuple[Destination, ...]:
    """Return where a voter reaches the other voters; none for an observer, which asks for no votes."""
    others = [voter.key.id for voter in node.voters.voters if voter.key.id != node.id] if node.may_campaign else []
    found = (voter_destination(node, voter_id) for voter_id in others)
    return tuple(message for message in found if message is not None)
