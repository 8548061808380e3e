"""Simulated clusters in KRaft mode under faults of controllers, brokers and links: each seed keeps all invariants, and settles."""

import os
from dataclasses import replace

import pytest

from tests.sim.kraft.run import Outcome, run
from tests.sim.kraft.swarm import draw
from tests.sim.scenarios import CALM

SEEDS = int(os.environ.get("SIM_SEEDS", "20"))
"""Seeds of a normal run. SIM_SEEDS=2000 runs more; a failing seed is a number of `python -m tests.sim.kraft.run NUMBER`."""

TORN = replace(
    draw(0),
    version=30,
    max_records=2,
    quorum=replace(CALM, voters=1, crash=0.1, flush_ms=0),
)
"""A lone controller whose first records, a transaction, need several batches between which it often crashes."""

FAULTS_MS = 3_000


@pytest.fixture(scope="module")
def outcomes() -> dict[int, Outcome]:
    """Figures of all seeds."""
    found: dict[int, Outcome] = {}
    for seed in range(SEEDS):
        try:
            found[seed] = run(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed} with {draw(seed)}") from error
    return found


@pytest.mark.shows(
    "C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C12", "C13", "C15", "C16", "C17", "C18", "C19", "C20", "C21"
)
@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_every_seed_keeps_the_invariants_and_settles(outcomes: dict[int, Outcome]) -> None:
    """C1 to C9, C12, C13, C15 to C21; in the end all partitions are whole, and no move runs."""
    assert len(outcomes) == SEEDS
    assert all(outcome.terms for outcome in outcomes.values())


@pytest.mark.slow
def test_the_seeds_do_what_their_invariants_are_about(outcomes: dict[int, Outcome]) -> None:
    """Moves that a controller leaves behind, metadata versions that rise in mid-run, snapshots, every kind of record of a decision."""
    done = {name for outcome in outcomes.values() for name, _ in outcome.records}

    assert sum(outcome.handed_over_moves for outcome in outcomes.values()) > 0
    assert sum(outcome.rises for outcome in outcomes.values()) > 0
    assert sum(outcome.loaded_snapshots for outcome in outcomes.values()) > 0
    assert done >= {
        "BrokerRegistrationChangeRecord",
        "ClearElrRecord",
        "ConfigRecord",
        "FeatureLevelRecord",
        "PartitionChangeRecord",
        "PartitionRecord",
        "ProducerIdsRecord",
        "RegisterBrokerRecord",
        "RegisterControllerRecord",
        "RemoveTopicRecord",
        "TopicRecord",
        "UnregisterBrokerRecord",
    }


@pytest.mark.shows("C21")
def test_a_transaction_of_a_lost_controller_leaves_nothing() -> None:
    """C21, KIP-868: the next controller aborts it, and writes the first records again."""
    written = dict(run(0, TORN, faults_ms=FAULTS_MS).records)

    aborted = written["AbortTransactionRecord"]
    assert aborted > 0
    assert (written["BeginTransactionRecord"], written["EndTransactionRecord"]) == (aborted + 1, 1)


def test_an_equal_seed_gives_an_equal_run() -> None:
    """Everything that happens follows from the seed: the traces and the random state at the end are the same."""
    assert run(7, faults_ms=FAULTS_MS) == run(7, faults_ms=FAULTS_MS)
    assert run(7, faults_ms=FAULTS_MS).trace != run(8, faults_ms=FAULTS_MS).trace
