"""A driver in a process of its own, which is killed with all that it started at its n-th file operation.

    python -m bench.soaking.balance.driver JSON

The JSON is `Driven`. The exit status is that of SIGKILL, or 0 when the run ended before its n-th operation, with the number of its
operations on stdout, or 1 when the run failed. The driver must lead a process group.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark import SparkContext

from balance_analytics.jobs.main import parser, run
from balance_analytics.jobs.problems import AnalyticsError
from balance_analytics.jobs.session import session
from bench.soaking.balance.store import KILL, FaultyStore

ROOT = Path(__file__).resolve().parents[3]

TIMEOUT_S = 300
"""Ten seconds on an idle machine."""


@dataclass(frozen=True, slots=True)
class Driven:
    """A run: the session's settings, the job's arguments and its time; it is killed at operation `at` below `root`, from 1 on."""

    settings: Mapping[str, str]
    arguments: Sequence[str]
    now_ms: int
    root: str
    at: int
    log: str
    """A file that lists all operations, one a line."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a driver ended: killed at `operation`, or by itself after `count` operations."""

    killed: bool
    operation: str
    count: int


class DriverError(Exception):
    """A driver failed by itself; the text is what it wrote."""


def drive(driven: Driven) -> Ended:
    """Start a driver and wait for its end. Raises DriverError."""
    command = [sys.executable, "-m", "bench.soaking.balance.driver", json.dumps(asdict(driven))]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, start_new_session=True
    )
    if done.returncode not in {0, -9}:
        raise DriverError(f"exit status {done.returncode}: {done.stderr[-3000:]}")
    operations = Path(driven.log).read_text().splitlines() if Path(driven.log).exists() else []
    return Ended(done.returncode == -9, operations[-1] if operations else "", len(operations))


def main(arguments: Sequence[str]) -> int:
    """Run, unless the run is killed."""
    asked = Driven(**json.loads(arguments[0]))
    faults = FaultyStore(session(asked.settings))
    faults.arm(Path(asked.root), KILL, asked.at, log=Path(asked.log))
    faults.count_python()
    try:
        run(parser().parse_args(asked.arguments), asked.now_ms)
    except AnalyticsError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _end_java() -> None:
    """End the JVM in order: at its end it may write an archive of its classes."""
    gateway = SparkContext._gateway  # noqa: SLF001 - the process is known there only
    assert gateway is not None
    gateway.shutdown()
    process = gateway.proc
    process.stdin.close()
    process.wait(TIMEOUT_S)


if __name__ == "__main__":
    status = main(sys.argv[1:])
    _end_java()
    sys.stdout.flush()
    os._exit(status)  # Spark's own clean-up would ask the JVM
