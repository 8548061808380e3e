"""One process of the lab: start, faults and end.

Faults are those in docs/invariants.md: SIGTERM, kill -9, a freeze (SIGSTOP) and its end (SIGCONT). Each kind of process passes its own
predicate for readiness.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lab.errors import LabError
from lab.processes.folder import log_end
from lab.processes.spawn import spawn
from lab.processes.waiting import wait_until

READY_TIMEOUT_S = 90.0
"""Some thirty times the slowest start seen (a broker on a cold machine: 6.5 s), for machines that are busy."""

END_TIMEOUT_S = 45.0
"""A broker without a controller retries its controlled shutdown three times before it exits."""

_started: weakref.WeakSet[Process] = weakref.WeakSet()


class Process:
    """A command with a log file; it can be started again after it ended.

    `name` is the log file's stem; `folder` holds the log and is the working directory; `environment` is added to this process's.
    """

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, *, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.command = list(command)
        self.folder = folder
        self.log_path = folder / f"{name}.log"
        self._environment = dict(environment or {})
        self._popen: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        """Start it without waiting for anything; it must not be running."""
        if self.running:
            raise LabError(f"{self.name} is already running (pid {self.pid})")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._popen = spawn(
            self.command, log=self.log_path, folder=self.folder, environment={**os.environ, **self._environment}
        )
        _started.add(self)

    def wait_until_ready(self, ready: Callable[[], bool], *, timeout_s: float = READY_TIMEOUT_S) -> float:
        """Return the seconds until `ready()`; raise `LabError` with the log's tail if it ends before that or takes too long."""

        def is_ready() -> bool:
            if not self.running:
                raise LabError(
                    f"{self.name} ended with exit code {self.exit_code} before it was ready\n{self.log_tail()}"
                )
            return ready()

        return wait_until(is_ready, timeout_s=timeout_s, what=f"{self.name} ready", context=self.log_tail)

    @property
    def pid(self) -> int:
        """Process id of the current or last run."""
        if self._popen is None:
            raise LabError(f"{self.name} was never started")
        return self._popen.pid

    @property
    def running(self) -> bool:
        """Whether it has been started and has not ended; a frozen process runs."""
        return self._popen is not None and self._popen.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Exit code of the last run (minus the signal's number if a signal ended it), None while it runs."""
        return None if self._popen is None else self._popen.poll()

    @property
    def resident_bytes(self) -> int:
        """Memory in use now (RSS), 0 when it does not run."""
        if not self.running:
            return 0
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def highest_resident_bytes(self) -> int:
        """The most memory in use at any time so far (VmHWM), 0 when it does not run."""
        return highest_resident_bytes(self.pid) if self.running else 0

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and all of its group; nothing happens when it does not run."""
        if self.running:
            os.killpg(self.pid, number)

    def terminate(self, *, timeout_s: float = END_TIMEOUT_S) -> int | None:
        """Ask it to end (SIGTERM), wait, and return its exit code; kill -9 and `LabError` if it does not end in time."""
        self.signal(signal.SIGTERM)
        try:
            return self.wait(timeout_s=timeout_s)
        except LabError:
            self.kill()
            raise

    def kill(self) -> None:
        """Kill it (kill -9) and wait for its end; also works for a frozen process."""
        self.signal(signal.SIGKILL)
        self.wait(timeout_s=END_TIMEOUT_S)

    def pause(self) -> None:
        """Freeze it (SIGSTOP): its sockets stay open, and it does not respond."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue it (SIGCONT)."""
        self.signal(signal.SIGCONT)

    def wait(self, *, timeout_s: float = END_TIMEOUT_S) -> int | None:
        """Wait until it ends by itself and return its exit code; None if it was never started."""
        if self._popen is None:
            return None
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise LabError(
                f"{self.name} (pid {self.pid}) did not end within {timeout_s:g} s\n{self.log_tail()}"
            ) from error

    @property
    def log_bytes(self) -> int:
        """Size of the log now."""
        return self.log_path.stat().st_size if self.log_path.is_file() else 0

    def log_text(self, begin: int = 0) -> str:
        """Return the output of all its runs, from a byte of the log on."""
        if not self.log_path.is_file():
            return ""
        with self.log_path.open("rb") as file:
            file.seek(begin)
            return file.read().decode("utf-8", errors="replace")

    def log_tail(self) -> str:
        """Return the last lines of the log, under its name."""
        return log_end(self.log_path) if self.log_path.is_file() else f"{self.log_path.name} does not exist"


def highest_resident_bytes(pid: int) -> int:
    """Return the most memory in use at any time so far (VmHWM) of any running process, 0 once it has ended.

    `getrusage` would include the memory of the process that started it.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def processes() -> list[Process]:
    """Return the processes that were started and are still referred to, by name."""
    return sorted(_started, key=lambda process: process.name)


@atexit.register
def _end_all() -> None:
    # The kernel would kill them a moment later; their folders can be deleted only afterwards.
    for process in processes():
        process.kill()
