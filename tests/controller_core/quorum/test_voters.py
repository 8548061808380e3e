"""Voter sets: what may be added, removed and updated, and that majorities before and after a change overlap (Kafka's VoterSetTest)."""

from dataclasses import replace
from itertools import combinations
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from controller_core.quorum.voters import Endpoint, ReplicaKey, VersionRange, Voter, VoterSet, endpoint_of

KEYS = st.builds(ReplicaKey, st.integers(1, 6), st.none() | st.builds(UUID, int=st.integers(1, 2)))
SETS = st.lists(KEYS, min_size=1, max_size=5, unique_by=lambda key: key.id).map(
    lambda keys: VoterSet.of(Voter(key) for key in keys)
)


def majorities(voters: VoterSet) -> list[frozenset[ReplicaKey]]:
    """Return all smallest majorities."""
    return [frozenset(some) for some in combinations(voters.keys, voters.majority)]


@given(SETS, KEYS)
def test_a_voter_is_added_only_under_a_new_id(voters: VoterSet, key: ReplicaKey) -> None:
    """A second directory of one id is another replica, and no second voter."""
    added = voters.add(Voter(key))

    assert added is None if key.id in voters.ids else added is not None and added.keys == voters.keys | {key}


@given(SETS, KEYS)
def test_a_voter_is_removed_by_its_exact_key_and_not_the_last_one(voters: VoterSet, key: ReplicaKey) -> None:
    """Else a command about an old directory would remove the new one."""
    removed = voters.remove(key)

    may_be_removed = key in voters.keys and len(voters) > 1
    assert removed == (VoterSet.of(Voter(other) for other in voters.keys - {key}) if may_be_removed else None)


@given(SETS, KEYS)
def test_majorities_before_and_after_one_change_overlap(voters: VoterSet, key: ReplicaKey) -> None:
    """One change at a time is safe because of this (KIP-853)."""
    changed = voters.add(Voter(key)) or voters.remove(key) or voters

    assert voters.overlaps(changed)
    assert all(majority & other for majority in majorities(voters) for other in majorities(changed))


@given(SETS, SETS)
def test_sets_that_overlap_by_the_rule_have_no_disjoint_majorities(voters: VoterSet, others: VoterSet) -> None:
    """The rule is on the safe side; replacing one voter of one is the exception that no single change makes."""
    if voters.overlaps(others) and min(len(voters), len(others)) > 1 and voters.keys & others.keys:
        disjoint = [1 for majority in majorities(voters) for other in majorities(others) if not majority & other]
        came_and_left = len(voters.keys - others.keys) + len(others.keys - voters.keys)
        assert not disjoint or came_and_left == 2


def test_a_voter_without_a_directory_id_is_any_replica_with_its_id() -> None:
    """At kraft.version 0 directory ids are not known."""
    static, dynamic = VoterSet.of([Voter(ReplicaKey(1))]), VoterSet.of([Voter(ReplicaKey(1, UUID(int=1)))])

    assert static.is_voter(ReplicaKey(1, UUID(int=9)))
    assert not dynamic.is_voter(ReplicaKey(1, UUID(int=9)))
    assert not dynamic.is_voter(ReplicaKey(1))


def test_a_voter_is_updated_in_its_own_directory_only_unless_the_id_decides() -> None:
    """UpdateRaftVoter at kraft.version 1, and at 0, where it brings the directory id."""
    known = Voter(ReplicaKey(1, UUID(int=1)))
    moved = replace(known, endpoints=(Endpoint("CONTROLLER", "new", 1),))
    other = replace(moved, key=ReplicaKey(1, UUID(int=2)))
    voters = VoterSet.of([known])

    assert voters.update(moved) == VoterSet.of([moved])
    assert voters.needs_update(moved)
    assert not voters.needs_update(known)
    assert voters.update(other) is None
    assert not voters.needs_update(other)
    assert voters.update_by_id(other) == VoterSet.of([other])


def test_a_level_is_supported_only_by_all_voters() -> None:
    """The upgrade of kraft.version waits for the last one."""
    new, old = Voter(ReplicaKey(1), kraft_versions=VersionRange(0, 1)), Voter(ReplicaKey(2))

    assert VoterSet.of([new]).supports(1)
    assert not VoterSet.of([new, old]).supports(1)


def test_only_the_voter_itself_is_the_only_voter() -> None:
    """VoterSetTest.testIsOnlyVoterInStandalone, testIsOnlyVoterInNotStandalone: not another directory of its id."""
    one, two = ReplicaKey(1, UUID(int=1)), ReplicaKey(2, UUID(int=2))
    others = (ReplicaKey(1, UUID(int=9)), ReplicaKey(1), ReplicaKey(4, UUID(int=1)), ReplicaKey(4))
    alone, both = VoterSet.of([Voter(one)]), VoterSet.of([Voter(one), Voter(two)])

    assert [alone.is_only_voter(key) for key in (one, *others)] == [True, False, False, False, False]
    assert [both.is_only_voter(key) for key in (one, two, *others)] == [False] * 6


def test_a_voter_is_reached_at_its_endpoint_of_a_listener() -> None:
    """VoterSetTest.testVoterNode, testEndpoints; EndpointsTest.testAddressWithEmptyEndpoint."""
    first, second = Endpoint("CONTROLLER", "one", 1), Endpoint("OTHER", "two", 2)
    voters = VoterSet.of([Voter(ReplicaKey(1), (first, second)), Voter(ReplicaKey(2))])

    assert endpoint_of(voters.endpoints(1), "OTHER") == second
    assert endpoint_of(voters.endpoints(1), "MISSING") is None
    assert (voters.endpoints(2), voters.endpoints(4)) == ((), ())
    assert (voters.ids, VoterSet.of([]), VoterSet().ids) == ((1, 2), VoterSet(), ())
