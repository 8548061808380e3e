"""Seeded bugs, which check the tests: each can still be seeded, and every invariant of the core has one."""

import pytest

from bench.mutants import ROOT
from bench.soaking.seeded_bugs import SEEDED_BUGS, SeededBug


@pytest.mark.parametrize("bug", SEEDED_BUGS, ids=[bug.name for bug in SEEDED_BUGS])
def test_a_bug_can_be_seeded(bug: SeededBug) -> None:
    """The text that it replaces is in its module once; no test would catch a bug that changes nothing."""
    assert (ROOT / bug.path).read_text().count(bug.before) == 1
    assert bug.before != bug.after
    assert all((ROOT / path).exists() for path in bug.tests)


def test_there_are_enough_seeded_bugs() -> None:
    """20 seeded protocol bugs at least."""
    assert len({bug.name for bug in SEEDED_BUGS}) == len(SEEDED_BUGS) >= 20
