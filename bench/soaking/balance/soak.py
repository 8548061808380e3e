"""`make soak ARGS="--analytics"`: faults of the balance analytics, each followed by a run whose results must be those without faults."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from balance_analytics.jobs.session import session
from bench.soaking.balance.driver import Driven, drive
from bench.soaking.balance.executors import executor_settings, kill_in_each_stage
from bench.soaking.balance.kills import kill_everywhere
from bench.soaking.balance.refusals import list_late, refuse_everywhere
from bench.soaking.balance.samples import SECOND_RUN_MS
from bench.soaking.balance.scenario import FACTS, FOLLOWING, OTHERS, Prepared, Scenario, prepared
from bench.soaking.balance.store import (
    DISK,
    HALT,
    OBJECTS,
    TIMEOUT,
    UNAVAILABLE,
    FaultyStore,
    Settings,
    compiled,
    settings,
)
from lab.peers.cluster import kafka_cluster
from lab.processes.folder import lab_folder

JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def show(line: str) -> None:
    """Print a line with the time, at once."""
    print(f"{time.strftime('%H:%M:%S', time.gmtime())} {line}", flush=True)


@dataclass(frozen=True)
class Lab:
    """A session of this process, and the settings of drivers in processes of their own."""

    spark: SparkSession
    driver_settings: Settings
    work: Path
    bootstrap: Callable[[], str]

    @contextmanager
    def prepare(
        self, title: str, scheme: str, stages: str, following: str, *, kafka: bool = False
    ) -> Iterator[Prepared]:
        """Prepare a scenario, with samples in a topic or in a folder."""
        scenario = Scenario(title, self.work, scheme, stages, following)
        if not kafka:
            with prepared(scenario) as ready:
                yield ready
            return
        bootstrap = self.bootstrap()
        topic = f"kafka://{bootstrap}/samples-{time.monotonic_ns()}"
        with prepared(replace(scenario, topic=topic), bootstrap) as ready:
            yield ready


Run = Callable[[Lab], int]
"""Runs a scenario, and returns the number of differences."""


def _kills(title: str, stages: str, following: str, *, kafka: bool = False) -> Run:
    def run(lab: Lab) -> int:
        with lab.prepare(title, DISK, stages, following, kafka=kafka) as ready:
            return kill_everywhere(ready, lab.driver_settings, show)

    return run


def _refusals(title: str, fault: str, scheme: str, *, kafka: bool = False) -> Run:
    def run(lab: Lab) -> int:
        with lab.prepare(title, scheme, FACTS, FOLLOWING, kafka=kafka) as ready:
            return refuse_everywhere(ready, FaultyStore(lab.spark), fault, show)

    return run


def _late(lab: Lab) -> int:
    with lab.prepare("facts in an object store", OBJECTS, FACTS, FOLLOWING) as ready:
        return list_late(ready, FaultyStore(lab.spark), show)


def _executors(lab: Lab) -> int:
    with lab.prepare("lost executors", DISK, FOLLOWING, FOLLOWING) as ready:
        return kill_in_each_stage(ready, lab.spark, show)


DRIVERS: Mapping[str, Run] = {
    "kills-folder": _kills("SIGKILL of the driver, samples in a folder", FACTS, FOLLOWING),
    "kills-kafka": _kills("SIGKILL of the driver, samples in Kafka", FACTS, FOLLOWING, kafka=True),
    "kills-others": _kills("SIGKILL of the driver in the stages after the facts", OTHERS, OTHERS),
    "halts-folder": _refusals("samples in a folder", HALT, DISK),
    "halts-kafka": _refusals("samples in Kafka", HALT, DISK, kafka=True),
    "halts-objects": _refusals("samples and facts in an object store", HALT, OBJECTS),
    "unavailable": _refusals("samples and facts in an object store", UNAVAILABLE, OBJECTS),
    "timeouts": _refusals("samples and facts in an object store", TIMEOUT, OBJECTS),
    "late-listing": _late,
}
"""Scenarios in which Spark runs in the process of the driver."""

EXECUTORS: Mapping[str, Run] = {"executors": _executors}
"""Scenarios with executors in processes of their own."""

NAMES = (*DRIVERS, *EXECUTORS)


def soak_analytics(names: Sequence[str]) -> int:
    """Run scenarios by name, all without names, and return the exit status."""
    chosen = names or NAMES
    differences = 0
    for scenarios, in_processes in ((DRIVERS, False), (EXECUTORS, True)):
        if wanted := [scenarios[name] for name in chosen if name in scenarios]:
            with _lab(in_processes=in_processes) as lab:
                differences += sum(run(lab) for run in wanted)
    show(f"{differences} differences")
    return 1 if differences else 0


@contextmanager
def _lab(*, in_processes: bool) -> Iterator[Lab]:
    with ExitStack() as stack:
        folder = stack.enter_context(lab_folder())
        clusters: list[str] = []

        def bootstrap() -> str:
            if not clusters:
                clusters.append(stack.enter_context(kafka_cluster((1,))).bootstrap())
            return clusters[0]

        jar = compiled(folder)
        own = settings(jar)
        if in_processes:
            os.environ["SPARK_HOME"] = pyspark.__path__[0]  # executors are started from there
            own |= executor_settings(own)
        spark = session(own)
        stack.callback(spark.stop)
        work = folder / "work"
        work.mkdir()
        yield Lab(spark, settings(jar) if in_processes else _trained(settings(jar), folder), work, bootstrap)


def _trained(plain: Settings, folder: Path) -> Settings:
    """Return settings with an archive of the classes that a driver loads, so that drivers start faster."""
    archive = folder / "driver.jsa"
    work = folder / "training"
    work.mkdir()
    with prepared(Scenario("training", work, DISK, FACTS, FOLLOWING)) as ready:
        dumping = {**plain, JAVA_OPTIONS: f"{plain[JAVA_OPTIONS]} -XX:ArchiveClassesAtExit={archive}"}
        run = ready.scenario
        drive(Driven(dumping, run.arguments(FACTS), SECOND_RUN_MS, str(run.folder), 0, str(work / "operations")))
    using = f"{plain[JAVA_OPTIONS]} -XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"
    return {**plain, JAVA_OPTIONS: using}
