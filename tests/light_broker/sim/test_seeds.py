"""Simulated replication under faults: each seed is one run (cluster.py)."""

import pytest

from tests.effort import EFFORT, EXHAUSTIVE
from tests.light_broker.sim.cluster import Cluster

SEEDS = 400 if EXHAUSTIVE else max(1, int(20 * EFFORT))


@pytest.mark.shows("B1", "B2", "B3", "B6", "B8")
def test_no_seed_violates_an_invariant() -> None:
    """B1, B2, B3, B6, B8."""
    for seed in range(SEEDS):
        try:
            Cluster(seed).run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_a_seed_runs_again_in_the_same_way() -> None:
    """A failing seed can be examined."""
    first, second = Cluster(7), Cluster(7)
    first.run()
    second.run()

    assert first.scheduler.trace_hash() == second.scheduler.trace_hash()
    assert first.acknowledged == second.acknowledged
