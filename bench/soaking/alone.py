"""Each test that needs processes, alone: `make soak ARGS="--alone"`.

A test must not depend on what an earlier one left in a cluster that both use. Otherwise it fails for a developer who runs it by its name,
and in the second run that CI makes of a failed test (`lab.test_runs.retries`). A test with parameters runs with all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from lab.setup.prepare import NEEDS
from lab.test_runs.suites import start_pytest

SIDE_BY_SIDE = 2
"""Runs at a time: each waits half of its time for processes to start."""

SHOWN_CHARACTERS = 4_000
"""End of a failed run's output that is shown: the failure and the summary."""

SHOWN_EACH = 50
"""Tests between two lines of progress: some minutes."""


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run of pytest: its exit status and its output."""

    status: int
    output: str


def run_pytest(arguments: Sequence[str]) -> Run:
    """Run pytest once."""
    run = start_pytest(["-q", *arguments], piped=True)
    output, _ = run.communicate()
    return Run(run.returncode, output)


def run_each_alone(
    run: Callable[[Sequence[str]], Run] = run_pytest,
    show: Callable[[str], None] = lambda line: print(line, flush=True),
) -> int:
    """Run each test that needs processes in a run of its own, show those that fail, and return 1 if there is any."""
    collected = run(["--collect-only", "-m", " or ".join(NEEDS), "tests"])
    if collected.status != pytest.ExitCode.OK:
        show(f"no tests were collected:\n{collected.output[-SHOWN_CHARACTERS:]}")
        return 1
    tests = collected_tests(collected.output)
    show(f"{len(tests)} tests, each alone")
    failed = []
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        runs = zip(tests, pool.map(lambda test: run([test]), tests), strict=True)
        for number, (test, done) in enumerate(runs, start=1):
            if done.status != pytest.ExitCode.OK:
                failed.append(test)
                show(f"failed alone: {test}\n{done.output[-SHOWN_CHARACTERS:]}")
            if number % SHOWN_EACH == 0:
                show(f"{number} of {len(tests)} tests, failed alone: {len(failed)}")
    show(f"{len(tests)} tests, failed alone: {len(failed)}")
    for test in failed:
        show(test)
    return 1 if failed else 0


def collected_tests(output: str) -> list[str]:
    r"""Return the tests that `pytest --collect-only -q` printed, without their parameters.

    >>> collected_tests("tests/a.py::test_b[1]\ntests/a.py::test_b[2]\ntests/a.py::test_c\n\n3 tests collected in 0.1s")
    ['tests/a.py::test_b', 'tests/a.py::test_c']
    """
    without_parameters = (line.partition("[")[0] for line in output.splitlines())
    return list(dict.fromkeys(name for name in without_parameters if "::" in name and " " not in name))
