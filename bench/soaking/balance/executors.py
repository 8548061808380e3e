"""SIGKILL of one of two executors in each stage of Spark's, one after the other until a run ends without.

Spark runs in its mode `local-cluster`: executors are processes of their own. What a lost executor had computed is computed once more by
another one, so that the results must be the same, counts of what was left out included.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from pyspark.sql import SparkSession

from bench.soaking.balance.results import read_results
from bench.soaking.balance.scenario import Prepared
from bench.soaking.balance.store import Settings

MASTER = "local-cluster[2,1,1024]"
"""Two executors with a core and 1 GiB each."""

SAME = ("spark.driver.extraJavaOptions", "spark.driver.extraClassPath")

CLASS = "org.apache.spark.executor.CoarseGrainedExecutorBackend"

MAX_STAGES = 300
"""A run has some dozens."""

POLL_S = 0.002

EXECUTORS_TIMEOUT_S = 120.0

Show = Callable[[str], None]


def executor_settings(own: Settings) -> dict[str, str]:
    """Return what differs in a session with executors, which have the same Java options and file systems as the driver."""
    same = {name.replace("driver", "executor"): own[name] for name in SAME}
    return {"spark.master": MASTER, "spark.executor.memory": "512m", **same}


def executors(spark: SparkSession) -> list[int]:
    """Return the processes of the session's executors: descendants of its JVM, the oldest first."""
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - the process is known there only
    assert gateway is not None
    children: dict[int, list[int]] = {}
    commands = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                commands[int(folder.name)] = (folder / "cmdline").read_bytes()
            except (OSError, ValueError):
                continue
            children.setdefault(parent, []).append(int(folder.name))
    found, waiting = [], [int(gateway.proc.pid)]
    while waiting:
        process = waiting.pop()
        waiting += children.get(process, [])
        if CLASS.encode() in commands.get(process, b"").split(b"\0"):
            found.append(process)
    return sorted(found)


def wait_for_executors(spark: SparkSession, count: int) -> None:
    """Wait until so many executors are registered with the driver. Raises TimeoutError."""
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - Python has no other way
    until = time.monotonic() + EXECUTORS_TIMEOUT_S
    while len(executors(spark)) < count or context.getExecutorMemoryStatus().size() < count + 1:
        if time.monotonic() > until:
            raise TimeoutError(f"{len(executors(spark))} of {count} executors are there")
        time.sleep(0.1)


class StageKiller:
    """Kills an executor when the n-th stage since `at` was called is seen running, counted from 1; `killed` is that stage's name."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.killed: str | None = None
        self.seen = 0

    @contextmanager
    def at(self, number: int) -> Iterator[None]:
        """Kill in the block."""
        self.killed, self.seen = None, 0
        over = Event()
        watcher = Thread(target=self._watch, args=(number, over), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _watch(self, number: int, over: Event) -> None:
        tracker = self._spark.sparkContext.statusTracker()
        before = set(tracker.getActiveStageIds())
        known: set[int] = set()
        while not over.is_set():
            for stage in sorted(set(tracker.getActiveStageIds()) - before - known):
                known.add(stage)
                self.seen += 1
                if self.seen == number:
                    info = tracker.getStageInfo(stage)
                    os.kill(executors(self._spark)[number % 2], signal.SIGKILL)
                    self.killed = f"stage {stage} {info.name if info is not None else ''}"
                    return
            time.sleep(POLL_S)


def kill_in_each_stage(prepared: Prepared, spark: SparkSession, show: Show) -> int:
    """Kill an executor in each stage of a run, and return the number of differences."""
    scenario = prepared.scenario
    killer = StageKiller(spark)
    kills = differences = 0
    for number in range(1, MAX_STAGES):
        scenario.reset()
        wait_for_executors(spark, 2)
        with killer.at(number):
            scenario.run(scenario.stages)
        wrong = read_results(scenario.folder).differences(prepared.expected, scenario.files)
        for error in wrong:
            show(f"  DIFFERENT: {error}, an executor killed in {killer.killed}")
        differences += len(wrong)
        if killer.killed is None:
            break
        kills += 1
    show(f"{scenario.title}: {kills} executors killed, one in each stage, {kills + 1} runs, {differences} differences")
    return differences
