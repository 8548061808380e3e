"""Programs that the lab runs to their end. It uses only the standard library, since some run before any package is installed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import LabError

TAIL_CHARACTERS = 4_000
"""Characters of a failed program's output that are reported: the end contains the reason."""


def run_to_end(
    command: Sequence[str | Path], *, folder: Path, timeout_s: float, environment: Mapping[str, str] | None = None
) -> str:
    """Run a program in `folder` and return its standard output; `LabError` with the end of all its output if it fails.

    Without `environment` it has that of this process.
    """
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=folder, env=environment, timeout=timeout_s
    )
    if done.returncode:
        message = (done.stdout + done.stderr)[-TAIL_CHARACTERS:]
        raise LabError(f"{' '.join(map(str, command))} failed:\n{message}")
    return done.stdout
