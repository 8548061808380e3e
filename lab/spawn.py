"""Start a process that cannot outlive this one.

Linux kills a child for us when its parent dies (PR_SET_PDEATHSIG). Two traps are met here. "Parent" means the *thread* that
started the child, so every child is started by one thread that lives as long as this process. And the parent may die before the
child has asked for the signal, so the child looks whether it still has the parent it was started by. The child asks through a few
lines of Python that then become the wanted command (exec keeps the request): nothing of ours runs between fork and exec, which is
not safe in a process with threads.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

BECOME = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(1, 9, 0, 0, 0):  # PR_SET_PDEATHSIG, SIGKILL
    sys.exit(os.strerror(ctypes.get_errno()))
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""

_requests: queue.SimpleQueue[tuple[list[str], Path, Mapping[str, str], Path, Future[subprocess.Popen[bytes]]]] = (
    queue.SimpleQueue()
)
_starting = threading.Lock()
_spawner: threading.Thread | None = None


def spawn(
    command: Sequence[str], *, log: Path, folder: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start `command` (its first word a path) as leader of a new session; both outputs are appended to `log`."""
    _ensure_spawner()
    started: Future[subprocess.Popen[bytes]] = Future()
    wrapped = [sys.executable, "-I", "-S", "-c", BECOME, str(os.getpid()), *command]
    _requests.put((wrapped, log, environment, folder, started))
    return started.result()


def _ensure_spawner() -> None:
    global _spawner  # noqa: PLW0603 - one thread for the life of the process is the point of this module
    with _starting:
        if _spawner is None or not _spawner.is_alive():  # not alive: this process is a fork of the one that had it
            _spawner = threading.Thread(target=_serve, name="lab-spawner", daemon=True)
            _spawner.start()


def _serve() -> None:
    while True:
        command, log, environment, folder, started = _requests.get()
        try:
            with log.open("ab") as output:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    env=dict(environment),
                    start_new_session=True,
                )
        except OSError as error:
            started.set_exception(error)
        else:
            started.set_result(process)
