"""The checks of the simulation find planted bugs, and only those."""

import pytest

from tests.light_broker.sim.cluster import Cluster
from tests.light_broker.sim.planted_bugs import BUGS


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_violates_an_invariant(name: str) -> None:
    """Each of ten bugs is found by the seed of its row; without it the seed has no violation."""
    bug = BUGS[name]

    Cluster(bug.seed).run()
    with pytest.raises(AssertionError, match=r"^B[1236]: "):
        Cluster(bug.seed, bug.rules).run()
