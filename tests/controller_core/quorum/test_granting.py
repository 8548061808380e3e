"""Votes and pre-votes that a node grants in each state (testGrantVote of Kafka's UnattachedStateTest to LeaderStateTest)."""

from collections.abc import Callable, Mapping
from uuid import UUID

import pytest

from controller_core.quorum.elections import may_grant
from controller_core.quorum.messages import FetchResponse, Leadership, VoteResponse
from controller_core.quorum.node import Node, StoredElection
from controller_core.quorum.states import Follower
from controller_core.quorum.step import tick
from controller_core.quorum.voters import ReplicaKey
from tests.controller_core.quorum.nodes import (
    EPOCH,
    LATER_MS,
    LEADER,
    OTHER,
    candidate,
    endpoints,
    follower,
    key,
    leader,
    prospective,
    resigned,
    respond,
    started,
    unattached,
)

OBSERVER = ReplicaKey(10)
"""A candidate that is in no voter set here, and of which no directory id is known."""

STATES: Mapping[str, tuple[Callable[[], Node], tuple[bool, bool, bool, bool]]] = {
    # pre-vote and vote for a log that is up to date, then for one that is behind
    "Unattached": (unattached, (True, True, False, False)),
    "Unattached with a leader": (lambda: started(StoredElection(EPOCH, 8)).node, (True, False, False, False)),
    "Unattached, voted for 1 of another directory": (
        lambda: started(StoredElection(EPOCH, None, ReplicaKey(1, UUID(int=9)))).node,
        (True, False, False, False),
    ),
    "Prospective": (prospective, (True, True, False, False)),
    "Prospective with a leader": (lambda: tick(follower(), LATER_MS).node, (True, False, False, False)),
    "Candidate": (candidate, (True, False, False, False)),
    "Resigned": (resigned, (True, False, False, False)),
    "Follower": (follower, (True, False, False, False)),
    "Follower that has fetched": (lambda: follower(has_fetched=True), (False, False, False, False)),
    "Leader": (leader, (False, False, False, False)),
}


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("asking", [key(LEADER), key(OTHER), OBSERVER])
def test_each_state_grants_by_its_row(name: str, asking: ReplicaKey) -> None:
    """KIP-996. Who asks does not matter: the voter set here may be an old one."""
    make, expected = STATES[name]
    granted = [
        may_grant(make(), asking, up_to_date=up_to_date, pre_vote=pre_vote)
        for up_to_date in (True, False)
        for pre_vote in (True, False)
    ]

    assert tuple(granted) == expected


VOTED: Mapping[str, Callable[[ReplicaKey], Node]] = {
    "Unattached": lambda voted: started(StoredElection(EPOCH, None, voted)).node,
    "Prospective": lambda voted: tick(started(StoredElection(EPOCH, None, voted)).node, LATER_MS).node,
}


@pytest.mark.shows("Q3")
@pytest.mark.parametrize("name", VOTED)
def test_a_vote_is_repeated_to_its_candidate_only(name: str) -> None:
    """Even if the log is behind since then. Another directory of its id, or none, is another replica."""
    node = VOTED[name](key(OTHER))
    candidates = (key(OTHER), ReplicaKey(OTHER, UUID(int=9)), ReplicaKey(OTHER), key(LEADER), OBSERVER)

    for up_to_date in (True, False):
        granted = [may_grant(node, candidate, up_to_date=up_to_date, pre_vote=False) for candidate in candidates]
        asked = [may_grant(node, candidate, up_to_date=up_to_date, pre_vote=True) for candidate in candidates]
        assert granted == [True, False, False, False, False]
        assert asked == [up_to_date] * 5


@pytest.mark.parametrize("name", VOTED)
def test_a_vote_without_a_directory_is_for_any_directory_of_the_id(name: str) -> None:
    """Of version 0 of quorum-state, at kraft.version 0 (ElectionStateTest, ProspectiveStateTest)."""
    node = VOTED[name](ReplicaKey(OTHER))
    candidates = (key(OTHER), ReplicaKey(OTHER, UUID(int=9)), ReplicaKey(OTHER), key(LEADER))

    assert [may_grant(node, candidate, up_to_date=False, pre_vote=False) for candidate in candidates] == [
        True,
        True,
        True,
        False,
    ]


def test_a_candidate_of_before_recognizes_its_vote_by_the_directory() -> None:
    """ElectionStateTest.testVotedCandidateWithVotedDirectoryId: quorum-state may come from another disk of this id."""
    votes = (key(1), ReplicaKey(1), ReplicaKey(1, UUID(int=9)), None)
    states = [type(started(StoredElection(EPOCH, None, vote)).node.state).__name__ for vote in votes]

    assert states == ["Candidate", "Candidate", "Unattached", "Unattached"]


def test_a_follower_grants_pre_votes_until_it_has_fetched_from_this_leader() -> None:
    """A return to the leader of before after a lost pre-vote starts that again (FollowerStateTest)."""
    no = VoteResponse(leadership=Leadership(EPOCH))
    asking = tick(follower(has_fetched=True), LATER_MS).node
    returned = respond(respond(asking, LEADER, no, LATER_MS).node, OTHER, no, LATER_MS).node
    empty = FetchResponse(leadership=Leadership(EPOCH, LEADER, endpoints(LEADER)[0]))
    fetched = respond(returned, LEADER, empty, LATER_MS).node

    assert [type(found_node.state) for found_node in (returned, fetched)] == [Follower, Follower]
    assert may_grant(returned, key(OTHER), up_to_date=True, pre_vote=True)
    assert not may_grant(fetched, key(OTHER), up_to_date=True, pre_vote=True)
