"""Leader selectors (PartitionLeaderElectionAlgorithms; protocol notes, Z62 to Z64; invariants C1, C2, C7, C8)."""

import pytest
from hypothesis import given

from controller_core.model import NO_LEADER
from controller_core.rules.election import (
    Election,
    ElectionReason,
    elect_offline,
    elect_preferred,
    elect_reassigned,
    elect_shutdown,
)
from tests.controller_core.cases import PartitionCase, partition_cases
from tests.twins.election import elect_new


def test_offline_elects_the_first_live_isr_member_in_assignment_order() -> None:
    """Protocol notes, Z62: the first live replica of the assignment that is in the ISR; the ISR keeps its order."""
    elected = elect_offline([1, 2, 3], [3, 2, 1], {2, 3}, unclean_allowed=False)

    assert elected == Election(2, (3, 2), False, ElectionReason.LIVE_IN_ISR)


def test_offline_without_a_live_isr_member_has_no_leader_and_keeps_the_isr() -> None:
    """Protocol notes, Z62: no leader unless unclean election is allowed; ISR members may come back."""
    elected = elect_offline([1, 2, 3], [1], {2, 3}, unclean_allowed=False)

    assert elected == Election(NO_LEADER, (1,), False, ElectionReason.NO_REPLICA_ONLINE)


@pytest.mark.shows("C1")
def test_unclean_election_makes_a_live_replica_the_only_isr_member() -> None:
    """Election.leaderForOffline: the new leader is the new ISR; invariant C1 requires the flag."""
    elected = elect_offline([1, 2, 3], [1], {2, 3}, unclean_allowed=True)

    assert elected == Election(2, (2,), True, ElectionReason.UNCLEAN)


def test_unclean_election_needs_a_live_replica() -> None:
    """Election.leaderForOffline: without a live replica there is no leader."""
    assert elect_offline([1, 2], [1], {3}, unclean_allowed=True).reason == ElectionReason.NO_REPLICA_ONLINE


def test_unclean_election_is_not_used_while_an_isr_member_is_live() -> None:
    """Invariant C7."""
    elected = elect_offline([1, 2, 3], [3], {1, 3}, unclean_allowed=True)

    assert elected == Election(3, (3,), False, ElectionReason.LIVE_IN_ISR)


def test_reassignment_elects_the_first_live_target_replica_in_the_isr() -> None:
    """Election.leaderForReassign: ISR unchanged."""
    elected = elect_reassigned([4, 5, 6], [1, 5, 6], {1, 5, 6})

    assert elected == Election(5, (1, 5, 6), False, ElectionReason.REASSIGNED)


def test_reassignment_without_a_target_replica_in_sync_has_no_leader() -> None:
    """Election.leaderForReassign: no leader without a replica in sync."""
    assert elect_reassigned([4], [1], {1, 4}) == Election(NO_LEADER, (1,), False, ElectionReason.NO_REPLICA_ONLINE)


def test_preferred_elects_the_first_replica() -> None:
    """Election.leaderForPreferredReplica: ISR unchanged, dead members included."""
    assert elect_preferred(2, [1, 2, 3], [2, 1, 3], {1, 2}) == Election(1, (2, 1, 3), False, ElectionReason.PREFERRED)


def test_preferred_is_not_needed_when_the_first_replica_leads() -> None:
    """ElectLeaders returns ELECTION_NOT_NEEDED (KIP-460); the leader stays."""
    assert elect_preferred(1, [1, 2], [1, 2], {1, 2}) == Election(1, (1, 2), False, ElectionReason.ELECTION_NOT_NEEDED)


@pytest.mark.shows("C14")
def test_preferred_elects_no_dead_or_lagging_replica() -> None:
    """Invariant C14: only live preferred replicas in the ISR."""
    assert elect_preferred(2, [1, 2], [1, 2], {2}).reason == ElectionReason.PREFERRED_LEADER_NOT_AVAILABLE
    assert elect_preferred(2, [1, 2], [2], {1, 2}).reason == ElectionReason.PREFERRED_LEADER_NOT_AVAILABLE


