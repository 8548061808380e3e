"""All tests, as two runs of pytest side by side: `python -m lab.suites [pytest's options]`.

One has the tests on whole clusters, which wait most of the time, for sessions to end and brokers to start; the other has the rest, which
computes. Options go to both. What names files or folders (`tests/lab`, `tests/x.py::test_y`) is one plain run.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import pytest

ROOT = Path(__file__).resolve().parents[1]

ON_CLUSTERS = "tests/integration"

PARTS = {"clusters": [ON_CLUSTERS], "rest": ["tests", f"--ignore={ON_CLUSTERS}"]}

END_TIMEOUT_S = 60
"""Several times what a run needs to end its peers when it is told to end."""


def names_tests(arguments: Sequence[str]) -> bool:
    """Whether some of pytest's arguments are tests' names, so that the choice is made already."""
    return any(one.startswith("tests") and (ROOT / one.partition("::")[0]).exists() for one in arguments)


def verdict(statuses: Sequence[int]) -> int:
    """Return the exit status of runs together: the worst of those that chose any test; none chosen in all is what pytest says of it."""
    chosen = [status for status in statuses if status != pytest.ExitCode.NO_TESTS_COLLECTED]
    failed = [status for status in chosen if status != pytest.ExitCode.OK]
    if failed:
        return failed[0]
    return pytest.ExitCode.OK if chosen else pytest.ExitCode.NO_TESTS_COLLECTED


def main(arguments: list[str]) -> int:
    """Run the tests and return the exit status."""
    if names_tests(arguments):
        return _start(arguments).wait()
    runs = {name: _start([*paths, *arguments], piped=True) for name, paths in PARTS.items()}
    tellers = [threading.Thread(target=_tell, args=[name, run]) for name, run in runs.items()]
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        for teller in tellers:
            teller.start()
        return verdict([run.wait() for run in runs.values()])
    finally:
        for run in runs.values():
            _end(run)
        for teller in tellers:
            teller.join(END_TIMEOUT_S)


def _start(arguments: Sequence[str], *, piped: bool = False) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", *arguments]
    output = subprocess.PIPE if piped else None
    return subprocess.Popen(command, cwd=ROOT, stdout=output, text=True, errors="replace")


def _tell(name: str, run: subprocess.Popen[str]) -> None:
    """Pass a run's lines on, each with its part's name in front."""
    assert run.stdout is not None, name
    for line in run.stdout:
        sys.stdout.write(f"{name:>8} | {line}")
        sys.stdout.flush()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end(run: subprocess.Popen[str]) -> None:
    """End a run that goes on, by the signal on which pytest ends its fixtures."""
    if run.poll() is not None:
        return
    run.send_signal(signal.SIGINT)
    try:
        run.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        run.kill()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
