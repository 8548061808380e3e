"""The checker is checked: each planted bug breaks an invariant, in a seed that the correct node passes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from controller_core.quorum.rules import Rules
from tests.sim.minimal import failing, minimal
from tests.sim.network import Weather
from tests.sim.planted_bugs import BUGS
from tests.sim.run import run
from tests.sim.scenarios import CALM
from tests.sim.swarm import Swarm, draw

SEEDS = 100
"""Seeds in which a bug must show, if it no longer does in the one below because the simulator draws otherwise."""

CONTENTION = replace(
    CALM, voters=5, rules=(Rules.KAFKA_3,), weather=Weather(0.1, 0.3, 20), crash=0.01, restart_every_ms=20
)
"""Elections without pre-votes among nodes that crash all the time."""

SLOW_CHANGES = replace(
    CALM,
    voters=4,
    controllers=2,
    kraft_version=1,
    changes=True,
    auto_join=True,
    weather=Weather(0.1, 0.0, 100),
    flush_ms=200,
    append_every_ms=100,
)
"""Changes of the voters that take long to commit."""


CHANGES_OF_LEADERS_THAT_ARE_CUT_OFF = replace(SLOW_CHANGES, partitions=True, auto_join=False, snapshot_every_ms=200)
"""Changes of the voters that the next leader truncates, and snapshots that have the voters."""


@dataclass(frozen=True)
class Conditions:
    """Where a bug shows: the first seed that finds it, its faults, and how long they last."""

    seed: int = 0
    swarm: Swarm | None = None
    faults_ms: int = 6_000
    damage: bool = False
    """Whether disks are damaged, where a seed draws it."""

    def run(self, seed: int) -> None:
        """Run a seed."""
        swarm = self.swarm or draw(seed)
        run(seed, swarm if self.damage else replace(swarm, damage=False), faults_ms=self.faults_ms)


KNOWN: Mapping[str, Conditions] = {
    "vote_twice": Conditions(4),
    "forget_votes": Conditions(8, CONTENTION),
    "ask_for_votes_before_the_flush": Conditions(94),
    "lead_again_in_an_epoch": Conditions(2),
    "truncate_committed_records": Conditions(4),
    "keep_leading_without_followers": Conditions(83, faults_ms=25_000),
    "change_two_voters_at_once": Conditions(1, SLOW_CHANGES),
    "count_old_voters": Conditions(16),
    "commit_records_of_earlier_epochs": Conditions(18),
    "forget_epochs": Conditions(1),
    "accept_every_end": Conditions(13),
    "keep_voters_that_were_truncated": Conditions(1, CHANGES_OF_LEADERS_THAT_ARE_CUT_OFF),
    "load_a_snapshot_without_its_voters": Conditions(3),
    "take_late_responses": Conditions(1),
    "cut_the_log_at_any_damage": Conditions(4, damage=True),
    "start_without_an_unreadable_quorum_state": Conditions(6, damage=True),
}
"""The others are found by the first seed of all."""


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 100 seeds, and the same seed passes without the bug."""
    known = KNOWN.get(bug, Conditions())
    known.run(known.seed)
    BUGS[bug](monkeypatch)

    for seed in (known.seed, *range(SEEDS)):
        try:
            known.run(seed)
        except AssertionError:
            return
    pytest.fail(f"{bug} broke no invariant in {SEEDS} seeds")


@pytest.mark.slow
def test_a_failing_run_is_made_minimal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log becomes shorter only by a crash: the observer and the drift of clocks are taken away, the crashes are not."""
    swarm = replace(CALM, crash=0.01, brokers=1, drift_percent=5)
    with monkeypatch.context() as planted:
        BUGS["vote_for_shorter_logs"](planted)
        found = failing(0, swarm, faults_ms=3_000)
        assert found is not None
        smallest = minimal(found)
        again = failing(smallest.seed, smallest.swarm, smallest.faults_ms)

    assert found.needs() == ["brokers", "drift_percent", "crash"]
    assert smallest.needs() == ["crash"]
    assert again == smallest
    assert failing(smallest.seed, smallest.swarm, smallest.faults_ms) is None
