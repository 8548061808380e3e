"""Laws of groups and offsets under random schedules of clients, failures and time.

Every JoinGroup and SyncGroup is answered once; a generation's assignments come from its leader only; a committed offset is never lost and never
goes back (B7), also with another coordinator; the log, replayed, gives the state; silent members are removed.
"""

import pytest

from tests.cases import case
from tests.effort import EFFORT, EXHAUSTIVE
from tests.light_broker.core.groups.planted_bugs import PLANTED
from tests.light_broker.core.groups.schedules import Schedule

SEEDS = 10_000 if EXHAUSTIVE else max(1, int(40 * EFFORT))

SEEDS_FOR_A_BUG = 2_000
"""Limit, which takes 5 s: a change of the core may change which seed finds a bug. Most are found by one of the first 20."""

FIRST_SEEDS = {"every_member_assigns": 60, "assignments_of_older_generations_count": 150}
"""Seeds from which the rare bugs are searched; those before find nothing."""


@pytest.mark.shows("B7")
def test_laws_hold_under_random_schedules() -> None:
    """A failing seed is an argument of `python -m tests.light_broker.core.groups.schedules`."""
    _run_seeds(range(SEEDS))


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a law, or by an assertion of the core."""
    PLANTED[bug](monkeypatch)
    first = FIRST_SEEDS.get(bug, 0)

    with pytest.raises(AssertionError):
        _run_seeds(range(first, first + SEEDS_FOR_A_BUG))


def _run_seeds(seeds: range) -> None:
    for seed in seeds:
        with case("seed", seed):
            Schedule(seed).run()
