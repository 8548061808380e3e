"""Transitions between states: which are refused, and what they do to quorum-state, timers and high watermark (Kafka's QuorumStateTest)."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from controller_core.quorum import roles
from controller_core.quorum.batches import Position
from controller_core.quorum.messages import BeginQuorumEpochResponse, FetchResponse, Leadership, VoteResponse
from controller_core.quorum.node import Node, StoredElection
from controller_core.quorum.ready import Draft, Ready
from controller_core.quorum.start import start
from controller_core.quorum.states import NEVER, Candidate, Follower, Leader, Prospective, State, Unattached
from controller_core.quorum.step import tick
from controller_core.quorum.voters import Endpoint
from kafka_wire import ErrorCode
from tests.controller_core.quorum.nodes import (
    EPOCH,
    LATER_MS,
    LEADER,
    LISTENER,
    LOG,
    NOW_MS,
    OTHER,
    ask,
    begin,
    candidate,
    endpoints,
    follower,
    history,
    key,
    leader,
    observer,
    prospective,
    reply,
    resigned,
    respond,
    settings,
    started,
    unattached,
    vote,
)

"""After every election timeout that started at NOW_MS."""

SAME, SHORTER = Position(3, 4), Position(2, 4)

NO = VoteResponse(leadership=Leadership(EPOCH))
YES = replace(NO, granted=True)

NODES: Mapping[str, Callable[[], Node]] = {
    "Unattached": unattached,
    "Prospective": prospective,
    "Candidate": candidate,
    "Follower": follower,
    "Leader": leader,
    "Resigned": resigned,
}

REFUSED_IN_ANY_EPOCH = {
    "Unattached": "Leader Resigned",
    "Prospective": "Leader Resigned",
    "Candidate": "Resigned",
    "Follower": "Leader Resigned",
    "Leader": "Prospective Candidate Leader",
    "Resigned": "Leader Resigned",
}
REFUSED_IN_THE_SAME_EPOCH = {
    "Unattached": "Candidate",
    "Prospective": "Candidate",
    "Candidate": "Unattached Candidate",
    "Follower": "Unattached Candidate",
    "Leader": "Unattached Follower",
    "Resigned": "Unattached Candidate Follower",
}


def enter(before: str, after: str, epoch: int) -> None:
    """Try a transition to an epoch."""
    state: State = replace(NODES[after]().state, epoch=epoch)
    roles.enter(Draft(NODES[before](), NOW_MS), state)


@pytest.mark.parametrize("before", NODES)
def test_a_transition_that_is_not_in_the_table_is_a_defect(before: str) -> None:
    """Kafka throws IllegalStateException; here the step fails, and nothing of it is carried out."""
    for after in REFUSED_IN_ANY_EPOCH[before].split():
        for epoch in (EPOCH, EPOCH + 1):
            with pytest.raises(AssertionError):
                enter(before, after, epoch)
    for after in REFUSED_IN_THE_SAME_EPOCH[before].split():
        with pytest.raises(AssertionError):
            enter(before, after, EPOCH)


@pytest.mark.shows("Q2")
@pytest.mark.parametrize("before", NODES)
@pytest.mark.parametrize("after", NODES)
def test_no_transition_lowers_the_epoch(before: str, after: str) -> None:
    """The cases ToAnyStateLowerEpoch."""
    with pytest.raises(AssertionError):
        enter(before, after, EPOCH - 1)


def refused(node: Node, now_ms: int = NOW_MS) -> Ready:
    """Return the result of a node that no other voter votes for."""
    return respond(respond(node, LEADER, NO, now_ms).node, OTHER, NO, now_ms)


STORED: Mapping[str, tuple[Callable[[], Ready], tuple[int, int | None, int | None]]] = {
    "Unattached votes": (lambda: ask(unattached(), vote(3, EPOCH, SAME)), (EPOCH, None, 3)),
    "Unattached, voted -> Unattached, higher epoch": (
        lambda: ask(unattached(voted=3), vote(2, EPOCH + 2, SHORTER)),
        (EPOCH + 2, None, None),
    ),
    "Unattached, voted -> Follower": (lambda: ask(unattached(voted=3), begin(LEADER, EPOCH)), (EPOCH, LEADER, 3)),
    "Unattached, voted -> Follower, higher epoch": (
        lambda: ask(unattached(voted=3), begin(LEADER, EPOCH + 3)),
        (EPOCH + 3, LEADER, None),
    ),
    "Unattached, voted -> Prospective": (lambda: tick(unattached(voted=3), LATER_MS), (EPOCH, None, 3)),
    "Follower -> Prospective": (lambda: tick(follower(), LATER_MS), (EPOCH, LEADER, None)),
    "Follower -> Follower, higher epoch": (lambda: ask(follower(), begin(OTHER, EPOCH + 1)), (EPOCH + 1, OTHER, None)),
    "Follower -> Unattached, higher epoch": (
        lambda: ask(follower(), vote(3, EPOCH + 1, SHORTER)),
        (EPOCH + 1, None, None),
    ),
    "Prospective votes": (lambda: ask(prospective(), vote(3, EPOCH, SAME)), (EPOCH, None, 3)),
    "Prospective, voted -> Unattached": (
        lambda: refused(tick(unattached(voted=3), LATER_MS).node, LATER_MS),
        (EPOCH, None, 3),
    ),
    "Prospective with a leader -> Follower": (
        lambda: refused(tick(follower(), LATER_MS).node, LATER_MS),
        (EPOCH, LEADER, None),
    ),
    "Prospective with a leader -> Follower of another, higher epoch": (
        lambda: ask(tick(follower(), LATER_MS).node, begin(OTHER, EPOCH + 5), LATER_MS),
        (EPOCH + 5, OTHER, None),
    ),
    "Prospective with a leader -> Unattached, higher epoch": (
        lambda: ask(tick(follower(), LATER_MS).node, vote(3, EPOCH + 5, SHORTER), LATER_MS),
        (EPOCH + 5, None, None),
    ),
    "Prospective, voted -> Candidate": (
        lambda: respond(tick(unattached(voted=3), LATER_MS).node, OTHER, YES, LATER_MS),
        (EPOCH + 1, None, 1),
    ),
    "Prospective with a leader -> Candidate": (
        lambda: respond(tick(follower(), LATER_MS).node, OTHER, YES, LATER_MS),
        (EPOCH + 1, None, 1),
    ),
    "Candidate -> Prospective": (lambda: tick(candidate(), LATER_MS), (EPOCH, None, 1)),
    "Candidate -> Follower": (lambda: ask(candidate(), begin(LEADER, EPOCH)), (EPOCH, LEADER, 1)),
    "Candidate -> Follower, higher epoch": (lambda: ask(candidate(), begin(LEADER, EPOCH + 1)), (EPOCH + 1, 2, None)),
    "Candidate -> Unattached, higher epoch": (
        lambda: ask(candidate(), vote(3, EPOCH + 1, SHORTER)),
        (EPOCH + 1, None, None),
    ),
    "Candidate -> Leader": (lambda: respond(candidate(), OTHER, YES), (EPOCH, 1, None)),
    "Leader -> Resigned": (lambda: tick(leader(), NOW_MS + 3000), (EPOCH, 1, None)),
    "Leader -> Follower, higher epoch": (lambda: ask(leader(), begin(OTHER, EPOCH + 1)), (EPOCH + 1, OTHER, None)),
    "Leader -> Unattached, higher epoch": (
        lambda: ask(leader(), vote(3, EPOCH + 1, SHORTER)),
        (EPOCH + 1, None, None),
    ),
    "Resigned -> Unattached, higher epoch": (
        lambda: ask(resigned(), vote(3, EPOCH + 1, SHORTER)),
        (EPOCH + 1, None, None),
    ),
}


@pytest.mark.parametrize("name", STORED)
def test_quorum_state_has_epoch_leader_and_vote_after_each_transition(name: str) -> None:
    """The vote of an epoch is never lost in it, and never carried into another one; a pre-vote changes nothing on disk."""
    make, expected = STORED[name]
    stored = make().node.stored

    assert (stored.epoch, stored.leader_id, stored.voted and stored.voted.id) == expected


def due_ms(node: Node) -> int:
    """Return the end of the election timeout."""
    state = node.state
    assert isinstance(state, Unattached | Prospective | Candidate), state
    return state.election_due_ms


@pytest.mark.parametrize("voted", [None, OTHER])
def test_a_higher_epoch_delays_no_election(voted: int | None) -> None:
    """Unattached in a higher epoch keeps its election timeout; else a stream of candidates that cannot win would stop all others."""
    node = unattached(voted=voted)
    later = ask(node, vote(2, EPOCH + 2, SHORTER), NOW_MS + 500).node

    assert (later.epoch, due_ms(later)) == (EPOCH + 2, due_ms(node))


@pytest.mark.parametrize(
    "make",
    [
        lambda now_ms: ask(unattached(), vote(3, EPOCH, SAME), now_ms),
        lambda now_ms: ask(prospective(), vote(3, EPOCH, SAME), now_ms),
        lambda now_ms: ask(follower(), vote(3, EPOCH + 1, SHORTER), now_ms),
        lambda now_ms: tick(unattached(), now_ms + 2000),
        lambda now_ms: tick(follower(), now_ms + 2000),
        lambda now_ms: tick(candidate(), now_ms + 2000),
    ],
    ids=["vote", "vote of Prospective", "former follower", "Prospective", "former follower asks", "Candidate again"],
)
def test_a_vote_or_a_new_state_starts_a_whole_election_timeout(make: Callable[[int], Ready]) -> None:
    """From the setting to twice that."""
    now_ms = NOW_MS + 500
    node = make(now_ms).node
    begin_ms = now_ms + (2000 if isinstance(node.state, Prospective) and node.voted != key(3) else 0)

    assert 1000 <= due_ms(node) - begin_ms < 2000


def test_the_high_watermark_stays_known_until_the_node_leads() -> None:
    """QuorumStateTest.testHighWatermarkRetained: committed records are applied during an election; a new leader knows none of its own."""
    answer = FetchResponse(leadership=Leadership(EPOCH, LEADER, endpoints(LEADER)[0]), high_watermark=3)
    following = respond(follower(), LEADER, answer).node
    unattached_again = ask(following, vote(3, EPOCH + 1, SHORTER)).node
    asking = tick(unattached_again, LATER_MS + 2000).node
    campaigning = respond(asking, OTHER, replace(YES, leadership=Leadership(EPOCH + 1)), LATER_MS + 2000).node
    leading = respond(campaigning, OTHER, replace(YES, leadership=Leadership(EPOCH + 2)), LATER_MS + 2000).node

    nodes = (following, unattached_again, asking, campaigning, leading)
    assert [type(node.state) for node in nodes] == [Follower, Unattached, Prospective, Candidate, Leader]
    assert [node.high_watermark for node in nodes] == [3, 3, 3, 3, None]


def test_only_a_follower_has_another_node_as_its_leader() -> None:
    """QuorumStateTest.testHasRemoteLeader, and the cases testLeaderEndpoints of the states: a leader that has resigned is still named."""
    assert [name for name, make in NODES.items() if make().has_remote_leader] == ["Follower"]
    assert {name: make().leader_endpoints for name, make in NODES.items()} == {
        **dict.fromkeys(("Unattached", "Prospective", "Candidate"), ()),
        "Follower": endpoints(LEADER),
        **dict.fromkeys(("Leader", "Resigned"), endpoints(1)),
    }


def test_a_node_neither_votes_for_its_own_id_in_a_request_nor_follows_it() -> None:
    """Another process runs with its id (QuorumStateTest.testCannotFollowSelf, testUnattachedCannotAddVotedStateForSelf)."""
    voted, followed = ask(unattached(), vote(1, EPOCH, Position(9, 4))), ask(unattached(), begin(1, EPOCH))

    assert reply(voted) == VoteResponse(leadership=Leadership(EPOCH), granted=False)
    assert reply(followed) == BeginQuorumEpochResponse(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert isinstance(followed.node.state, Unattached)
    with pytest.raises(AssertionError):
        roles.become_follower(Draft(unattached(), NOW_MS), EPOCH, 1, endpoints(1))


def test_a_leader_without_endpoints_is_known_but_not_followed() -> None:
    """Through a lost pre-vote as well (testUnattachedWithLeaderNoEndpointToAndFromProspective)."""
    node = started(StoredElection(EPOCH, 8)).node
    asking = tick(node, LATER_MS).node
    lost = refused(asking, LATER_MS).node

    assert [type(some_node.state) for some_node in (node, asking, lost)] == [Unattached, Prospective, Unattached]
    assert [
        (some_node.leader_id, some_node.leader_endpoints, some_node.stored.leader_id)
        for some_node in (node, asking, lost)
    ] == [(8, (), 8)] * 3
    assert isinstance(tick(lost, LATER_MS + 2000).node.state, Prospective)
    with pytest.raises(AssertionError):
        roles.become_follower(Draft(node, NOW_MS), EPOCH, 8, ())


def test_a_follower_learns_more_endpoints_of_its_leader() -> None:
    """QuorumStateTest.testFollowerToFollowerSameEpochAndMoreEndpoints; as many or fewer change nothing."""
    more = (*endpoints(LEADER), Endpoint("OTHER", "host-2", 8992))
    learned = ask(follower(), replace(begin(LEADER, EPOCH), endpoints=more)).node
    again = ask(learned, begin(LEADER, EPOCH)).node

    assert (learned.leader_id, learned.leader_endpoints) == (LEADER, more)
    assert again.state == learned.state


def test_a_leader_that_is_no_voter_of_a_known_set_is_followed() -> None:
    """The voter set here may be an old one (testCanBecomeFollowerOfNonVoter)."""
    node = ask(ask(unattached(), vote(8, EPOCH, SAME)).node, begin(8, EPOCH)).node

    assert isinstance(node.state, Follower)
    assert (node.leader_id, node.stored.leader_id, node.voted) == (8, 8, key(8))


def following_observer() -> Node:
    """Return a controller that is no voter, and follows."""
    return start(settings(4), StoredElection(EPOCH, LEADER), LOG, history(), 1, NOW_MS).node


def test_an_observer_starts_no_election_and_votes() -> None:
    """Its voter set may be an old one, in which it is not yet: a candidate that asks it needs its vote (KIP-853)."""
    request = replace(vote(3, EPOCH, SAME), voter=key(4))
    voted = ask(observer(), request)
    waiting = (observer(), voted.node, ask(following_observer(), replace(request, epoch=EPOCH + 1)).node)

    assert reply(voted) == VoteResponse(leadership=Leadership(EPOCH), granted=True)
    assert (voted.node.stored.voted, [due_ms(some_node) for some_node in waiting]) == (key(3), [NEVER] * 3)
    assert {type(tick(some_node, NOW_MS + 3_600_000).node.state) for some_node in waiting} == {Unattached}
    assert isinstance(tick(following_observer(), NOW_MS + 3_600_000).node.state, Follower)


def test_an_observer_follows_the_leader_that_it_learns_of() -> None:
    """QuorumStateTest.testObserverUnattachedToFollower, testObserverFollowerToUnattached."""
    followed = ask(observer(), replace(begin(LEADER, EPOCH + 1), voter=key(4))).node
    deposed = ask(followed, replace(vote(3, EPOCH + 2, SHORTER), voter=key(4))).node

    assert (type(followed.state), followed.leader_id) == (Follower, LEADER)
    assert (type(deposed.state), deposed.leader_id, deposed.leadership(LISTENER)) == (
        Unattached,
        None,
        Leadership(EPOCH + 2),
    )
