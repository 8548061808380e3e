"""Pytest plugin that records failed tests: `-p lab.test_runs.failures --failures-file PATH`.

The file has a JSON document per failure and line: the test, its report as text, and whether the test starts processes. Such a test
can fail because of the machine's load, one that only computes cannot. A test starts processes if it has a mark of
`lab.setup.prepare.NEEDS` (its peers may have been started by an earlier test), or if it started one itself.

`lab.test_runs.retries` decides about second runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from lab.setup.prepare import NEEDS

OPTION = "--failures-file"

STARTS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.exec", "os.spawn"})
"""Audit events of Python that a new process raises."""

REPORT_CHARACTERS = 20_000
"""Limit of one report: enough for a traceback and the ends of several logs."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed test."""

    nodeid: str
    starts_processes: bool
    report: str


class Recorder:
    """Appends each failure to the file as it happens, so that a killed run keeps its failures."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._started = 0
        sys.addaudithook(self._audit)

    def _audit(self, event: str, _arguments: object) -> None:
        if event in STARTS:
            self._started += 1

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Count the processes of each test from zero."""
        self._started = 0
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Record a failure of the test, its set-up or its tear-down, with all sections of its report."""
        report = yield
        if report.failed:
            starts = self._started > 0 or any(mark.name in NEEDS for mark in item.iter_markers())
            sections = [f"---- {title}\n{text}" for title, text in report.sections]
            text = "\n".join([f"({report.when}) {report.longreprtext}", *sections])
            failure = Failure(report.nodeid, starts, text[:REPORT_CHARACTERS])
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(failure)) + "\n")
        return report


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the file."""
    parser.addoption(OPTION, metavar="PATH", help="record failed tests in this file, one JSON document per line")


def pytest_configure(config: pytest.Config) -> None:
    """Record failures if the option is set."""
    path = config.getoption(OPTION)
    if path is not None:
        config.pluginmanager.register(Recorder(Path(path)), "failures-recorder")


def read_failures(path: Path) -> list[Failure]:
    """Read a file of this plugin; a missing file has no failures."""
    if not path.exists():
        return []
    return [Failure(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
