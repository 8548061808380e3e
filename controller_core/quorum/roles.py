"""Becoming Unattached, Prospective, Candidate, Follower, Leader or Resigned."""

from collections.abc import Callable

from controller_core.quorum import leader, progress, ready, states, transitions
from controller_core.quorum.changed import changed
from controller_core.quorum.rules import Rules
from controller_core.quorum.voters import STATIC_VOTERS, Endpoints, ReplicaKey


def enter(draft: ready.Draft, state: states.State) -> None:
    """Change the state by a transition; requests of the state before are forgotten."""
    before = draft.state
    transitions.check(before, state)
    draft.set_state(state)
    draft.reset_connections()
    if isinstance(before, states.Leader):
        leader.refuse_waiting(draft, before)


def election_due_ms(draft: ready.Draft) -> int:
    """Draw an election timeout: from its setting to twice that, so that elections of several voters rarely coincide."""
    timeout_ms = draft.node.settings.election_timeout_ms
    return draft.now_ms + timeout_ms + draft.draw(timeout_ms)


def become_unattached(draft: ready.Draft, epoch: int, leader_id: int | None = None) -> None:
    """Stop following, leading or asking for votes: in a higher epoch, or in this one after a lost pre-vote."""
    state = draft.state
    voted = draft.node.voted if epoch == state.epoch else None
    enter(draft, states.Unattached(epoch, _unattached_due_ms(draft, state), leader_id, voted))
    draft.store_election()


def _unattached_due_ms(draft: ready.Draft, state: states.State) -> int:
    """Return the end of the election timeout: one that runs goes on, so that a stream of higher epochs delays no election."""
    if not draft.node.may_campaign:
        return states.NEVER
    match state:
        case states.Prospective(votes=states.Votes(is_lost=True)):
            return election_due_ms(draft)
        case (
            states.Unattached(election_due_ms=due)
            | states.Prospective(election_due_ms=due)
            | states.Candidate(election_due_ms=due)
        ) if due != states.NEVER:
            return due
        case states.Resigned(election_due_ms=due):
            return due
        case _:
            return election_due_ms(draft)


def vote(draft: ready.Draft, candidate: ReplicaKey) -> None:
    """Vote for a candidate, on disk; the election timeout starts again, since the candidate's log is as good as this one."""
    state = draft.state
    assert isinstance(state, states.Unattached | states.Prospective), state
    assert state.voted is None, state
    assert candidate.id != draft.node.id, candidate
    # An observer may grant a vote; it still has no election timeout.
    due_ms = election_due_ms(draft) if draft.node.may_campaign else states.NEVER
    if isinstance(state, states.Prospective):
        votes = states.Votes.start(draft.node.voters.keys, draft.node.key)
        enter(draft, changed(state, voted=candidate, election_due_ms=due_ms, votes=votes))
    else:
        draft.set_state(changed(state, voted=candidate, election_due_ms=due_ms))
    draft.store_election()


def become_follower(draft: ready.Draft, epoch: int, leader_id: int, endpoints: Endpoints) -> None:
    """Follow the leader of this or a higher epoch. The vote in this epoch is kept."""
    assert endpoints, (epoch, leader_id)
    assert leader_id != draft.node.id, epoch
    voted = draft.node.voted if epoch == draft.node.epoch else None
    enter(draft, follower(draft, epoch, leader_id, endpoints, voted))
    draft.store_election()


def follower(
    draft: ready.Draft, epoch: int, leader_id: int, endpoints: Endpoints, voted: ReplicaKey | None
) -> states.Follower:
    """Return the state of a follower that has not fetched yet, with a fetch timeout of its own."""
    settings = draft.node.settings
    spread_ms = settings.fetch_timeout_spread_ms
    shift_ms = draft.draw(spread_ms) - spread_ms // 2 if spread_ms else 0
    timeout_ms = settings.fetch_timeout_ms + shift_ms
    update_due_ms = draft.now_ms + settings.fetch_timeout_ms
    return states.Follower(epoch, leader_id, endpoints, timeout_ms, draft.now_ms + timeout_ms, update_due_ms, voted)


