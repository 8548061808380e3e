"""pytest plugin: lists skipped tests, which are a failure with CI=true, and shows the logs of processes after a failed test.

A test that needs a real peer has a marker of `lab.setup.prepare.NEEDS`. If the machine lacks what the marker requires, the test is skipped, and
the run ends with the list of skipped tests, the reason, and the command that installs what they need. Tests that skip themselves are
listed too.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator

import pytest

from lab.processes.process import processes
from lab.setup.prepare import NEEDS, LeftOut, Need, lacking

LEFT_OUT = pytest.StashKey[Counter[LeftOut]]()


def in_ci() -> bool:
    """Whether the environment has `CI=true`: then no test may be skipped."""
    return os.environ.get("CI", "").lower() == "true"


def pytest_configure(config: pytest.Config) -> None:
    """Start with an empty list of skipped tests."""
    config.stash[LEFT_OUT] = Counter()


@pytest.hookimpl(trylast=True)  # after -k and -m: deselected tests need no preparation
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Prepare what the selected tests need, and deselect those that this machine cannot run."""
    if config.option.collectonly:
        return
    found: dict[Need, LeftOut | None] = {}
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        needs = {NEEDS[mark.name] for mark in item.iter_markers() if mark.name in NEEDS}
        for need in needs - found.keys():
            found[need] = lacking(need)
        reasons = [reason for need in needs if (reason := found[need]) is not None]
        (left if reasons else kept).append(item)
        config.stash[LEFT_OUT].update(reasons)
    if left:
        items[:] = kept
        config.hook.pytest_deselected(items=left)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the ends of the logs that grew during a failed test to its report: their folder is deleted after the test.

    Logs of processes that ended with the test are notes of its error (`lab.processes.folder`).
    """
    report = yield
    if report.failed:
        for process in processes():
            if process.log_path.is_file() and process.log_path.stat().st_mtime >= call.start:
                report.sections.append((f"log of {process.name}", process.log_tail()))
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With CI=true, fail a run that would pass with skipped tests."""
    if in_ci() and exitstatus == pytest.ExitCode.OK and _left_out(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the list of skipped tests at the end of the run."""
    left_out = _left_out(config)
    if not left_out:
        return
    verdict = "a failure, as CI=true" if in_ci() else "not a failure; with CI=true it would be"
    terminalreporter.section(f"left out ({verdict})", red=in_ci(), yellow=not in_ci(), bold=True)
    for what, tests in left_out.items():
        terminalreporter.line(f"{tests} tests: {what.reason}")
        terminalreporter.line(f"    to run them: {what.remedy}")


def _left_out(config: pytest.Config) -> Counter[LeftOut]:
    left_out = config.stash[LEFT_OUT].copy()
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    for report in reporter.stats.get("skipped", []) if reporter is not None else []:
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        left_out[LeftOut(f"{report.nodeid}: {reason}", "see the test")] += 1
    return left_out
