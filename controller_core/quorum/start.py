"""State of a node at the start of its process, from quorum-state and the log (Kafka's QuorumState.initialize).

| quorum-state | the node starts as |
| --- | --- |
| an epoch below that of the log's last record, which a lost or old file has | Unattached in the log's epoch, without a vote |
| this node led | Resigned: it votes for no other in that epoch, and does not use an offset twice in it |
| this node voted for itself | Candidate in that epoch, if it is still a voter |
| another node led, and the voters have its endpoints | Follower |
| another node led, and its endpoints are not known | Unattached, with that leader |
| anything else, or no file | Unattached, with the vote |

A node that is the only voter has an election at once.
"""

from controller_core.quorum import roles, rules, states, step
from controller_core.quorum.connections import Connections
from controller_core.quorum.log_view import LogView
from controller_core.quorum.node import Node, StoredElection
from controller_core.quorum.ready import Draft, Ready
from controller_core.quorum.voter_history import VoterHistory

_NOT_WRITTEN = StoredElection(epoch=-1)
"""Differs from every state, so that the first one is written."""


def start(
    settings: rules.Settings, stored: StoredElection | None, log: LogView, history: VoterHistory, seed: int, now_ms: int
) -> Ready:
    """Return the first result of a node: `stored` is None without a quorum-state file, `log` and `history` are as found on disk.

    Recovery has flushed the log. A log that ended before the latest snapshot now starts at the end of that snapshot.
    """
    latest = log.latest_snapshot
    assert latest is None or latest.offset <= log.end_offset == log.flushed_offset, log
    found = stored or StoredElection()
    node = Node(
        settings,
        states.Unattached(found.epoch, states.NEVER),
        log,
        history,
        stored or _NOT_WRITTEN,
        seed,
        Connections({}),
    )
    draft = Draft(node, now_ms)
    draft.set_state(_first_state(draft, found))
    draft.store_election()
    if isinstance(draft.state, states.Candidate):
        if draft.state.votes.is_won:
            roles.become_leader(draft)
    elif node.is_only_voter:
        roles.campaign(draft)
    return step.conclude(draft)


def _first_state(draft: Draft, found: StoredElection) -> states.State:
    node, voters = draft.node, draft.node.voters
    due_ms = roles.election_due_ms(draft) if node.may_campaign else states.NEVER
    if found.epoch < node.log.last_epoch:
        return states.Unattached(node.log.last_epoch, due_ms)
    if found.leader_id == node.id:
        others = frozenset(voters.ids) - {node.id}
        return states.Resigned(found.epoch, due_ms if due_ms != states.NEVER else roles.election_due_ms(draft), others)
    if found.leader_id is None and found.voted is not None and found.voted.accepts(node.key) and node.may_campaign:
        return states.Candidate(found.epoch, due_ms, states.Votes.start(voters.keys, node.key))
    if found.leader_id is None:
        return states.Unattached(found.epoch, due_ms, voted=found.voted)
    endpoints = voters.endpoints(found.leader_id)
    if not endpoints:
        return states.Unattached(found.epoch, due_ms, found.leader_id, found.voted)
    return roles.follower(draft, found.epoch, found.leader_id, endpoints, found.voted)
