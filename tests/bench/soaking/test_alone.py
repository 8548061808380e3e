"""Each test that needs processes, alone: `make soak ARGS="--alone"`."""

from collections.abc import Sequence

import pytest

from bench.soaking.alone import SHOWN_EACH, Run, run_each_alone

PASSED, FAILED, USAGE = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.USAGE_ERROR
COLLECTED = "tests/a.py::test_b[x y-1]\ntests/a.py::test_b[2]\ntests/a.py::test_c\n\n3 tests collected in 0.1s\n"


class Runs:
    """Runs of pytest with given results by test, and the lines that the user sees."""

    def __init__(self, collected: Run, **results: Run) -> None:
        self._collected = collected
        self._results = results
        self.ran: list[str] = []
        self.lines: list[str] = []

    def run(self, arguments: Sequence[str]) -> Run:
        if "--collect-only" in arguments:
            return self._collected
        (test,) = arguments
        self.ran.append(test)
        return self._results.get(test.rpartition("::")[2], Run(PASSED, "1 passed"))


def test_each_test_runs_once_with_all_of_its_parameters() -> None:
    """One run of pytest for each test; the status is 0 if all pass."""
    runs = Runs(Run(PASSED, COLLECTED))

    status = run_each_alone(runs.run, runs.lines.append)

    assert status == 0
    assert sorted(runs.ran) == ["tests/a.py::test_b", "tests/a.py::test_c"]
    assert runs.lines == ["2 tests, each alone", "2 tests, failed alone: 0"]


def test_a_test_that_fails_alone_is_shown_with_the_end_of_its_output() -> None:
    """It does not end the run; the list at the end names all of them."""
    runs = Runs(Run(PASSED, COLLECTED), test_b=Run(FAILED, "no quota of alice"))

    status = run_each_alone(runs.run, runs.lines.append)

    assert status == 1
    assert runs.lines[1:] == [
        "failed alone: tests/a.py::test_b\nno quota of alice",
        "2 tests, failed alone: 1",
        "tests/a.py::test_b",
    ]


def test_a_failed_collection_is_red() -> None:
    """Otherwise nothing would run, and nothing fail."""
    runs = Runs(Run(USAGE, "no such marker"))

    status = run_each_alone(runs.run, runs.lines.append)

    assert status == 1
    assert runs.lines == ["no tests were collected:\nno such marker"]


def test_progress_is_shown() -> None:
    """A whole run takes most of an hour."""
    collected = "".join(f"tests/a.py::test_{number}\n" for number in range(SHOWN_EACH + 1))
    runs = Runs(Run(PASSED, collected))

    run_each_alone(runs.run, runs.lines.append)

    assert runs.lines[1:] == ["50 of 51 tests, failed alone: 0", "51 tests, failed alone: 0"]
