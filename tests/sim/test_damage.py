"""A voter with a damaged disk: it does not start, and the others go on (ADR 26)."""

from random import Random

import pytest

from tests.sim.disk import Damaged
from tests.sim.scenarios import Scenario


def damaged(kind: Damaged) -> Scenario:
    """Return three voters that have committed records and a snapshot, of which the first has ended and has this damage."""
    found = Scenario(1, snapshot_every_ms=200)
    found.until_committed(30)
    found.kill(1)
    disk = found.cluster.hosts[1].disk
    random = Random(1)
    while disk.damage is not kind:
        disk.be_damaged(random)
    return found


@pytest.mark.shows("Q7", "Q11")
@pytest.mark.parametrize("kind", Damaged)
def test_a_voter_with_a_damaged_disk_does_not_start_and_the_others_go_on(kind: Damaged) -> None:
    """It may have acknowledged what it can no longer read. With a new disk it would be another replica."""
    found = damaged(kind)
    found.start(1)
    found.until_committed(10, nodes=(2, 3))

    assert found.cluster.hosts[1].node is None
