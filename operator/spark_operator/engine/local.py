"""Drivers of engine Local: child processes of the operator, for development.

Never in a cluster: a user who may create a SparkApplication can then run programs as this process, so it needs the switch --spark-local.
A process ends with the operator, on Linux even if that is killed; a restarted operator finds its driver lost, and the
restart policy applies. It has no executors, limits or isolation of any kind.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from spark_operator.decide.command import driver_name, local_arguments
from spark_operator.decide.problems import SparkProblem
from spark_operator.resources.application import SparkApplication
from spark_operator.resources.pods import Phase, Role, SparkPod

GRACE_S = 5.0
"""Grace period before a process is killed."""

MAX_PROCESSES = 8
"""Concurrent drivers: each is a JVM of half a gigabyte and more."""

MAX_LOG_BYTES = 64 * 1024
"""Bytes that are read from the end of a log."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Running:
    process: asyncio.subprocess.Process
    output: Path
    attempt: int
    application_uid: str


class LocalDrivers:
    """Drivers as processes on this machine."""

    def __init__(self, program: str | None = None) -> None:
        """`program` is spark-submit; None searches PATH and SPARK_HOME at each start."""
        self._program = program
        self._running: dict[str, _Running] = {}
        self._folder: Path | None = None

    async def pods(self, application: SparkApplication) -> tuple[SparkPod, ...]:
        """Return the processes of an application."""
        uid = application.metadata.uid
        return tuple(_shown(name, item) for name, item in self._running.items() if item.application_uid == uid)

    async def create(self, application: SparkApplication, attempt: int) -> SparkPod | SparkProblem:
        """Start the driver of an attempt, unless it exists."""
        name = driver_name(application, attempt)
        if name not in self._running:
            program = self._program or _spark_submit()
            if program is None:
                message = "spark-submit is not in PATH: install pyspark, or set SPARK_HOME, and restart the operator."
                return SparkProblem("SparkSubmitMissing", message)
            if sum(item.process.returncode is None for item in self._running.values()) >= MAX_PROCESSES:
                return SparkProblem("TooManyDrivers", f"{MAX_PROCESSES} drivers already run on this machine.")
            self._running[name] = await self._start(program, application, attempt)
        return _shown(name, self._running[name])

    async def delete(self, application: SparkApplication, pod: SparkPod) -> None:
        """End a process and its children."""
        item = self._running.pop(pod.name, None)
        if item is not None:
            log.info("Stopping local driver", extra={"resource": str(application.key), "driver": pod.name})
            await _end(item)

    async def log(self, application: SparkApplication, pod: SparkPod, lines: int) -> str:  # noqa: ARG002 - the port has it
        """Return the last lines that a driver wrote."""
        item = self._running.get(pod.name)
        if item is None:
            return ""
        data = await asyncio.to_thread(_tail, item.output)
        return "\n".join(data.decode(errors="replace").splitlines()[-lines:])

    async def keep(self, uids: set[str]) -> None:
        """Stop the processes of all other applications, which are deleted."""
        for name in [name for name, item in self._running.items() if item.application_uid not in uids]:
            await _end(self._running.pop(name))

    async def close(self) -> None:
        """End all processes."""
        await self.keep(set())
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _start(self, program: str, application: SparkApplication, attempt: int) -> _Running:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="steward-spark-"))
        output = self._folder / f"{driver_name(application, attempt)}.log"
        with output.open("wb") as sink:
            process = await asyncio.create_subprocess_exec(
                program,
                *local_arguments(application),
                cwd=self._folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=sink,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,  # so that its children can be ended with it
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
        return _Running(process, output, attempt, application.metadata.uid)


PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that a process gets when its parent ends."""

_libc = ctypes.CDLL(None)


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _shown(name: str, item: _Running) -> SparkPod:
    """Return a process in the form of a pod; one that was ended by a signal has the exit code of a shell."""
    code = item.process.returncode
    phase = Phase.RUNNING if code is None else Phase.FAILED if code else Phase.SUCCEEDED
    return SparkPod(
        name=name,
        uid=f"process-{item.process.pid}",
        role=Role.DRIVER,
        attempt=item.attempt,
        application_uid=item.application_uid,
        phase=phase,
        reason="Error" if code else "",
        exit_code=128 - code if code is not None and code < 0 else code,
    )


async def _end(item: _Running) -> None:
    if item.process.returncode is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.killpg(item.process.pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(item.process.wait(), GRACE_S)
            return


def _spark_submit() -> str | None:
    home = os.environ.get("SPARK_HOME")
    return shutil.which("spark-submit", path=None if home is None else f"{home}/bin:{os.environ.get('PATH', '')}")


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - MAX_LOG_BYTES))
        return file.read()
