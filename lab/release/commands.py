"""Commands that write release files, with times that depend only on the commit.

`SOURCE_DATE_EPOCH` (reproducible-builds.org) is the variable by which build tools get such a time.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from lab.missing import LabError

ROOT = Path(__file__).resolve().parents[2]

TIMEOUT_S = 1800
"""Several times what the slowest command takes, the installation of packages."""


def run(*command: str | Path, epoch_s: int | None = None) -> str:
    """Run a command in the checkout and return its output; `LabError` with all of its output if it fails."""
    environment = {**os.environ, **({} if epoch_s is None else {"SOURCE_DATE_EPOCH": str(epoch_s)})}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    if done.returncode:
        raise LabError(f"{' '.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


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
