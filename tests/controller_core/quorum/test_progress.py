"""Progress of a leader's replicas: the high watermark, the check for a majority, successors (Kafka's LeaderStateTest)."""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.quorum import leader as leading
from controller_core.quorum.node import Node, StoredElection
from controller_core.quorum.progress import Progress, Replicas
from controller_core.quorum.ready import Draft
from controller_core.quorum.start import start
from controller_core.quorum.states import Leader, Resigned
from controller_core.quorum.step import tick
from controller_core.quorum.voters import ReplicaKey, Voter, VoterSet
from tests.controller_core.quorum.nodes import (
    EPOCH,
    LOG,
    NOW_MS,
    ask,
    committed,
    elected,
    fetch,
    history,
    key,
    settings,
    voter,
)

ENDS = st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=7)


def replicas_with(ends: Mapping[int, int | None]) -> Replicas:
    """Return voters with these ends of their logs."""
    return Replicas({voter_id: Progress(key(voter_id), end_offset=end) for voter_id, end in ends.items()}, {})


@given(ENDS)
def test_a_majority_has_everything_up_to_its_end_and_no_more(ends: list[int | None]) -> None:
    """Against counting; a voter that has not fetched has nothing."""
    found = replicas_with(dict(enumerate(ends))).majority_end()

    known = [end for end in ends if end is not None]
    majority = len(ends) // 2 + 1
    shared = [end for end in known if sum(other >= end for other in known) >= majority]
    assert found == (max(shared) if shared else None)


@given(ENDS)
def test_successors_are_ordered_by_the_length_of_their_logs(ends: list[int | None]) -> None:
    """LeaderStateTest.testGetNonLeaderFollowersByFetchOffsetDescending; one that has not fetched is last, ids decide between equals."""
    ordered = [
        (progress.end_offset, progress.key.id) for progress in replicas_with(dict(enumerate(ends))).by_descending_end()
    ]

    assert ordered == sorted(ordered, key=lambda one: (-1 if one[0] is None else one[0], -one[1]), reverse=True)


@pytest.mark.shows("Q5")
@pytest.mark.parametrize(
    ("ends", "before", "after"),
    [
        ({1: 15, 2: 10, 4: 15}, 10, 15),  # a voter that has caught up was added
        ({1: 16, 2: 15, 3: 10, 4: 10}, 15, 15),  # one that is behind was added
        ({1: 16, 2: 16, 3: 13, 4: 13}, 15, 15),
        ({1: 16, 2: 16, 3: 13, 4: 16}, 15, 16),
        ({1: 18, 3: 10}, 15, 15),  # a follower was removed
        ({1: 18, 3: 15}, 15, 15),
        ({1: 18, 3: 16}, 15, 16),
        ({2: 16, 3: 14}, 15, 15),  # the leader was removed
        ({2: 16, 3: 16}, 15, 16),
        ({1: 16, 2: 5, 3: None}, 15, 15),  # a follower has lost its disk
    ],
)
def test_the_high_watermark_follows_the_voters_that_count_and_never_falls(
    ends: dict[int, int | None], before: int, after: int
) -> None:
    """Cases testHighWatermarkDoesIncreaseFromNewVoter to testNonMonotonicHighWatermarkUpdate; the log ends at 18."""
    node = committed()
    assert isinstance(node.state, Leader)
    log = replace(node.log, end_offset=18, flushed_offset=18, high_watermark=before)
    node = replace(node, state=replace(node.state, replicas=replicas_with(ends)), log=log, high_watermark=before)
    draft = Draft(node, NOW_MS)
    leading.update_high_watermark(draft)

    assert draft.node.high_watermark == after


def test_a_fetch_from_an_earlier_offset_is_noted_and_lowers_no_high_watermark() -> None:
    """KafkaRaftClientTest.testDescribeQuorumNonMonotonicFollowerFetch: a voter with a new disk begins again, and no longer counts for what it had."""
    node = ask(committed(), fetch(3, 3, 4)).node

    assert isinstance(node.state, Leader)
    assert (node.high_watermark, node.state.replicas.voters[3].end_offset) == (4, 3)


def test_a_replica_keeps_its_progress_when_it_becomes_a_voter_or_ceases_to_be_one() -> None:
    """Also when a voter of kraft.version 0 gets its directory id (testUpdateVotersFromNoDirectoryIdToDirectoryId)."""
    static = VoterSet.of(Voter(ReplicaKey(voter_id)) for voter_id in (1, 2))
    replicas = Replicas.start(static)
    replicas = replicas.update(key(2), Progress(ReplicaKey(2), end_offset=7))
    replicas = replicas.update(key(4), Progress(key(4), end_offset=9))
    upgraded = replicas.with_voters(VoterSet.of(voter(voter_id) for voter_id in (1, 2, 4)))
    shrunk = upgraded.with_voters(VoterSet.of(voter(voter_id) for voter_id in (1, 4)))

    assert {voter_id: found.end_offset for voter_id, found in upgraded.voters.items()} == {1: None, 2: 7, 4: 9}
    assert (upgraded.voters[2].key, upgraded.observers) == (key(2), {})
    assert {replica_key: found.end_offset for replica_key, found in shrunk.observers.items()} == {key(2): 7}


