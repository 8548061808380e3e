"""Jars of a list of dependencies (`pom.xml`), fetched by Maven into a folder. Leaves out where they are kept and which they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab.missing import LabError, find_tool

FETCH_TIMEOUT_S = 600
"""50 MB in 10 s on a usual line; a very slow line still gets there."""


def fetch_jars(pom: Path, folder: Path, *, what: str, among: str, **properties: str) -> None:
    """Copy all that `pom` needs to run into `folder`; `what` they are for errors, `among` them one by that pattern.

    Raises `Missing` without Maven, `LabError` when Maven fails.
    """
    maven = find_tool("mvn", purpose=f"fetches {what}", install="apt-get install --yes maven")
    command = [
        maven, "--batch-mode", "--quiet", "--file", str(pom),
        *(f"-D{name}={value}" for name, value in properties.items()),
        "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}",
    ]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S)
    if done.returncode:
        raise LabError(f"Maven could not fetch {what}:\n{(done.stdout + done.stderr)[-4000:]}")
    if not any(folder.glob(among)):
        raise LabError(f"Maven fetched no {among} into {folder}, of {what}")
