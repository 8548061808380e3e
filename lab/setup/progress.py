"""Progress of set-up: runs steps, some at the same time, and prints one line for each with its time.

On a terminal, a last line shows the running steps and is updated every second; in a log, a step that takes minutes is reported once
a minute. Uses only the standard library, because the first of these steps installs all other packages.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TextIO

from lab.errors import LabError

WORKERS = 2
"""Sequences of steps that run at the same time: most of a step is one process on one core, and two cores are the least expected."""

REFRESH_S = 1.0

REPORT_S = 60.0
"""Between two reports of a running step where there is no terminal."""

CLEAR_LINE = "\r\x1b[2K"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: `run` does it and raises `LabError` when it fails."""

    title: str
    run: Callable[[], object]


@dataclass(frozen=True, slots=True)
class FailedStep:
    """A step and the error that ended it and its sequence."""

    step: Step
    error: LabError


def run_steps(*sequences: Sequence[Step], output: TextIO | None = None) -> list[FailedStep]:
    """Run sequences of steps, `WORKERS` of them at a time, and return the steps that failed.

    A failed step ends its sequence; the other sequences continue.
    """
    lines = _Lines(sys.stdout if output is None else output)

    def run(sequence: Sequence[Step]) -> FailedStep | None:
        for step in sequence:
            lines.started(step)
            try:
                step.run()
            except LabError as error:
                lines.ended(step, failed=True)
                return FailedStep(step, error)
            except BaseException:
                lines.ended(step, failed=True)
                raise
            lines.ended(step, failed=False)
        return None

    with ThreadPoolExecutor(WORKERS) as workers:
        running = [workers.submit(run, sequence) for sequence in sequences]
        while wait(running, REFRESH_S).not_done:
            lines.refresh()
    return [failed for future in running if (failed := future.result()) is not None]


class _Lines:
    """The lines that are printed; called by several threads."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._is_terminal = output.isatty()
        self._lock = threading.Lock()
        self._started_s: dict[Step, float] = {}
        self._reported_s = time.monotonic()

    def started(self, step: Step) -> None:
        """Note the start of a step."""
        with self._lock:
            self._started_s[step] = time.monotonic()

    def ended(self, step: Step, *, failed: bool) -> None:
        """Print the line of a step that has ended."""
        with self._lock:
            self._print(self._started_s.pop(step), f"{'FAILED: ' if failed else ''}{step.title}")

    def refresh(self) -> None:
        """Show the running steps: in the last line of a terminal, or once in `REPORT_S` in a line of a log."""
        with self._lock:
            if not self._started_s:
                return
            if self._is_terminal:
                titles = "; ".join(step.title for step in self._started_s)
                text = f"{_seconds(min(self._started_s.values()))}  ... {titles}"
                self._output.write(CLEAR_LINE + text[: shutil.get_terminal_size().columns - 1])
                self._output.flush()
            elif time.monotonic() - self._reported_s >= REPORT_S:
                for step, started_s in self._started_s.items():
                    self._print(started_s, f"... {step.title}")
                self._reported_s = time.monotonic()

    def _print(self, started_s: float, text: str) -> None:
        self._output.write(f"{CLEAR_LINE if self._is_terminal else ''}{_seconds(started_s)}  {text}\n")
        self._output.flush()


def _seconds(started_s: float) -> str:
    return f"{time.monotonic() - started_s:7.1f} s"