def test_another_directory_of_a_voters_id_is_an_observer() -> None:
    """The replica of a new disk does not count for the old one."""
    replicas = Replicas.start(history().voters)
    new = ReplicaKey(2, UUID(int=9))
    updated = replicas.update(new, Progress(new, end_offset=9))

    assert (updated.voters[2].end_offset, updated.observers[new].end_offset) == (None, 9)
    assert (updated.find(new), replicas.find(new)) == (updated.observers[new], None)


def leader_of(*ids: int) -> Node:
    """Return the leader of these voters at NOW_MS."""
    majority = len(ids) // 2 + 1
    return elected(history(*ids), granted_by=ids[1:majority]).node


def check_due_ms(node: Node) -> int:
    """Return when the leader resigns."""
    assert isinstance(node.state, Leader), node.state
    return node.state.check_quorum_due_ms - NOW_MS


@pytest.mark.shows("Q12")
def test_a_majority_of_fetches_counts_each_voter_once_and_no_observer() -> None:
    """LeaderStateTest.testCheckQuorum, five voters: two others are a majority with the leader."""
    node = ask(leader_of(1, 2, 3, 4, 5), fetch(2, 3, 4), NOW_MS + 1500).node
    repeated = ask(node, fetch(2, 3, 4), NOW_MS + 1500).node
    majority = ask(repeated, fetch(3, 3, 4), NOW_MS + 1500).node
    again = ask(ask(majority, fetch(4, 3, 4), NOW_MS + 3000).node, fetch(9, 3, 4), NOW_MS + 3000).node

    assert [check_due_ms(some_node) for some_node in (node, repeated, majority, again)] == [3000, 3000, 4500, 4500]
    assert isinstance(tick(again, NOW_MS + 4500).node.state, Resigned)


def with_voters(node: Node, *ids: int) -> Node:
    """Return a leader under another voter set."""
    assert isinstance(node.state, Leader), node.state
    replicas = node.state.replicas.with_voters(VoterSet.of(voter(node_id) for node_id in ids))
    return replace(node, state=replace(node.state, replicas=replicas), history=history(*ids))


@pytest.mark.shows("Q12")
def test_a_change_of_the_voters_changes_how_many_fetches_are_a_majority() -> None:
    """LeaderStateTest.testCheckQuorumAfterVoterSetChanges: the leader counts itself only while it is a voter."""
    grown = with_voters(ask(leader_of(1, 2, 3), fetch(2, 3, 4), NOW_MS + 1500).node, 1, 2, 3, 4)
    one = ask(grown, fetch(2, 3, 4), NOW_MS + 3000).node
    two = ask(one, fetch(3, 3, 4), NOW_MS + 3000).node
    without_leader = with_voters(two, 2, 3, 4)
    of_two = ask(without_leader, fetch(3, 3, 4), NOW_MS + 4500).node
    of_three = ask(of_two, fetch(2, 3, 4), NOW_MS + 4500).node

    assert [check_due_ms(node) for node in (grown, one, two, of_two, of_three)] == [4500, 4500, 6000, 6000, 7500]


def test_the_only_voter_leads_without_fetches() -> None:
    """KafkaRaftClientTest.testLeaderShouldNotResignLeadershipIfOnlyOneVoters; an observer's fetches change nothing."""
    node = start(settings(), StoredElection(EPOCH), LOG, history(1), 1, NOW_MS).node
    asked = ask(node, fetch(9, 3, 4, epoch=EPOCH + 1)).node

    for some_node in (node, asked):
        assert isinstance(tick(some_node, NOW_MS + 3_600_000).node.state, Leader)


def test_observers_that_are_silent_are_forgotten_when_another_one_fetches() -> None:
    """A bound of what a leader keeps: observers with new ids come and go."""
    node = ask(leader_of(1, 2, 3), fetch(8, 3, 4)).node
    followed = ask(node, fetch(2, 3, 4), NOW_MS + 2000).node
    later = replace(followed, state=replace(followed.state, check_quorum_due_ms=NOW_MS + 900_000))
    node = ask(later, fetch(9, 3, 4), NOW_MS + 300_000).node

    assert isinstance(node.state, Leader)
    assert list(node.state.replicas.observers) == [key(9)]


@pytest.mark.parametrize(
    ("fetched_ms", "caught_up_ms", "expected"),
    [(3_600_001, 1, True), (3_600_001, None, False), (3_600_000, 1, False), (None, None, False)],
)
def test_a_replica_may_become_a_voter_if_it_had_caught_up_and_fetched_in_the_last_hour(
    fetched_ms: int | None, caught_up_ms: int | None, *, expected: bool
) -> None:
    """LeaderState.isReplicaCaughtUp."""
    progress = Progress(key(4), last_fetch_ms=fetched_ms, last_caught_up_ms=caught_up_ms)

    assert progress.can_become_voter(7_200_000) is expected
