"""Cruise Control's optimizer on the cluster of the planner's benchmark: `java/CruiseControlPeer.java`, in a JVM of its own.

No package registry has Cruise Control, so `CRUISE_CONTROL_SOURCE` names a checkout of its source, which is compiled with the dependencies
of its build; without a checkout this peer is left out. The goals are those that Steward's planner optimizes: racks, disk, bytes in, bytes
out and leaders, each in the fast mode (Cruise Control's default), which allows half a second for each broker and goal. Its sampling and its
executor are not measured.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.jvm import class_path_of, compile_java
from lab.downloads.cache import cached
from lab.downloads.jars import java_with_compiler
from lab.downloads.maven import fetch_jars
from lab.errors import LabError
from lab.processes.folder import lab_folder
from move_planner import MeasuredRequest

SOURCE_VARIABLE = "CRUISE_CONTROL_SOURCE"
MODULES = ("cruise-control-core", "cruise-control-metrics-reporter", "cruise-control")

PEER = Path(__file__).parent / "java" / "CruiseControlPeer.java"
POM = Path(__file__).parent / "java" / "cruise-control-pom.xml"
LAYOUT = 1
"""Incremented when the list of dependencies changes."""

HEAP = "12g"
"""1.3 M replicas with their loads take 4 GB; with this heap, garbage collection does not affect the figure."""
PLAN_TIMEOUT_S = 7200
"""Several times its published figure for 270 brokers."""
TOPIC_PARTITIONS = 41
"""As many as in the cluster of its published figure: 1.3 M replicas of 10,500 topics."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Its result: time without reading the cluster, bytes that its proposals copy, largest distance of any broker from each mean."""

    seconds: float
    copied_bytes: float
    farthest: Mapping[str, float]
    unreached: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CruiseControl:
    """The compiled optimizer."""

    class_path: str
    folder: Path

    def plan(self, question: MeasuredRequest, racks: int, tolerance: float) -> Answer:
        """Run it once, in a JVM of its own."""
        cluster = self.folder / "cluster"
        cluster.write_bytes(encoded(question))
        replicas = question.replicas.shape[1]
        numbers = [str(number) for number in (len(question.brokers), racks, replicas, TOPIC_PARTITIONS, tolerance)]
        command = [java_with_compiler(), f"-Xmx{HEAP}", "-cp", self.class_path, PEER.stem, str(cluster), *numbers]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PLAN_TIMEOUT_S)
        if done.returncode:
            raise LabError(f"Cruise Control's optimizer ended with {done.returncode}:\n{done.stderr[-4000:]}")
        return answer_of(done.stdout)


@contextlib.contextmanager
def compiled_cruise_control() -> Iterator[CruiseControl | None]:
    """Compile the named checkout and yield its optimizer, or None when no checkout is named; the classes are deleted with the block."""
    named = os.environ.get(SOURCE_VARIABLE)
    if not named:
        yield None
        return
    sources = [file for module in MODULES for file in (Path(named) / module / "src/main/java").rglob("*.java")]
    if not sources:
        raise LabError(
            f"{SOURCE_VARIABLE}={named} is no checkout of Cruise Control: no Java below {MODULES[0]}/src/main/java"
        )
    jars = class_path_of(cached(f"cruise-control-{LAYOUT}", _fetch))
    with lab_folder() as folder:
        compile_java([*sources, PEER], folder, jars)
        yield CruiseControl(f"{folder}:{jars}", folder)


def _fetch(folder: Path) -> None:
    fetch_jars(POM, folder, what="Cruise Control's dependencies", among="kafka_2.13-*.jar")


def encoded(question: MeasuredRequest) -> bytes:
    """Return the cluster in the peer's input format: its units are MB and KB/s."""
    by_name = {resource.name: resource for resource in question.resources}
    rows = np.empty(
        len(question.replicas), dtype=[("replicas", ">i4", (question.replicas.shape[1],)), ("loads", ">f8", (3,))]
    )
    rows["replicas"] = question.replicas
    loads = (
        by_name["disk"].replica_load / 1e6,
        by_name["bytes in"].replica_load / 1e3,
        by_name["bytes out"].leader_load / 1e3,
    )
    rows["loads"] = np.stack(loads, axis=1)
    return rows.tobytes()


def answer_of(output: str) -> Answer:
    """Parse the lines of its output."""
    words = [line.split(maxsplit=1) for line in output.splitlines()]
    figures = {name: value for name, value in words if name != "unreached"}
    seconds, copied = float(figures.pop("nanoseconds")) / 1e9, float(figures.pop("megabytes")) * 1e6
    unreached = tuple(value for name, value in words if name == "unreached")
    return Answer(seconds, copied, {name: float(value) for name, value in figures.items()}, unreached)
