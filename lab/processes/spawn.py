"""Start of processes that cannot outlive this one.

Linux kills a child when its parent dies (PR_SET_PDEATHSIG). Two details matter. "Parent" means the *thread* that started the child, so
one thread starts every child and lives as long as this process. And the parent may die before the child has requested the signal, so
the child checks whether its parent is still the one that started it. The child makes the request in a few lines of Python that then
become the wanted command (exec keeps the request): no code of this process runs between fork and exec, which is not safe in a process
with threads.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import LabError

BECOME = """
import ctypes, os, sys
parent, report, *command = sys.argv[1:]
os.set_inheritable(int(report), False)
try:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(1, 9, 0, 0, 0):  # PR_SET_PDEATHSIG, SIGKILL
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != int(parent):
        raise OSError("the parent has ended")
    os.execv(command[0], command)
except OSError as error:
    os.write(int(report), str(error).encode())
    sys.exit(127)
"""
"""First program of the child. Its end of a pipe closes when it becomes the command; a failure before that is written to the pipe."""

REASON_BYTES = 4096

NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""Removed from the environment: without bytecode each Steward process compiles its modules, a third of the start that its users have."""


@dataclass(frozen=True, slots=True)
class _Request:
    command: Sequence[str]
    log: Path
    folder: Path
    environment: Mapping[str, str]
    report: int
    started: Future[subprocess.Popen[bytes]] = field(default_factory=Future)


_requests: queue.SimpleQueue[_Request] = queue.SimpleQueue()
_starting = threading.Lock()
_spawner: threading.Thread | None = None


def spawn(
    command: Sequence[str], *, log: Path, folder: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start `command` (its first word a path) as leader of a new session; both outputs are appended to `log`.

    Returns when the command runs and is bound to this process's life; raises `LabError` when it cannot be run.
    """
    _ensure_spawner()
    reading, report = os.pipe()
    with os.fdopen(reading, "rb") as reasons:
        try:
            request = _Request(command, log, folder, environment, report)
            _requests.put(request)
            process = request.started.result()
        finally:
            os.close(report)  # the child has its own, so the end of file comes from the child
        reason = reasons.read(REASON_BYTES).decode("utf-8", errors="replace")
    if reason:
        process.wait()
        raise LabError(f"{command[0]} cannot be run: {reason}")
    return process


def _ensure_spawner() -> None:
    global _spawner  # noqa: PLW0603 - one thread for the life of the process is the point of this module
    with _starting:
        if _spawner is None or not _spawner.is_alive():  # not alive: this process is a fork of the one that had it
            _spawner = threading.Thread(target=_serve, name="lab-spawner", daemon=True)
            _spawner.start()


def _serve() -> None:
    while True:
        request = _requests.get()
        try:
            with request.log.open("ab") as output:
                process = subprocess.Popen(
                    wrapped(request.command, os.getpid(), request.report),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=request.folder,
                    env={name: value for name, value in request.environment.items() if name != NO_BYTECODE},
                    start_new_session=True,
                    pass_fds=[request.report],
                )
        except OSError as error:
            request.started.set_exception(error)
        else:
            request.started.set_result(process)


def wrapped(command: Sequence[str], parent: int, report: int) -> list[str]:
    """Return the command line that becomes `command` once it is bound to `parent`; reasons for a failure go to descriptor `report`."""
    return [sys.executable, "-I", "-S", "-c", BECOME, str(parent), str(report), *command]
