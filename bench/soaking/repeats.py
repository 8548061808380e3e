"""All live tests, many times, alongside busy processes: `make soak ARGS="--repeat 20"`.

A live test meets whole clusters or a live Kubernetes API. It must pass on a machine that is also used by others: each failure here is
a flaky test, which is a defect. A round that fails does not end the run, so that one run shows all flaky tests.

`lab.test_runs.suites` chooses the live tests, `lab.test_runs.failures` records failures.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.test_runs.failures import read_failures
from lab.test_runs.suites import live_parts, run_parts

BUSY_PROCESSES = 2
"""One for each processor of the machine that CI has."""

ENDLESS_LOOP = (sys.executable, "-c", "while True: pass")


@contextmanager
def busy_processes(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Keep `count` processors busy; end the processes with the block."""
    started = [subprocess.Popen(ENDLESS_LOOP) for _ in range(count)]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def run_live_tests(folder: Path) -> Mapping[Path, int]:
    """Run all live tests once alongside busy processes; return pytest's exit status of each part by its file of failures."""
    with busy_processes(BUSY_PROCESSES):
        return run_parts(live_parts(), (), folder)


def repeat(
    rounds: int,
    run: Callable[[Path], Mapping[Path, int]] = run_live_tests,
    show: Callable[[str], None] = lambda line: print(line, flush=True),
) -> int:
    """Run all live tests `rounds` times, with a line for each round, and return 1 if any test failed in any of them.

    `run` gets an empty folder for the files of failures.
    """
    failed: Counter[str] = Counter()
    for number in range(1, rounds + 1):
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="steward-repeat-") as folder:
            statuses = run(Path(folder))
            found = dict.fromkeys(name for path, status in statuses.items() for name in _failed(path, status))
        failed.update(found.keys())
        result = f"failed: {', '.join(found)}" if found else "passed"
        show(
            f"round {number} of {rounds}: {result} ({time.monotonic() - started:.0f} s, load {os.getloadavg()[0]:.0f})"
        )
    show(f"{rounds} rounds, failed tests: {len(failed)}")
    for name, count in failed.most_common():
        show(f"{name}: failed in {count} of {rounds}")
    return 1 if failed else 0


def _failed(path: Path, status: int) -> list[str]:
    """Return the failed tests of a part, and the part's name if it failed without one, or did not reach its end."""
    if status == pytest.ExitCode.OK:
        return []
    tests = [failure.nodeid for failure in read_failures(path)]
    return tests if tests and status == pytest.ExitCode.TESTS_FAILED else [*tests, path.name]
