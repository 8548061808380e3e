"""Errors of the lab.

`Missing` is for a tool that can be installed (Java, Maven, Go): tests that need it are skipped and listed, and the demo prints the
command that installs it and exits. `LabError` is for a process that fails or misbehaves. `find_tool` searches a tool on PATH.
"""

from __future__ import annotations

import shutil


class LabError(Exception):
    """A process did not start, respond or end as expected; the text includes the end of its log."""


class Missing(LabError):  # noqa: N818 - not an error of the program: it names the missing tool
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
