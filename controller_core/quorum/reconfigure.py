"""Adding and removing voters at kraft.version 1 (KIP-853), one at a time, so that majorities before and after a change overlap."""

from controller_core.quorum import batches, checks, inputs, leader, messages, pending_change, ready, rules, states
from controller_core.quorum.changed import changed
from controller_core.quorum.voters import STATIC_VOTERS, Endpoint, ReplicaKey, Voter, VoterSet, endpoint_of
from kafka_wire import ErrorCode, Failure


def add_voter(draft: ready.Draft, request: inputs.Request, body: messages.AddRaftVoterRequest) -> None:
    """Start to add a voter: ask it for its versions, then append the new voter set."""
    endpoint = endpoint_of(body.endpoints, draft.node.settings.listener)
    failure = (
        _refused(draft, body.cluster_id, body.voter)
        or (
            endpoint is None
            and Failure(ErrorCode.INVALID_REQUEST, "The voter has no endpoint on the quorum's listener.")
        )
        or _not_now(draft)
        or _duplicate(draft.node.voters, body.voter)
    )
    if failure:
        draft.answer(request, messages.AddRaftVoterResponse(failure.code, failure.message))
        return
    assert isinstance(endpoint, Endpoint), body
    if not draft.send(rules.Destination(body.voter.id, endpoint.host, endpoint.port), messages.ApiVersionsRequest()):
        text = "The voter cannot be asked for its versions now."
        draft.answer(request, messages.AddRaftVoterResponse(ErrorCode.REQUEST_TIMED_OUT, text))
        return
    change = states.AddingVoter(
        request.id,
        Voter(body.voter, body.endpoints),
        body.ack_when_committed,
        draft.now_ms + draft.node.settings.request_timeout_ms,
    )
    draft.set_state(changed(leader.leading(draft), change=change))


def _duplicate(voters: VoterSet, key: ReplicaKey) -> Failure | None:
    if key.id not in voters.ids:
        return None
    return Failure(ErrorCode.DUPLICATE_VOTER, f"Node {key.id} is a voter already.")


def take_versions(
    draft: ready.Draft, source: int, body: messages.ApiVersionsResponse | messages.FailedResponse
) -> bool:
    """Append the new voter set if the voter supports its kraft.version and has caught up; return whether it answered."""
    state = draft.state
    change = state.change if isinstance(state, states.Leader) else None
    if not isinstance(change, states.AddingVoter) or change.offset is not None or change.voter.key.id != source:
        return True
    if isinstance(body, messages.FailedResponse) or body.error is not messages.NONE:
        pending_change.end(draft, ErrorCode.REQUEST_TIMED_OUT, "The voter did not answer a request for its versions.")
        return False
    level, versions = draft.node.history.kraft_version, body.kraft_versions
    if versions is None or level not in versions:
        text = f"The voter does not support kraft.version {level}."
        pending_change.end(draft, ErrorCode.INVALID_REQUEST, text)
        return True
    progress = leader.leading(draft).replicas.observers.get(change.voter.key)
    if progress is None or not progress.can_become_voter(draft.now_ms):
        text = "The voter has not caught up with the leader's log."
        pending_change.end(draft, ErrorCode.REQUEST_TIMED_OUT, text)
        return True
    _append_added(draft, change, changed(change.voter, kraft_versions=versions))
    return True


def _append_added(draft: ready.Draft, change: states.AddingVoter, voter: Voter) -> None:
    voters = draft.node.voters.add(voter)
    assert voters is not None, (draft.node.voters, voter)
    change = changed(change, offset=draft.node.log.end_offset)
    if not change.ack_when_committed:
        pending_change.answer(draft, change, messages.NONE)
        change = changed(change, request_id=None)
    draft.set_state(changed(leader.leading(draft), change=change))
    append_voters(draft, voters)


def remove_voter(draft: ready.Draft, request: inputs.Request, body: messages.RemoveRaftVoterRequest) -> None:
    """Append the voter set without a voter; this leader may be it, and then resigns after the commit."""
    failure = _refused(draft, body.cluster_id, body.voter) or _not_now(draft)
    voters = draft.node.voters.remove(body.voter)
    if failure is None and voters is None:
        text = f"{_key_text(body.voter)} is not a voter, or is the only voter."
        failure = Failure(ErrorCode.VOTER_NOT_FOUND, text)
    if failure:
        draft.answer(request, messages.RemoveRaftVoterResponse(failure.code, failure.message))
        return
    assert voters is not None, body
    change = states.RemovingVoter(
        request.id, draft.now_ms + draft.node.settings.request_timeout_ms, draft.node.log.end_offset
    )
    draft.set_state(changed(leader.leading(draft), change=change))
    append_voters(draft, voters)


def append_voters(draft: ready.Draft, voters: VoterSet) -> None:
    """Append a voter set; its majority counts from here on, committed or not."""
    node = draft.node
    leader.append(draft, batches.control_batch(node.log.end_offset, node.epoch, batches.VotersRecord(voters)))


def _refused(draft: ready.Draft, cluster_id: str | None, voter: ReplicaKey) -> Failure | None:
    """Check a request by itself."""
    if checks.wrong_cluster(draft.node, cluster_id):
        text = f"The request is for cluster {cluster_id}; this is {draft.node.settings.cluster_id}."
        return Failure(ErrorCode.INCONSISTENT_CLUSTER_ID, text)
    error = checks.leader_error(draft.node, draft.node.epoch)
    if error:
        return Failure(error, "This node does not lead the quorum.")
    if voter.id < 0 or voter.directory_id is None:
        return Failure(ErrorCode.INVALID_REQUEST, "A voter needs a node id and a directory id.")
    return None


def _not_now(draft: ready.Draft) -> Failure | None:
    """Check whether the voter set may change now: no change under way, and the last one committed in this epoch."""
    node, state = draft.node, leader.leading(draft)
    if state.change is not None:
        return Failure(ErrorCode.REQUEST_TIMED_OUT, "Another change of the voters is under way.")
    if node.high_watermark is None:
        return Failure(ErrorCode.REQUEST_TIMED_OUT, "The leader has not committed a record of its epoch yet.")
    level = node.history.kraft_version
    if level == STATIC_VOTERS:
        return Failure(ErrorCode.UNSUPPORTED_VERSION, f"The voters cannot change at kraft.version {level}.")
    if not last_voters_are_committed(draft):
        return Failure(ErrorCode.REQUEST_TIMED_OUT, "The last change of the voters is not committed yet.")
    return None


def last_voters_are_committed(draft: ready.Draft) -> bool:
    """Whether the voter set that counts is committed, so that the next one may differ from it by one voter."""
    offset, high_watermark = draft.node.history.voters_offset, draft.node.high_watermark
    return offset is not None and high_watermark is not None and offset < high_watermark


def _key_text(key: ReplicaKey) -> str:
    return f"Node {key.id} with directory {key.directory_id}"
