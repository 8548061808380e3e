"""The pages on features and invariants: every row that promises something has tests, and the lists of tests are up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.shown import BEGIN, COMMAND, PAGES, marked, numbers_in, with_list

ROOT = Path(__file__).resolve().parents[1]

FEATURES, INVARIANTS = ((ROOT / page).read_text(encoding="utf-8") for page in PAGES)

TESTS = marked()

NUMBERS = {
    "docs/features.md": [*(f"F{number}" for number in range(1, 40)), *(f"E{number}" for number in range(1, 19))],
    "docs/invariants.md": [
        *(f"C{number}" for number in range(1, 15)),
        *(f"Q{number}" for number in range(1, 20)),
        *(f"O{number}" for number in range(1, 15)),
        *(f"D{number}" for number in range(1, 8)),
    ],
}
"""39 features that such operators are compared by and 15 that none had; the invariants, and the defects that their tests found."""

THERE, NOT_THERE = {"yes", "in part"}, {"later", "no"}
_FEATURE = re.compile(r"^\| (?P<number>[FE]\d+) \| .+ \| (?P<there>[a-z ]+) \| .+ \|$", re.MULTILINE)
_DECIDED_IN = re.compile(r"`([a-z_/]+\.py)`")


@pytest.mark.parametrize("page", PAGES)
def test_every_number_has_one_row(page: str) -> None:
    """None is lost, and none is used twice."""
    assert numbers_in((ROOT / page).read_text(encoding="utf-8")) == NUMBERS[page]


@pytest.mark.parametrize("page", PAGES)
def test_the_list_of_tests_is_what_the_marks_make_of_it(page: str) -> None:
    """A test that is renamed or moved takes its mark along."""
    text = (ROOT / page).read_text(encoding="utf-8")

    assert text == with_list(text, TESTS), f"{page} is out of date: run `make shown` ({COMMAND})"


def test_every_mark_names_a_row() -> None:
    """A typo would leave a row without its test."""
    assert sorted(set(TESTS) - {number for numbers in NUMBERS.values() for number in numbers}) == []


def test_every_invariant_and_every_defect_has_a_test() -> None:
    """What must hold is checked, and what was wrong once is kept out."""
    assert [number for number in NUMBERS["docs/invariants.md"] if number not in TESTS] == []


def test_a_feature_that_is_there_has_tests_and_one_that_is_not_has_none() -> None:
    """The third column is one of four words, and true."""
    there = {found["number"]: found["there"] for found in _FEATURE.finditer(FEATURES)}

    assert list(there) == NUMBERS["docs/features.md"]
    assert set(there.values()) <= THERE | NOT_THERE
    assert {number: number in TESTS for number in there} == {number: word in THERE for number, word in there.items()}


def test_modules_that_decide_an_invariant_exist() -> None:
    """A row follows a module that is moved."""
    pointed = set(_DECIDED_IN.findall(INVARIANTS.partition(BEGIN)[0]))

    assert sorted(path for path in pointed if "/" in path and not (ROOT / path).is_file()) == []
