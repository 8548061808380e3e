"""Initial state from quorum-state and the log: each row of the table in start.py (Kafka's QuorumState.initialize)."""

from dataclasses import replace

from controller_core.quorum.messages import Leadership
from controller_core.quorum.node import StoredElection
from controller_core.quorum.start import start
from controller_core.quorum.states import Candidate, Follower, Leader, Resigned, Unattached
from controller_core.quorum.voters import ReplicaKey
from tests.controller_core.quorum.nodes import (
    EPOCH,
    LEADER,
    LISTENER,
    LOG,
    NOW_MS,
    OTHER,
    endpoints,
    history,
    key,
    settings,
    started,
)


def test_a_log_ahead_of_quorum_state_gives_its_epoch_without_a_vote() -> None:
    """The file was lost or is an old one; a vote in it is for another epoch."""
    ready = started(StoredElection(3, None, key(OTHER)))

    assert isinstance(ready.node.state, Unattached)
    assert (ready.node.epoch, ready.node.voted) == (4, None)
    assert ready.election == StoredElection(4, None, None, (1, 2, 3), 1)


def test_without_quorum_state_the_log_gives_the_epoch() -> None:
    """Also for an empty log: epoch 0, which has no leader."""
    assert started(None).node.epoch == 4
    assert (
        start(settings(), None, replace(LOG, end_offset=0, epochs=type(LOG.epochs)()), history(), 1, 0).node.epoch == 0
    )


def test_the_leader_of_before_is_resigned() -> None:
    """It may have lost records of its epoch that others have: it must not append other ones in it, nor vote for another leader."""
    node = started(StoredElection(EPOCH, 1)).node

    assert isinstance(node.state, Resigned)
    assert (node.epoch, node.state.unacknowledged) == (EPOCH, {2, 3})


def test_the_candidate_of_before_goes_on() -> None:
    """Its own vote is on disk, and it asks for the others."""
    ready = started(StoredElection(EPOCH, None, key(1)))

    assert isinstance(ready.node.state, Candidate)
    assert ready.node.epoch == EPOCH
    assert sorted(outgoing.destination.id for outgoing in ready.requests) == [2, 3]


def test_a_vote_for_another_directory_of_this_node_is_a_vote_for_another() -> None:
    """The disk was replaced: that was another replica."""
    vote = ReplicaKey(1, key(9).directory_id)

    assert isinstance(started(StoredElection(EPOCH, None, vote)).node.state, Unattached)
    assert started(StoredElection(EPOCH, None, vote)).node.voted == vote


def test_a_candidate_that_is_no_voter_any_more_is_unattached() -> None:
    """Its vote in the epoch stays."""
    ready = start(settings(), StoredElection(EPOCH, None, key(1)), LOG, history(2, 3), 1, NOW_MS)

    assert isinstance(ready.node.state, Unattached)
    assert ready.node.voted == key(1)


def test_a_known_leader_with_endpoints_is_followed() -> None:
    """The vote in its epoch stays."""
    node = started(StoredElection(EPOCH, LEADER, key(OTHER))).node

    assert isinstance(node.state, Follower)
    assert (node.leader_id, node.voted) == (LEADER, key(OTHER))


def test_a_known_leader_without_endpoints_is_looked_for() -> None:
    """It is no voter of the latest set: bootstrap servers know it."""
    ready = started(StoredElection(EPOCH, 8))

    assert isinstance(ready.node.state, Unattached)
    assert (ready.node.leader_id, len(ready.requests)) == (8, 1)
    assert ready.requests[0].destination.id < 0


def test_a_leader_is_named_to_others_only_with_its_endpoints() -> None:
    """A Java node exits when it is to follow a leader without endpoints."""
    assert started(StoredElection(EPOCH, 8)).node.leadership(LISTENER) == Leadership(EPOCH)
    assert started(StoredElection(EPOCH, LEADER)).node.leadership(LISTENER) == Leadership(
        EPOCH, LEADER, endpoints(LEADER)[0]
    )


def test_a_leader_is_named_once_the_voter_set_has_its_endpoints() -> None:
    """The record came after the news of the leader."""
    node = replace(started(StoredElection(EPOCH, 8)).node, history=history(1, 2, 3, 8))

    assert node.leadership(LISTENER) == Leadership(EPOCH, 8, endpoints(8)[0])


def test_an_unknown_leader_is_looked_for() -> None:
    """With the vote of before."""
    node = started(StoredElection(EPOCH, None, key(OTHER))).node

    assert isinstance(node.state, Unattached)
    assert (node.epoch, node.voted) == (EPOCH, key(OTHER))


def test_the_only_voter_leads_at_once_whatever_it_was() -> None:
    """In a new epoch, except that a candidate goes on in its own."""
    cases = {
        StoredElection(EPOCH): EPOCH + 1,
        StoredElection(EPOCH, 1): EPOCH + 1,
        StoredElection(EPOCH, LEADER): EPOCH + 1,
        StoredElection(EPOCH, None, key(1)): EPOCH,
    }
    for stored, epoch in cases.items():
        ready = start(settings(), stored, LOG, history(1), 1, NOW_MS)
        assert isinstance(ready.node.state, Leader)
        assert (ready.node.epoch, ready.election and ready.election.leader_id) == (epoch, 1)


def test_only_a_changed_state_is_written_at_the_start() -> None:
    """A restart needs no write before it takes part; without the file there is one."""
    stored = StoredElection(EPOCH, LEADER, key(OTHER), (1, 2, 3), 1)

    assert started(stored).election is None
    assert started(None).election == StoredElection(4, None, None, (1, 2, 3), 1)
