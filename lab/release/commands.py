"""Commands that write release files, with times that depend only on the commit.

`SOURCE_DATE_EPOCH` (reproducible-builds.org) is the variable by which build tools get such a time.
"""

from __future__ import annotations

import os
from pathlib import Path

from lab.errors import LabError
from lab.processes.commands import run_to_end

ROOT = Path(__file__).resolve().parents[2]

TIMEOUT_S = 1800
"""Several times what the slowest command takes, the installation of packages."""


def run(*command: str | Path, epoch_s: int | None = None) -> str:
    """Run a command in the checkout and return its output; `LabError` if it fails."""
    environment = {**os.environ, **({} if epoch_s is None else {"SOURCE_DATE_EPOCH": str(epoch_s)})}
    return run_to_end(command, folder=ROOT, environment=environment, timeout_s=TIMEOUT_S)


def commit_time_s() -> int:
    """Return the time of the commit, in Unix seconds, or `SOURCE_DATE_EPOCH` if that is set."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given) if given else int(run("git", "log", "-1", "--format=%ct"))


def commit() -> str:
    """Return the id of the commit, or an empty text outside of a Git checkout."""
    try:
        return run("git", "rev-parse", "HEAD").strip()
    except LabError:
        return ""
