"""The pages on features and invariants: every row that promises something has tests, and the lists of tests are up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.test_runs import tested_on
from lab.test_runs.shown import BEGIN, COMMAND, PAGES, generated, marked, numbers_in

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]

FEATURES, INVARIANTS = ((ROOT / page).read_text(encoding="utf-8") for page in PAGES)

TESTS = marked()

NUMBERS = {
    "docs/features.md": [
        *(f"F{number}" for number in range(1, 48)),
        *(f"E{number}" for number in range(1, 20)),
        *(f"F{number}" for number in (63, 64, 70, 71)),
        *(f"F{number}" for number in (*range(65, 70), 73, 74)),
        *(f"F{number}" for number in range(50, 63)),
    ],
    "docs/invariants.md": [
        *(f"B{number}" for number in (1, 2, 3, 6, 7, 8)),
        *(f"C{number}" for number in range(1, 22)),
        *(f"Q{number}" for number in range(1, 20)),
        *(f"O{number}" for number in range(1, 15)),
        *(f"D{number}" for number in range(1, 8)),
    ],
}
"""Features that such operators are compared by, those that none had, and from F50 on those of other tools that Steward lacks; the
invariants, and the defects that their tests found."""

THERE, NOT_THERE = {"yes", "in part"}, {"later", "no"}
_FEATURE = re.compile(r"^\| (?P<number>[FE]\d+) \| .+? \| (?P<there>[a-z ]+) \| .+ \| .+ \|$", re.MULTILINE)
_DECIDED_IN = re.compile(r"`([a-z_/]+\.py)`")


@pytest.mark.parametrize("page", PAGES)
def test_every_number_has_one_row(page: str) -> None:
    """None is lost, and none is used twice."""
    assert numbers_in((ROOT / page).read_text(encoding="utf-8")) == NUMBERS[page]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_the_tests_of_its_rows_and_what_they_run_on(page: str) -> None:
    """A test that is renamed or moved takes its mark along, and one that runs on another part changes the column."""
    text = (ROOT / page).read_text(encoding="utf-8")

    assert text == generated(text, TESTS), f"{page} is out of date: run `make shown` ({COMMAND})"


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


@pytest.mark.parametrize(
    ("test", "parts"),
    [
        (
            "tests/kafka_operator/end_to_end/test_end_to_end.py::test_the_oldest_topic_wins_and_the_next_takes_over",
            ["API server", "Kafka 3.9"],
        ),
        # Defined in test_end_to_end.py; this module imports it and replaces the fixture of the cluster.
        (
            "tests/kafka_operator/end_to_end/test_end_to_end_kafka_4.py::test_a_topic_is_created_extended_changed_and_deleted",
            ["API server", "Kafka 4.3"],
        ),
        (
            "tests/balance_analytics/sampling/test_kafka.py::test_a_sample_matches_the_cluster",
            ["Kafka 3.9", "Kafka 4.3"],
        ),
        (
            "e2e/test_11_operator_only.py::test_the_operator_is_ready_within_seconds_of_helm_install",
            ["Kafka 4.3", "kind"],
        ),
        ("tests/move_planner/test_planner.py::test_large_plan_is_near_the_bound", ["fake"]),
    ],
)
def test_a_test_runs_on_the_parts_that_its_fixtures_start(test: str, parts: list[str]) -> None:
    """Found without running it: by pytest's rules for fixtures, through imports and helpers."""
    assert tested_on.parts_of(test) == parts


def test_the_parts_of_a_test_agree_with_its_marks() -> None:
    """A test that needs Kafka or an API server has a mark for it, or the lab would not prepare them (lab/setup/prepare.py).

    The mark `kubernetes` may be of a whole module, of which some tests need no API server.
    """
    found = {
        test: set(tested_on.parts_of(test)) for tests in TESTS.values() for test in tests if test.startswith("tests/")
    }
    kafka = {test for test, parts in found.items() if parts & {tested_on.KAFKA_3, tested_on.KAFKA_4}}
    api_server = {test for test, parts in found.items() if "API server" in parts}

    assert kafka == {test for test in found if "kafka" in tested_on.marks_of(test)}
    assert api_server - {test for test in found if "kubernetes" in tested_on.marks_of(test)} == set()
