"""What this machine lacks: the two errors of the lab.

`Missing` is for a tool that somebody can install (Java, Maven, Go); tests that need it are left out and listed, and the demo says
the command and ends. `LabError` is for a peer that is there and misbehaves. Nothing here looks for tools: `find_tool` of the
module that needs one does.
"""

from __future__ import annotations

import shutil


class LabError(Exception):
    """A peer did not start, answer or end as it should; the text carries the tail of its log."""


class Missing(LabError):  # noqa: N818 - not an error of the program: it says what to install
    """A tool that the lab needs is not on this machine.

    `what` names the tool and what it is for, `install` is the command that installs it.
    """

    def __init__(self, what: str, install: str) -> None:
        super().__init__(f"{what} is missing; install it with: {install}")
        self.what = what
        self.install = install


def find_tool(name: str, *, purpose: str, install: str) -> str:
    """Return the path of the command `name` on PATH, or raise `Missing`."""
    path = shutil.which(name)
    if path is None:
        raise Missing(f"{name} ({purpose})", install)
    return path
