"""Simulated quorums under faults: each seed draws its own cluster and faults, keeps all invariants, and converges when they end."""

import os

import pytest

from controller_core.quorum.rules import Rules
from tests.sim.run import Outcome, run
from tests.sim.swarm import draw

SEEDS = int(os.environ.get("SIM_SEEDS", "100"))
"""Seeds of a normal run. SIM_SEEDS=20000 runs more; a failing seed is a number of `python -m tests.sim.run NUMBER`, and
`python -m tests.sim.minimal NUMBER` prints what its failure needs."""

BLOCK = 10
"""Seeds of one test: many small runs in one test cost less than a test each."""

REPEATED_VOTE = 8722
"""A seed in which a node repeats a vote after a pause, and starts an election in the same step."""

END_BETWEEN_ANSWERS = 988
"""A seed in which a leader answers an observer and then ends, by a failing sector, at the next answer of the same step."""

FAULTS_MS = 5_000
"""Two election rounds and more; `python -m tests.sim.run` has longer runs."""


@pytest.mark.shows(
    "Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8", "Q9", "Q10", "Q11", "Q12", "Q13", "Q14", "Q15", "Q16", "Q18", "Q19"
)
@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_every_seed_keeps_the_invariants_and_converges(first: int) -> None:
    """Q1 to Q16, Q18, Q19."""
    outcomes: dict[int, Outcome] = {}
    for seed in range(first, min(first + BLOCK, SEEDS)):
        try:
            outcomes[seed] = run(seed, faults_ms=FAULTS_MS)
        except AssertionError as error:
            raise AssertionError(f"seed {seed} with {draw(seed)}") from error

    assert all(outcome.leaders for outcome in outcomes.values())


@pytest.mark.shows("Q15")
def test_a_vote_may_be_repeated_in_the_step_that_starts_the_next_election() -> None:
    """Q15: a voter of 3.x gets a vote request twice, the second time when its own election timeout is over."""
    assert run(REPEATED_VOTE, faults_ms=FAULTS_MS).leaders > 0


@pytest.mark.shows("Q6")
def test_what_a_leader_has_answered_is_committed_if_it_ends_before_its_next_answer() -> None:
    """Q6: the observer knows a high watermark that the leader's own process has not used yet."""
    assert run(END_BETWEEN_ANSWERS, faults_ms=FAULTS_MS).leaders > 0


def test_an_equal_seed_gives_an_equal_run() -> None:
    """Everything that happens follows from the seed: the traces and the random state at the end are the same."""
    assert run(7, faults_ms=3000) == run(7, faults_ms=3000)
    assert run(7, faults_ms=3000).trace != run(8, faults_ms=3000).trace


def test_the_seeds_draw_all_kinds_of_clusters() -> None:
    """A swarm that never draws a kind of fault tests nothing of it."""
    drawn = [draw(seed) for seed in range(SEEDS)]

    assert {wishes.kraft_version for wishes in drawn} == {0, 1}
    assert {wishes.rules for wishes in drawn} >= {(Rules.KAFKA_4,), (Rules.KAFKA_3,), (Rules.KAFKA_4, Rules.KAFKA_3)}
    assert {wishes.voters for wishes in drawn} == {1, 2, 3, 4, 5}
    assert any(wishes.changes for wishes in drawn)
    assert any(wishes.upgrades for wishes in drawn)
    assert any(wishes.damage for wishes in drawn)
    assert any(wishes.crash and wishes.partitions and wishes.weather.loss for wishes in drawn)
