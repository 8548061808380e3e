"""Run of a program to its end, with a time limit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import LabError

TIMEOUT_S = 120.0

TAIL_CHARACTERS = 4000
"""Characters of a failed program's output that are reported: the end contains the reason."""


def run(
    *command: str | Path,
    stdin: str | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> str:
    """Return the program's standard output; raise `LabError` with all of its output if it fails."""
    done = attempt(*command, stdin=stdin, environment=environment, timeout_s=timeout_s)
    if done.returncode:
        message = f"{done.stdout}{done.stderr}"[-TAIL_CHARACTERS:].strip()
        raise LabError(f"{shown(command)} ended with {done.returncode}:\n{message}")
    return done.stdout


def attempt(
    *command: str | Path,
    stdin: str | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> subprocess.CompletedProcess[str]:
    """Run the program and return its exit code and outputs; raise `LabError` if it does not end in time."""
    try:
        return subprocess.run(
            [str(word) for word in command],
            check=False,
            input=stdin or "",
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, **(environment or {})},
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{shown(command)} did not end within {timeout_s:g} s") from error


def shown(command: Sequence[str | Path]) -> str:
    """Return a command line for a person."""
    return " ".join(Path(word).name if position == 0 else str(word) for position, word in enumerate(command))
