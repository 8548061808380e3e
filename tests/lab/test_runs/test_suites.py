"""The common result of all test runs."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.test_runs.suites import (
    ON_CLUSTERS,
    PLAIN_TRACEBACKS,
    ROOT,
    Part,
    names_tests,
    parts,
    quick_parts,
    verdict,
    wait_for,
)

OK, FAILED, NONE = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize(
    ("expected", "statuses"),
    [
        (OK, [OK, OK]),
        (FAILED, [OK, FAILED]),
        (FAILED, [FAILED, NONE]),
        (OK, [NONE, OK]),
        (NONE, [NONE, NONE]),
        (-9, [OK, -9]),
    ],
    ids=["both pass", "one fails", "only one fails", "only one passes", "nothing chosen", "killed"],
)
def test_a_failure_of_either_run_is_a_failure(expected: int, statuses: list[int]) -> None:
    """A selection that leaves one run without a test is no failure."""
    assert verdict(statuses) == expected


@pytest.mark.parametrize(
    ("expected", "arguments"),
    [
        (False, []),
        (False, ["-k", "lab"]),
        (True, ["tests/lab"]),
        (True, ["-x", "tests/lab/test_runs/test_suites.py::test_a_failure_of_either_run_is_a_failure"]),
    ],
    ids=["all", "by a word", "a folder", "a test"],
)
def test_named_tests_are_one_plain_run(*, expected: bool, arguments: list[str]) -> None:
    """For a named file the output is that of pytest."""
    assert names_tests(arguments) == expected


@pytest.mark.slow
def test_each_file_of_tests_is_in_one_run() -> None:
    """None is left out, and none runs twice."""
    runs = [_files_of(part) for part in parts()]

    assert set().union(*runs) == set(_files())
    assert sum(map(len, runs)) == len(_files())
    assert all(runs)


def test_each_file_of_tests_but_those_on_clusters_is_in_one_quick_run() -> None:
    """Marks leave out the tests that need more."""
    runs = [_files_of(part) for part in quick_parts()]

    files = {path for path in _files() if ROOT / ON_CLUSTERS not in path.parents}
    assert set().union(*runs) == files
    assert sum(map(len, runs)) == len(files)
    assert all(runs)


def _files() -> list[Path]:
    return list((ROOT / "tests").rglob("test_*.py"))


def _files_of(part: Part) -> set[Path]:
    return {path for path in _files() if _takes(part.arguments, path)}


def _takes(arguments: Sequence[str], path: Path) -> bool:
    ignored = [ROOT / argument.removeprefix("--ignore=") for argument in arguments if argument.startswith("--ignore=")]
    chosen = [ROOT / argument for argument in arguments if not argument.startswith("--")]
    return _below(path, chosen) and not _below(path, ignored)


def _below(path: Path, folders: Sequence[Path]) -> bool:
    return any(path == folder or folder in path.parents for folder in folders)


TRACEBACK_AMID_PARSING = """
import ast, gc, traceback

class Collected:
    def __init__(self):
        self.itself = self

    def __del__(self):
        try:
            1 + (lambda: undefined)()
        except NameError as error:
            traceback.format_exception(error)

gc.set_threshold(50)
with open(ast.__file__) as file:
    source = file.read()
for _ in range(20):
    garbage = [Collected() for _ in range(20)]
    del garbage
    ast.parse(source)
"""


def test_a_traceback_out_of_the_garbage_collector_affects_no_report(tmp_path: Path) -> None:
    """CPython issue 106905: the failure of one test ended all tests behind it."""
    program = tmp_path / "program.py"
    program.write_text(TRACEBACK_AMID_PARSING, "utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, **PLAIN_TRACEBACKS},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_processor_time_of_a_run_includes_the_processes_that_it_waited_for() -> None:
    """Brokers are most of the work of the runs with clusters."""
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    script = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {busy!r}])\nsys.exit(3)"
    run = subprocess.Popen([sys.executable, "-c", script], text=True)

    status, used_s = wait_for(run)
    assert status == run.returncode == 3
    assert used_s >= 0.3