def test_shutdown_elects_a_remaining_isr_member() -> None:
    """Election.leaderForControlledShutdown: replicas on brokers that shut down leave the ISR."""
    elected = elect_shutdown([1, 2, 3], [1, 2, 3], {1, 2, 3}, {1})

    assert elected == Election(2, (2, 3), False, ElectionReason.SHUTDOWN)


def test_shutdown_keeps_dead_members_in_the_isr() -> None:
    """Kafka 3.9's Election: only brokers that shut down are removed; dead ones leave when their replicas go offline."""
    assert elect_shutdown([1, 2, 3], [1, 2, 3], {1, 2}, {1}).isr == (2, 3)


def test_shutdown_of_the_last_isr_member_fails_and_changes_nothing() -> None:
    """Election.leaderForControlledShutdown: the broker has to repeat the request or exit anyway."""
    elected = elect_shutdown([1, 2], [1], {1, 2}, {1})

    assert elected == Election(NO_LEADER, (1,), False, ElectionReason.STATE_CHANGE_FAILED)


def test_a_new_partition_has_its_first_live_replica_as_leader_and_all_live_ones_in_sync() -> None:
    """Protocol notes, Z64."""
    assert elect_new([1, 2, 3], {2, 3}) == Election(2, (2, 3), False, ElectionReason.NEW)
    assert elect_new([1], {2}) == Election(NO_LEADER, (), False, ElectionReason.NO_REPLICA_ONLINE)


@pytest.mark.shows("C1", "C2")
@given(partition_cases())
def test_an_elected_leader_is_live_and_in_the_isr(case: PartitionCase) -> None:
    """Invariants C1 and C2, for every selector that changes the leader."""
    for elected in every_election(case):
        if elected.elected:
            assert elected.leader in elected.isr
            assert elected.leader in case.live
            assert elected.leader in case.assignment
            assert set(elected.isr) <= set(case.assignment)


@given(partition_cases())
def test_an_election_without_a_leader_changes_nothing(case: PartitionCase) -> None:
    """A failed election returns its reason and keeps the state."""
    for elected in every_election(case):
        if not elected.elected and elected.reason is not ElectionReason.ELECTION_NOT_NEEDED:
            assert elected.leader == NO_LEADER
            assert elected.isr in ((), tuple(case.isr))


@pytest.mark.shows("C7")
@given(partition_cases())
def test_unclean_only_if_allowed_and_no_isr_member_is_live(case: PartitionCase) -> None:
    """Invariant C7."""
    elected = elect_offline(case.assignment, case.isr, case.live, unclean_allowed=case.unclean_allowed)

    has_no_live_isr_member = not set(case.isr) & case.live & set(case.assignment)
    has_live_replica = bool(set(case.assignment) & case.live)
    assert (case.unclean_allowed and has_no_live_isr_member and has_live_replica) == elected.unclean


@pytest.mark.shows("C8")
@given(partition_cases())
def test_a_broker_that_shuts_down_leads_no_partition_that_another_can_lead(case: PartitionCase) -> None:
    """Invariant C8."""
    elected = elect_shutdown(case.assignment, case.isr, case.live, case.shutting_down)

    others = set(case.isr) & case.live - case.shutting_down
    assert bool(others) == elected.elected
    assert not (elected.elected and elected.leader in case.shutting_down)


def every_election(case: PartitionCase) -> list[Election]:
    """Run every selector that may change the leader."""
    return [
        elect_offline(case.assignment, case.isr, case.live, unclean_allowed=case.unclean_allowed),
        elect_reassigned(case.assignment, case.isr, case.live),
        elect_preferred(case.leader, case.assignment, case.isr, case.live),
        elect_shutdown(case.assignment, case.isr, case.live, case.shutting_down),
        elect_new(case.assignment, case.live),
    ]
