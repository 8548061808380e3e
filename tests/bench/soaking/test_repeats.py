"""All live tests, many times: `make soak ARGS="--repeat 20"`."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pytest

from bench.soaking.repeats import busy_processes, repeat
from lab.test_runs.failures import Failure

PASSED, FAILED, KILLED = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, -9


class Rounds:
    """Runs of the tests with given results, and the lines that the user sees."""

    def __init__(self, *results: tuple[int, tuple[str, ...]]) -> None:
        self._results = iter(results)
        self.lines: list[str] = []

    def run(self, folder: Path) -> Mapping[Path, int]:
        status, failures = next(self._results)
        path = folder / "shared"
        lines = [json.dumps(asdict(Failure(name, True, "report"))) + "\n" for name in failures]
        path.write_text("".join(lines), encoding="utf-8")
        return {path: status}

    def results(self) -> list[str]:
        """The lines without seconds and load."""
        return [line.partition(" (")[0] for line in self.lines]


def test_rounds_that_all_pass_end_with_status_0() -> None:
    """One line for each round, and a summary."""
    rounds = Rounds((PASSED, ()), (PASSED, ()))

    status = repeat(2, rounds.run, rounds.lines.append)

    assert status == 0
    assert rounds.results() == ["round 1 of 2: passed", "round 2 of 2: passed", "2 rounds, failed tests: 0"]


def test_a_failed_round_does_not_end_the_run_and_is_counted() -> None:
    """The status is 1 although the last round passed; the summary counts the rounds in which a test failed."""
    rounds = Rounds(
        (FAILED, ("tests/a.py::test_b", "tests/a.py::test_b")), (FAILED, ("tests/a.py::test_b",)), (PASSED, ())
    )

    status = repeat(3, rounds.run, rounds.lines.append)

    assert status == 1
    assert rounds.results()[2:] == [
        "round 3 of 3: passed",
        "3 rounds, failed tests: 1",
        "tests/a.py::test_b: failed in 2 of 3",
    ]


def test_a_part_that_did_not_reach_its_end_is_a_failure() -> None:
    """A killed run of pytest records no failed test."""
    rounds = Rounds((KILLED, ()))

    status = repeat(1, rounds.run, rounds.lines.append)

    assert status == 1
    assert rounds.results()[0] == "round 1 of 1: failed: shared"


def test_a_part_that_failed_without_a_failed_test_is_a_failure() -> None:
    """Whatever ended it, nothing is known of the tests that it did not run."""
    rounds = Rounds((FAILED, ()))

    status = repeat(1, rounds.run, rounds.lines.append)

    assert status == 1
    assert rounds.results()[0] == "round 1 of 1: failed: shared"


def test_a_part_that_was_killed_after_a_failed_test_is_named_with_it() -> None:
    """The failed test is not all that is wrong."""
    rounds = Rounds((KILLED, ("tests/a.py::test_b",)))

    repeat(1, rounds.run, rounds.lines.append)

    assert rounds.results()[0] == "round 1 of 1: failed: tests/a.py::test_b, shared"


def test_busy_processes_end_with_the_block() -> None:
    """So that none slows down the next round."""
    with busy_processes(2) as started:
        running = [process.poll() for process in started]

    assert running == [None, None]
    assert [process.returncode for process in started] == [-9, -9]
