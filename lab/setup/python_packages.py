"""The virtual environment `.venv`, with the packages of the demo or of all targets: `python3 -m lab.setup.python_packages`.

The demo does without the packages of the analytics, the tests and the checks: PySpark is larger than all that the demo needs. The
system's Python runs this before any package is installed, so it uses only the standard library.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.processes.commands import run_to_end
from lab.setup.progress import Step, run_steps

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
INPUTS = (ROOT / "pyproject.toml", ROOT / "constraints.txt")
"""If one of these files changes, the packages are installed again."""

PIP_VERSION = "26.3"

CONSTRAINED = ("--constraint", "constraints.txt", "--build-constraint", "constraints.txt")
"""Options of pip that pin all packages, and what builds the package itself."""

INSTALL_TIMEOUT_S = 3600
"""Two minutes on two cores; long enough for a slow network."""


@dataclass(frozen=True, slots=True)
class PackageSet:
    """What pip installs for some targets; `stamp` is the file in `VENV` that is written when it has done so."""

    title: str
    stamp: str
    requirements: tuple[str, ...]


DEMO = PackageSet("Python packages of the demo", ".demo-ready", ("--editable", ".", "--group", "demo"))
ALL = PackageSet(
    "Python packages of all targets (with PySpark: 450 MB)",
    ".ready",
    ("--editable", ".[analytics]", "--group", "dev"),
)


def is_installed(packages: PackageSet) -> bool:
    """Whether these packages, or all, were installed after the last change of `INPUTS`."""
    changed = max(path.stat().st_mtime for path in INPUTS)
    stamps = (VENV / targets.stamp for targets in (packages, ALL))
    return any(stamp.is_file() and stamp.stat().st_mtime >= changed for stamp in stamps)


def install_steps(packages: PackageSet) -> Sequence[Step]:
    """Return the steps that install these packages; none when they are installed."""
    if is_installed(packages):
        return ()
    return (
        Step(f"virtual environment {VENV.name}, with pip {PIP_VERSION}", _create_venv),
        Step(packages.title, lambda: _install(packages)),
    )


def _create_venv() -> None:
    if not (VENV / "bin" / "python").exists():
        _run(sys.executable, "-m", "venv", str(VENV))
    _pip("install", f"pip=={PIP_VERSION}")


def _install(packages: PackageSet) -> None:
    _pip("install", *CONSTRAINED, *packages.requirements)
    (VENV / packages.stamp).touch()


def _pip(*arguments: str) -> None:
    _run(str(VENV / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def _run(*command: str) -> None:
    run_to_end(command, folder=ROOT, timeout_s=INSTALL_TIMEOUT_S)


def main() -> int:
    """Install the packages of all targets and return the exit status."""
    failures = run_steps(install_steps(ALL))
    for failed in failures:
        sys.stderr.write(f"{failed.error}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
