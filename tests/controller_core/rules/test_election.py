"""The selectors of leaders (PartitionLeaderElectionAlgorithms; protocol notes, Z62 to Z64; invariants C1, C2, C7, C8)."""

import pytest
from hypothesis import given

from controller_core.model.ids import NO_LEADER
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


def test_offline_takes_the_first_live_isr_member_in_the_assignments_order() -> None:
    """Protocol notes, Z62: the first replica of the assignment that lives and is in the ISR; the ISR keeps its own order."""
    elected = elect_offline([1, 2, 3], [3, 2, 1], {2, 3}, unclean_allowed=False)

    assert elected == Election(2, (3, 2), False, ElectionReason.LIVE_IN_ISR)


def test_offline_without_a_live_isr_member_elects_nobody_and_keeps_the_isr() -> None:
    """Protocol notes, Z62: no leader unless unclean election is allowed; the ISR's members may still come back."""
    elected = elect_offline([1, 2, 3], [1], {2, 3}, unclean_allowed=False)

    assert elected == Election(NO_LEADER, (1,), False, ElectionReason.NO_REPLICA_ONLINE)


@pytest.mark.shows("C1")
def test_unclean_election_makes_a_live_replica_the_only_isr_member() -> None:
    """Election.leaderForOffline: the new leader is the new ISR; invariant C1 demands the flag."""
    elected = elect_offline([1, 2, 3], [1], {2, 3}, unclean_allowed=True)

    assert elected == Election(2, (2,), True, ElectionReason.UNCLEAN)


def test_unclean_election_needs_a_live_replica() -> None:
    """Election.leaderForOffline: without a live replica there is no leader."""
    assert elect_offline([1, 2], [1], {3}, unclean_allowed=True).reason == ElectionReason.NO_REPLICA_ONLINE


def test_unclean_election_is_not_tried_while_an_isr_member_lives() -> None:
    """Invariant C7."""
    elected = elect_offline([1, 2, 3], [3], {1, 3}, unclean_allowed=True)

    assert elected == Election(3, (3,), False, ElectionReason.LIVE_IN_ISR)


def test_reassignment_takes_the_first_target_replica_that_lives_and_is_in_sync() -> None:
    """Election.leaderForReassign: ISR unchanged."""
    elected = elect_reassigned([4, 5, 6], [1, 5, 6], {1, 5, 6})

    assert elected == Election(5, (1, 5, 6), False, ElectionReason.REASSIGNED)


def test_reassignment_with_no_target_replica_in_sync_elects_nobody() -> None:
    """Election.leaderForReassign: without a replica in sync there is no leader."""
    assert elect_reassigned([4], [1], {1, 4}) == Election(NO_LEADER, (1,), False, ElectionReason.NO_REPLICA_ONLINE)


def test_preferred_gives_the_lead_to_the_first_replica() -> None:
    """Election.leaderForPreferredReplica: ISR unchanged, dead members included."""
    assert elect_preferred(2, [1, 2, 3], [2, 1, 3], {1, 2}) == Election(1, (2, 1, 3), False, ElectionReason.PREFERRED)


def test_preferred_is_not_needed_when_the_first_replica_leads() -> None:
    """ElectLeaders answers ELECTION_NOT_NEEDED (KIP-460); the leader stays."""
    assert elect_preferred(1, [1, 2], [1, 2], {1, 2}) == Election(1, (1, 2), False, ElectionReason.ELECTION_NOT_NEEDED)


@pytest.mark.shows("C14")
def test_preferred_goes_neither_to_a_dead_nor_to_a_lagging_replica() -> None:
    """Invariant C14: only to live, in-ISR preferred replicas."""
    assert elect_preferred(2, [1, 2], [1, 2], {2}).reason == ElectionReason.PREFERRED_LEADER_NOT_AVAILABLE
    assert elect_preferred(2, [1, 2], [2], {1, 2}).reason == ElectionReason.PREFERRED_LEADER_NOT_AVAILABLE


