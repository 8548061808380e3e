"""Second runs of failed tests in CI: what runs again, what is red, and what is reported."""

import json
from pathlib import Path

import pytest

from lab.test_runs.failures import Failure, read_failures
from lab.test_runs.retries import MAX_RETRIED, choose, retry

OK, FAILED, INTERRUPTED, NONE = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.INTERRUPTED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)
KILLED = -9


def of_processes(name: str = "tests/a.py::test_live") -> Failure:
    """Return a failure of a test that starts processes."""
    return Failure(name, starts_processes=True, report=f"first traceback of {name}")


def computing(name: str = "tests/b.py::test_pure") -> Failure:
    """Return a failure of a test that only computes."""
    return Failure(name, starts_processes=False, report="traceback")


class Runs:
    """Second runs that end with given statuses, and what was shown."""

    def __init__(self, statuses: dict[str, int]) -> None:
        self.statuses = statuses
        self.ran: list[str] = []
        self.shown: list[str] = []

    def retry(self, *parts: tuple[int, list[Failure]]) -> bool:
        files = {Path(str(number)): status for number, (status, _) in enumerate(parts)}
        recorded = {Path(str(number)): failures for number, (_, failures) in enumerate(parts)}
        return retry(files, recorded.__getitem__, self._run, self.shown.append)

    def _run(self, nodeid: str) -> int:
        self.ran.append(nodeid)
        return self.statuses[nodeid]


def test_a_live_test_that_passes_in_its_second_run_is_listed_as_flaky_with_its_first_traceback() -> None:
    """It does not turn the run red, and stays visible."""
    runs = Runs({of_processes().nodeid: OK})

    passed = runs.retry((OK, []), (FAILED, [of_processes()]), (NONE, []))

    assert passed
    assert runs.ran == [of_processes().nodeid]
    assert any(line.startswith("flaky: tests/a.py::test_live") and of_processes().report in line for line in runs.shown)
    assert runs.shown[-1] == "1 flaky: tests/a.py::test_live"


def test_a_second_failure_is_red_and_the_first_one_is_reported() -> None:
    """Their causes may differ. The tests behind it do not run again."""
    runs = Runs({"tests/a.py::test_1": FAILED, "tests/a.py::test_2": OK})

    passed = runs.retry((FAILED, [of_processes("tests/a.py::test_1"), of_processes("tests/a.py::test_2")]))

    assert not passed
    assert runs.ran == ["tests/a.py::test_1"]
    assert runs.shown[-1] == (
        "failed twice: tests/a.py::test_1. Its first failure:\nfirst traceback of tests/a.py::test_1"
    )


def test_a_failure_in_set_up_and_in_the_test_is_one_second_run() -> None:
    """A test may be recorded twice, for its call and its tear-down."""
    runs = Runs({of_processes().nodeid: OK})

    assert runs.retry((FAILED, [of_processes(), of_processes()]))
    assert runs.ran == [of_processes().nodeid]


@pytest.mark.parametrize(
    ("statuses", "failures", "reason"),
    [
        ([FAILED], [of_processes(), computing()], "tests/b.py::test_pure starts no process"),
        ([INTERRUPTED], [of_processes()], "a run did not reach its end"),
        ([FAILED, KILLED], [of_processes()], "a run did not reach its end"),
        ([FAILED], [], "no failed test is recorded"),
        (
            [FAILED],
            [of_processes(f"tests/a.py::test_{number}") for number in range(MAX_RETRIED + 1)],
            f"{MAX_RETRIED + 1} tests failed, more than {MAX_RETRIED}",
        ),
    ],
    ids=["a computing test", "interrupted", "killed", "nothing recorded", "too many"],
)
def test_other_failures_stay_red_without_a_second_run(
    statuses: list[int], failures: list[Failure], reason: str
) -> None:
    """A second run is only for tests that fail because of the machine's load."""
    choice = choose(statuses, failures)

    assert choice.nodeids == []
    assert choice.reason == reason


def test_a_run_that_fails_without_a_failed_test_stays_red() -> None:
    """With CI=true a run fails where tests were left out, though another run has a flaky test."""
    runs = Runs({of_processes().nodeid: OK})

    assert not runs.retry((FAILED, []), (FAILED, [of_processes()]))
    assert runs.ran == []


INNER_TESTS = """
import subprocess
import sys

import pytest


def test_passes():
    pass


def test_computes():
    assert 1 + 1 == 3


def test_starts_a_process():
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    assert 1 + 1 == 3


@pytest.mark.kafka
def test_uses_a_peer_that_is_there():
    assert 1 + 1 == 3


@pytest.fixture
def broken():
    raise RuntimeError("no broker started")


@pytest.mark.kafka
def test_with_a_broken_fixture(broken):
    pass
"""


@pytest.mark.slow
def test_failures_are_recorded_with_their_reports(pytester: pytest.Pytester, tmp_path: Path) -> None:
    """Tests that start processes are recognised by their marks and by their behaviour."""
    pytester.makepyfile(test_inner=INNER_TESTS)
    pytester.makeini("[pytest]\nmarkers = kafka")
    recorded = tmp_path / "failures"

    result = pytester.runpytest_subprocess("-p", "lab.test_runs.failures", "--failures-file", str(recorded))

    assert result.ret == FAILED
    failures = read_failures(recorded)
    assert {failure.nodeid.partition("::")[2]: failure.starts_processes for failure in failures} == {
        "test_computes": False,
        "test_starts_a_process": True,
        "test_uses_a_peer_that_is_there": True,
        "test_with_a_broken_fixture": True,
    }
    assert "assert (1 + 1) == 3" in failures[0].report
    assert "no broker started" in failures[-1].report
    assert all(json.dumps(failure.report) for failure in failures)


def test_a_run_without_failures_records_none(tmp_path: Path) -> None:
    """Its file is not there."""
    assert read_failures(tmp_path / "none") == []
