"""The lines of set-up steps, and which steps run."""

import io
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.setup import progress, python_packages
from lab.setup.progress import Step, run_steps


def fail() -> None:
    """A step that fails."""
    raise LabError("no network")


def lines(output: io.StringIO) -> list[str]:
    """The lines, without their times."""
    return [re.sub(r"^ *\d+\.\d s  ", "", line) for line in output.getvalue().splitlines()]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_each_step_is_one_line_with_its_time() -> None:
    """A log has no other text."""
    output = io.StringIO()
    failures = run_steps((Step("jars", list), Step("programs", list)), output=output)

    assert failures == []
    assert lines(output) == ["jars", "programs"]
    assert re.fullmatch(r" {4}0\.\d s  jars", output.getvalue().splitlines()[0])


def test_a_failed_step_ends_its_sequence_and_no_other() -> None:
    """Packages cannot be installed without an environment; jars can be downloaded."""
    output = io.StringIO()
    environment = Step("environment", fail)
    failures = run_steps((environment, Step("packages", list)), (Step("jars", list),), output=output)

    assert [(failed.step, str(failed.error)) for failed in failures] == [(environment, "no network")]
    assert sorted(lines(output)) == ["FAILED: environment", "jars"]


def test_sequences_run_at_the_same_time() -> None:
    """Each step waits for the other, so both have to run."""
    both = threading.Barrier(2, timeout=10)
    output = io.StringIO()
    failures = run_steps((Step("one", both.wait),), (Step("other", both.wait),), output=output)

    assert failures == []
    assert sorted(lines(output)) == ["one", "other"]


def test_a_long_step_is_reported_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build of minutes is visible in a log too."""
    monkeypatch.setattr(progress, "REFRESH_S", 0.01)
    monkeypatch.setattr(progress, "REPORT_S", 0.02)
    output = io.StringIO()
    reported = threading.Event()
    write = output.write

    def note(text: str) -> int:
        if "..." in text:
            reported.set()
        return write(text)

    monkeypatch.setattr(output, "write", note)
    run_steps((Step("build", lambda: reported.wait(10)),), output=output)

    assert lines(output)[0] == "... build"
    assert lines(output)[-1] == "build"


def test_a_terminal_shows_the_running_steps_in_a_line_that_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line fits the terminal, or it would not be replaced."""
    monkeypatch.setattr(progress, "REFRESH_S", 0.01)
    monkeypatch.setenv("COLUMNS", "20")
    output = Terminal()
    run_steps((Step("a build with a long title", lambda: threading.Event().wait(0.1)),), output=output)

    updates = output.getvalue().split("\r\x1b[2K")[1:]
    assert updates[0].endswith("  ... a bu")
    assert max(map(len, updates[:-1])) < 20
    assert updates[-1].endswith("a build with a long title\n")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with an environment that has no packages yet."""
    inputs = tuple(tmp_path / name for name in ("pyproject.toml", "constraints.txt"))
    for path in inputs:
        path.touch()
        os.utime(path, (1000, 1000))
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(python_packages, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(python_packages, "INPUTS", inputs)
    return tmp_path


@pytest.mark.parametrize(
    ("stamp", "is_enough_for"), [(".demo-ready", (True, False)), (".ready", (True, True)), ("none", (False, False))]
)
def test_the_packages_of_all_targets_include_those_of_the_demo(
    checkout: Path, stamp: str, is_enough_for: tuple[bool, bool]
) -> None:
    """After `make setup`, `make demo` installs nothing."""
    (checkout / ".venv" / stamp).touch()

    assert tuple(map(python_packages.is_installed, (python_packages.DEMO, python_packages.ALL))) == is_enough_for


def test_a_changed_dependency_installs_the_packages_again(checkout: Path) -> None:
    """The stamp is older than the change."""
    (checkout / ".venv" / ".demo-ready").touch()
    assert python_packages.install_steps(python_packages.DEMO) == ()

    os.utime(checkout / ".venv" / ".demo-ready", (500, 500))
    assert [step.title for step in python_packages.install_steps(python_packages.DEMO)] == [
        f"virtual environment .venv, with pip {python_packages.PIP_VERSION}",
        "Python packages of the demo",
    ]


def test_the_set_up_of_the_demo_needs_no_package() -> None:
    """It runs before any is installed: -S hides those that this Python has."""
    command = [sys.executable, "-S", "-c", "import lab.setup.prepare"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=python_packages.ROOT, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