def test_shutdown_hands_over_to_an_isr_member_that_stays() -> None:
    """Election.leaderForControlledShutdown: the leaving replicas go out of the ISR."""
    elected = elect_shutdown([1, 2, 3], [1, 2, 3], {1, 2, 3}, {1})

    assert elected == Election(2, (2, 3), False, ElectionReason.SHUTDOWN)


def test_shutdown_keeps_dead_members_in_the_isr() -> None:
    """Kafka 3.9's Election: only shutting-down brokers are filtered; dead ones go when their replicas go offline."""
    assert elect_shutdown([1, 2, 3], [1, 2, 3], {1, 2}, {1}).isr == (2, 3)


def test_shutdown_of_the_last_isr_member_fails_and_changes_nothing() -> None:
    """Election.leaderForControlledShutdown: the broker has to ask again or leave anyhow."""
    elected = elect_shutdown([1, 2], [1], {1, 2}, {1})

    assert elected == Election(NO_LEADER, (1,), False, ElectionReason.STATE_CHANGE_FAILED)


def test_a_new_partition_is_led_by_its_first_live_replica_with_all_live_ones_in_sync() -> None:
    """Protocol notes, Z64."""
    assert elect_new([1, 2, 3], {2, 3}) == Election(2, (2, 3), False, ElectionReason.NEW)
    assert elect_new([1], {2}) == Election(NO_LEADER, (), False, ElectionReason.NO_REPLICA_ONLINE)


@pytest.mark.shows("C1", "C2")
@given(partition_cases())
def test_whoever_is_elected_lives_and_is_in_the_isr(case: PartitionCase) -> None:
    """Invariants C1 and C2, for every selector that moves the lead."""
    for elected in every_election(case):
        if elected.elected:
            assert elected.leader in elected.isr
            assert elected.leader in case.live
            assert elected.leader in case.assignment
            assert set(elected.isr) <= set(case.assignment)


@given(partition_cases())
def test_who_elects_nobody_changes_nothing(case: PartitionCase) -> None:
    """An election that fails is answered with its reason and leaves the state alone."""
    for elected in every_election(case):
        if not elected.elected and elected.reason is not ElectionReason.ELECTION_NOT_NEEDED:
            assert elected.leader == NO_LEADER
            assert elected.isr in ((), tuple(case.isr))


@pytest.mark.shows("C7")
@given(partition_cases())
def test_unclean_only_where_allowed_and_nobody_in_the_isr_lives(case: PartitionCase) -> None:
    """Invariant C7."""
    elected = elect_offline(case.assignment, case.isr, case.live, unclean_allowed=case.unclean_allowed)

    nobody_in_sync = not set(case.isr) & case.live & set(case.assignment)
    someone_lives = bool(set(case.assignment) & case.live)
    assert (case.unclean_allowed and nobody_in_sync and someone_lives) == elected.unclean


@pytest.mark.shows("C8")
@given(partition_cases())
def test_a_broker_that_shuts_down_leads_nothing_that_another_can_lead(case: PartitionCase) -> None:
    """Invariant C8."""
    elected = elect_shutdown(case.assignment, case.isr, case.live, case.shutting_down)

    others = set(case.isr) & case.live - case.shutting_down
    assert bool(others) == elected.elected
    assert not (elected.elected and elected.leader in case.shutting_down)


def every_election(case: PartitionCase) -> list[Election]:
    """Run every selector that may move the lead."""
    return [
        elect_offline(case.assignment, case.isr, case.live, unclean_allowed=case.unclean_allowed),
        elect_reassigned(case.assignment, case.isr, case.live),
        elect_preferred(case.leader, case.assignment, case.isr, case.live),
        elect_shutdown(case.assignment, case.isr, case.live, case.shutting_down),
        elect_new(case.assignment, case.live),
    ]
