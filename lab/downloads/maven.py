"""Download of jars by Maven: the dependencies of a `pom.xml` into a folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab.errors import LabError, find_tool

FETCH_TIMEOUT_S = 600
"""50 MB take 10 s on a usual line; long enough for a very slow one."""


def fetch_jars(pom: Path, folder: Path, *, what: str, among: str, **properties: str) -> None:
    """Copy the runtime dependencies of `pom` into `folder`. `what` names them in errors; a file must match `among`.

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
        raise LabError(f"Maven failed to download {what}:\n{(done.stdout + done.stderr)[-4000:]}")
    if not any(folder.glob(among)):
        raise LabError(f"Maven downloaded no {among} to {folder} for {what}")
