"""Reports of voters on themselves (UpdateRaftVoter), and the upgrade of kraft.version from 0 to 1 that needs it from all.

At kraft.version 0 the log has no voter set: the leader keeps the reports in memory, and each voter sends its own to each new leader.
"""

from controller_core.quorum import batches, checks, inputs, leader, messages, ready, reconfigure, states
from controller_core.quorum.changed import changed
from controller_core.quorum.voters import STATIC_VOTERS, Voter, VoterSet, endpoint_of
from kafka_wire import ErrorCode, Failure


def update_voter(draft: ready.Draft, request: inputs.Request, body: messages.UpdateRaftVoterRequest) -> None:
    """Store a voter's endpoints and versions: into the log, or at kraft.version 0 into memory."""
    error = _error(draft, body)
    if error is messages.NONE:
        error = _store(draft, Voter(body.voter, body.endpoints, body.kraft_versions))
    draft.answer(request, messages.UpdateRaftVoterResponse(error, draft.node.leadership(request.listener)))


def _error(draft: ready.Draft, body: messages.UpdateRaftVoterRequest) -> ErrorCode:
    node, versions = draft.node, body.kraft_versions
    if checks.wrong_cluster(node, body.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    error = checks.leader_error(node, body.epoch)
    if error:
        return error
    if body.voter.id < 0 or body.voter.directory_id is None:
        return ErrorCode.INVALID_REQUEST
    if endpoint_of(body.endpoints, node.settings.listener) is None:
        return ErrorCode.INVALID_REQUEST
    if not 0 <= versions.minimum <= versions.maximum:
        return ErrorCode.INVALID_REQUEST
    if leader.leading(draft).change is not None or node.high_watermark is None or _known_voters(draft) is None:
        return ErrorCode.REQUEST_TIMED_OUT
    return messages.NONE if node.history.kraft_version in versions else ErrorCode.INVALID_REQUEST


def _known_voters(draft: ready.Draft) -> VoterSet | None:
    """Return the voters that a report changes; None while they are being changed."""
    if draft.node.history.kraft_version == STATIC_VOTERS:
        return leader.leading(draft).reported_voters
    return draft.node.voters if reconfigure.last_voters_are_committed(draft) else None


def _store(draft: ready.Draft, voter: Voter) -> ErrorCode:
    known = _known_voters(draft)
    assert known is not None, voter
    is_static = draft.node.history.kraft_version == STATIC_VOTERS
    voters = known.update_by_id(voter) if is_static else known.update(voter)
    if voters is None:
        return ErrorCode.VOTER_NOT_FOUND
    if is_static:
        draft.set_state(changed(leader.leading(draft), reported_voters=voters))
    elif voters != known:
        reconfigure.append_voters(draft, voters)
    leader.count_voter(draft, voter.key)
    return messages.NONE


def upgrade(draft: ready.Draft, message: inputs.UpgradeKRaftVersion) -> None:
    """Append a higher kraft.version with the voters as they have reported themselves."""
    failure = _refusal(draft, message)
    if failure is None and not message.validate_only and _is_change(draft, message.level):
        _append_upgrade(draft, message.level)
    error, text = (failure.code, failure.message) if failure else (messages.NONE, None)
    draft.replies.append(ready.Reply(message.id, ready.UpgradeResult(error, text)))


def _is_change(draft: ready.Draft, level: int) -> bool:
    return level not in {draft.node.history.kraft_version, leader.leading(draft).requested_version}


def _refusal(draft: ready.Draft, message: inputs.UpgradeKRaftVersion) -> Failure | None:
    state, current = draft.state, draft.node.history.kraft_version
    if not isinstance(state, states.Leader) or state.epoch != message.epoch:
        return Failure(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"This node does not lead epoch {message.epoch}.")
    if not _is_change(draft, message.level):
        return None
    if message.level < current or state.requested_version is not None:
        return _invalid(f"kraft.version {current} cannot become {message.level}.")
    voters = state.reported_voters
    if voters is None or not voters.supports(message.level):
        return _invalid(f"Not all voters have reported that they support kraft.version {message.level}.")
    if any(key.directory_id is None for key in voters.keys):
        return _invalid("Not all voters have reported their directory ids.")
    return None


def _invalid(reason: str) -> Failure:
    return Failure(ErrorCode.INVALID_UPDATE_VERSION, reason)


def _append_upgrade(draft: ready.Draft, level: int) -> None:
    state = leader.leading(draft)
    assert state.reported_voters is not None, state
    records: list[batches.ControlRecord] = [
        batches.KRaftVersionRecord(level),
        batches.VotersRecord(state.reported_voters),
    ]
    draft.set_state(changed(state, requested_version=level, reported_voters=None))
    leader.append(draft, batches.control_batch(draft.node.log.end_offset, draft.node.epoch, *records))
