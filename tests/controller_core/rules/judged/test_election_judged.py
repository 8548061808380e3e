"""Elections and partition states compared with Kafka 3.9's Election and PartitionState."""

import random
from typing import Any

import pytest

from controller_core.model import NO_LEADER
from controller_core.rules.election import (
    Election,
    ElectionReason,
    elect_offline,
    elect_preferred,
    elect_reassigned,
    elect_shutdown,
)
from controller_core.views.partition_state import PartitionState
from tests.controller_core.cases import MAX_BROKER, PartitionCase, random_partition
from tests.controller_core.rules.judged.conftest import Judge

pytestmark = pytest.mark.java

CASES = 10_000


def ask(
    judge: Judge, selector: str, cases: list[PartitionCase], removing: list[list[int]] | None = None
) -> list[dict[str, Any] | None]:
    """Let Kafka elect; if replicas are being removed, a case's assignment is a reassignment's target."""
    return judge.ask(
        "elect",
        [
            {
                "selector": selector,
                "leader": case.leader,
                "isr": case.isr,
                "replicas": [*case.assignment, *leaving],
                "adding": [],
                "removing": leaving,
                "live": sorted(case.live),
                "shutting_down": sorted(case.shutting_down),
                "unclean": case.unclean_allowed,
            }
            for case, leaving in zip(cases, removing or [[] for _ in cases], strict=True)
        ],
    )


def answer_of(elected: Election) -> dict[str, Any] | None:
    """Format an election like the reference."""
    if elected.leader == NO_LEADER:
        return None
    recovery = "RECOVERING" if elected.unclean else "RECOVERED"
    return {"leader": elected.leader, "isr": list(elected.isr), "recovery": recovery}


def drawn(seed: int) -> list[PartitionCase]:
    """Generate many partitions."""
    source = random.Random(seed)
    return [random_partition(source) for _ in range(CASES)]


def live(case: PartitionCase) -> set[int]:
    """Return the live brokers by Kafka's definition: without those that shut down."""
    return case.live - case.shutting_down


def test_offline_elections_are_kafkas(judge: Judge) -> None:
    """Election.leaderForOffline, with the recovery state of unclean leaders (KIP-704)."""
    cases = drawn(1)

    for case, expected in zip(cases, ask(judge, "offline", cases), strict=True):
        elected = elect_offline(case.assignment, case.isr, live(case), unclean_allowed=case.unclean_allowed)
        assert answer_of(elected) == expected, case


def test_preferred_elections_are_kafkas(judge: Judge) -> None:
    """Election.leaderForPreferredReplica; Kafka's caller detects unneeded elections, so those cases are excluded."""
    cases = [case for case in drawn(2) if case.leader != case.assignment[0]]

    for case, expected in zip(cases, ask(judge, "preferred", cases), strict=True):
        assert answer_of(elect_preferred(case.leader, case.assignment, case.isr, live(case))) == expected, case


def test_shutdown_elections_are_kafkas(judge: Judge) -> None:
    """Election.leaderForControlledShutdown."""
    cases = drawn(3)

    for case, expected in zip(cases, ask(judge, "shutdown", cases), strict=True):
        assert answer_of(elect_shutdown(case.assignment, case.isr, case.live, case.shutting_down)) == expected, case


def test_reassignment_elections_are_kafkas(judge: Judge) -> None:
    """Election.leaderForReassign: for a partition with the union of old and target replicas, the target is used."""
    cases = drawn(4)
    source = random.Random(5)
    others = [sorted(set(range(MAX_BROKER)) - set(case.assignment)) for case in cases]
    removing = [source.sample(brokers, source.randint(0, 3)) for brokers in others]

    for case, expected in zip(cases, ask(judge, "reassigned", cases, removing), strict=True):
        assert answer_of(elect_reassigned(case.assignment, case.isr, live(case))) == expected, case


def test_the_generated_cases_cover_every_reason() -> None:
    """Without a kind of result the comparison would not test it."""
    met = set()
    for case in drawn(6):
        met |= {
            elect_offline(case.assignment, case.isr, live(case), unclean_allowed=case.unclean_allowed).reason,
            elect_preferred(case.leader, case.assignment, case.isr, live(case)).reason,
            elect_reassigned(case.assignment, case.isr, live(case)).reason,
            elect_shutdown(case.assignment, case.isr, case.live, case.shutting_down).reason,
        }

    # The last known leader exists only in KRaft mode (`test_partition_change_judged`).
    assert met == set(ElectionReason) - {ElectionReason.NEW, ElectionReason.LAST_KNOWN_LEADER}


def test_states_have_kafkas_names_and_numbers(judge: Judge) -> None:
    """PartitionState of Kafka 3.9."""
    ours = {state.label: state.value for state in PartitionState}

    (theirs,) = judge.ask("states", [{"names": sorted(ours)}])

    assert ours == theirs
