"""Second runs of failed tests, for CI: one flaky test among thousands must not fail a whole run, and must not be hidden.

A failed test that starts processes runs once more, alone in its own process, after all others. A second failure fails the run, and the
report of the first one is repeated, since it may have another cause. A test that then passes is listed at the end as `flaky:` with its
first traceback. It is a defect that is fixed next.

`lab.test_runs.failures` records failures, `lab.test_runs.suites` starts pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.test_runs.failures import Failure

MAX_RETRIED = 5
"""Tests that run once more. More failures than this have a cause in common, which a second run would only hide."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The tests that run once more, or the reason why none does."""

    nodeids: Sequence[str]
    reason: str


def choose(statuses: Sequence[int], failures: Sequence[Failure]) -> Choice:
    """Choose the tests for a second run from pytest's exit statuses and the recorded failures.

    >>> choose([1, 0], [Failure("tests/a.py::test_b", True, "…")]).nodeids
    ['tests/a.py::test_b']
    >>> choose([1], [Failure("tests/a.py::test_b", False, "…")]).reason
    'tests/a.py::test_b starts no process'
    """
    usual = {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED}
    nodeids = list(dict.fromkeys(failure.nodeid for failure in failures))
    computing = [failure.nodeid for failure in failures if not failure.starts_processes]
    if any(status not in usual for status in statuses):
        return Choice([], "a run did not reach its end")
    if not nodeids:
        return Choice([], "no failed test is recorded")
    if computing:
        return Choice([], f"{computing[0]} starts no process")
    if len(nodeids) > MAX_RETRIED:
        return Choice([], f"{len(nodeids)} tests failed, more than {MAX_RETRIED}")
    return Choice(nodeids, "")


def retry(
    files: Mapping[Path, int],
    read: Callable[[Path], Sequence[Failure]],
    run: Callable[[str], int],
    show: Callable[[str], None],
) -> bool:
    """Run failed tests once more; return whether all of them passed.

    `files` has the failures file and the exit status of each run; a failed run without a recorded failure failed for another reason
    and stays failed. `run` runs one test by its id and returns pytest's exit status.
    """
    failed = {path: status for path, status in files.items() if status not in _FINE}
    recorded = {path: read(path) for path in failed}
    if any(not failures for failures in recorded.values()):
        show("no second run: a run failed without a failed test")
        return False
    failures = [failure for path in failed for failure in recorded[path]]
    choice = choose(list(files.values()), failures)
    if not choice.nodeids:
        show(f"no second run: {choice.reason}")
        return False
    passed = []
    for nodeid in choice.nodeids:
        show(f"second run of {nodeid}")
        if run(nodeid) != pytest.ExitCode.OK:
            first = next(failure.report for failure in failures if failure.nodeid == nodeid)
            show(f"failed twice: {nodeid}. Its first failure:\n{first}")
            return False
        passed.append(nodeid)
    for failure in failures:
        show(f"flaky: {failure.nodeid} failed, and passed in a second run. Its first failure:\n{failure.report}")
    show(f"{len(passed)} flaky: " + ", ".join(passed))
    return True


_FINE = frozenset({pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED})