def count_as_fetch(draft: ready.Draft) -> None:
    """Start the fetch timeout again after a successful response of the leader."""
    state = draft.state
    assert isinstance(state, states.Follower), state
    draft.set_state(changed(state, fetch_due_ms=draft.now_ms + state.fetch_timeout_ms, has_fetched=True))


def campaign(draft: ready.Draft) -> None:
    """Start an election: with a pre-vote, or at once by Kafka 3's rules."""
    if draft.node.settings.rules.pre_vote:
        become_prospective(draft)
    else:
        become_candidate(draft)


def become_prospective(draft: ready.Draft) -> None:
    """Ask for pre-votes. Nothing changes on disk: epoch, leader and vote stay."""
    node = draft.node
    assert node.may_campaign, node.voters
    votes = states.Votes.start(node.voters.keys, node.key)
    due_ms = election_due_ms(draft)
    enter(draft, states.Prospective(node.epoch, due_ms, votes, node.leader_id, node.leader_endpoints, node.voted))
    if votes.is_won:
        become_candidate(draft)


def become_candidate(draft: ready.Draft) -> None:
    """Ask for votes in the next epoch, with the own vote on disk."""
    node = draft.node
    assert node.may_campaign, node.voters
    votes = states.Votes.start(node.voters.keys, node.key)
    retries = node.state.retries + 1 if isinstance(node.state, states.Candidate) else 1
    enter(draft, states.Candidate(node.epoch + 1, election_due_ms(draft), votes, retries))
    draft.store_election()
    if votes.is_won:
        become_leader(draft)


def become_leader(draft: ready.Draft) -> None:
    """Lead the epoch. The high watermark is unknown until a record of this epoch is committed, so that it never falls."""
    node, settings = draft.node, draft.node.settings
    assert isinstance(node.state, states.Candidate), node.state
    assert node.state.votes.is_won, node.state.votes
    granting = tuple(sorted(key.id for key in node.state.votes.granted))
    is_static = node.history.kraft_version == STATIC_VOTERS
    state = states.Leader(
        node.epoch,
        node.log.end_offset,
        progress.Replicas.start(node.voters),
        check_quorum_due_ms=draft.now_ms + settings.check_quorum_timeout_ms,
        begin_epoch_due_ms=draft.now_ms,
        reported_voters=node.voters.update_by_id(node.own_voter) if is_static else None,
    )
    enter(draft, state)
    draft.store_election()
    draft.node = changed(draft.node, high_watermark=None)
    leader.append(draft, leader.start_of_epoch(draft, granting))


def become_resigned(draft: ready.Draft) -> None:
    """Stop leading and hand over: the voters with the longest logs are named first as successors."""
    state = draft.state
    assert isinstance(state, states.Leader), state
    successors = tuple(
        replica.key for replica in state.replicas.by_descending_end() if not replica.key.accepts(draft.node.key)
    )
    others = frozenset(draft.node.voters.ids) - {draft.node.id}
    # Epoch, leader and vote stay, so quorum-state is not written; a restart makes the leader Resigned again.
    enter(draft, states.Resigned(state.epoch, election_due_ms(draft), others, successors))


def lose_prevote(draft: ready.Draft) -> None:
    """Return to the leader that was followed before, if it can be reached, or wait for an election."""
    state = draft.state
    assert isinstance(state, states.Prospective), state
    if state.leader_id is not None and state.leader_endpoints:
        become_follower(draft, state.epoch, state.leader_id, state.leader_endpoints)
    else:
        become_unattached(draft, state.epoch, state.leader_id)


RESIGNED_ENDS: dict[Rules, Callable[[ready.Draft], None]] = {
    Rules.KAFKA_4: lambda draft: become_unattached(draft, draft.node.epoch + 1),
    Rules.KAFKA_3: become_candidate,
}
"""End of Resigned. The epoch rises: a response in the old one would still name this node as the leader."""
