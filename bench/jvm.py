"""The peer in a JVM: Kafka's own classes, called by `java/Peer.java`, with all optimizations of Java.

A `HotPeer` is one JVM: it runs until the compiler has done its work, and then times single runs by the JVM's own clock, in turn with
Steward's. `whole_command` starts a new JVM for one run and measures everything. There are no brokers.
"""

import contextlib
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from lab.downloads.jars import JAVA_FOLDER, NEWEST_KAFKA_VERSION, java_with_compiler, kafka_jars
from lab.errors import LabError
from lab.processes.folder import lab_folder

SOURCE = Path(__file__).parent / "java" / "Peer.java"

HEAP = "3g"
"""A million partitions as Java's lists take 200 MB; with this heap, garbage collection does not affect the figure."""

WARM_RUNS = 20
"""Runs before the first measured one: 20 or more, so that the compiler has done its work."""

WARM_S = 3.0
"""Short runs are warmed for this long as well: the compiler needs calls and time."""

COMPILE_TIMEOUT_S = 600
"""Two seconds on an idle machine for a peer, twenty for one that is compiled from its whole source."""

END_TIMEOUT_S = 30
"""The peer ends with its input; a JVM needs a fraction of a second for that."""


class HotPeer:
    """One JVM that does one kind of work; `run()` is a warmed run, in seconds by the JVM's clock.

    `repeat` is how many times a run does it; the seconds are those of one.
    """

    def __init__(self, process: subprocess.Popen[str], repeat: int = 1) -> None:
        self._process = process
        self._repeat = repeat
        self.checksum = int(self._answer())

    def run(self) -> float:
        """Do the work and return its seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{self._repeat}\n")
        self._process.stdin.flush()
        return int(self._answer()) / 1e9

    def warm(self, *, quick: bool = False) -> None:
        """Run until the JVM has compiled the code."""
        started, runs = time.monotonic(), 0
        while runs < WARM_RUNS or (not quick and time.monotonic() - started < WARM_S):
            self.run()
            runs += 1

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the peer ended; its standard error is above"
        return line.strip()


class Jvm:
    """The compiled peer."""

    def __init__(self, classes: Path) -> None:
        self._classes = classes

    def command(self, *work: str) -> list[str]:
        """Return the command line of one JVM for one kind of work: Java's defaults except for the size of the heap."""
        log4j = (JAVA_FOLDER / "log4j-tools.properties").resolve().as_uri()
        class_path = f"{self._classes}:{kafka_jars() / '*'}"
        heap = (f"-Xmx{HEAP}", f"-Xms{HEAP}")
        return [java_with_compiler(), *heap, f"-Dlog4j.configuration={log4j}", "-cp", class_path, "Peer", *work]

    @contextlib.contextmanager
    def hot(self, *work: str, repeat: int = 1, quick: bool = False) -> Iterator[HotPeer]:
        """Yield a warmed JVM for this work."""
        with subprocess.Popen(
            self.command(*work), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        ) as process:
            try:
                peer = HotPeer(process, repeat)
                peer.warm(quick=quick)
                yield peer
                assert process.stdin is not None
                process.stdin.close()
                process.wait(END_TIMEOUT_S)
            finally:
                process.kill()


@contextlib.contextmanager
def compiled_peer() -> Iterator[Jvm]:
    """Compile the peer and yield it; the classes are deleted with the block."""
    with lab_folder() as folder:
        compile_java([SOURCE], folder, class_path_of(kafka_jars()))
        yield Jvm(folder)


@contextlib.contextmanager
def newest_peer(
    source: Path, classes: Path, *arguments: str, heap: str, repeat: int = 1, quick: bool | None = None
) -> Iterator[HotPeer]:
    """Compile a peer for Kafka's newest version into `classes` and yield it, warmed unless `quick` is None."""
    jars = kafka_jars(NEWEST_KAFKA_VERSION)
    compile_java([source], classes, class_path_of(jars))
    log4j = (JAVA_FOLDER / "log4j-tools.properties").resolve().as_uri()
    options = (f"-Xmx{heap}", f"-Dlog4j.configuration={log4j}", "-cp", f"{classes}:{jars / '*'}")
    command = [java_with_compiler(), *options, source.stem, *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        try:
            peer = HotPeer(process, repeat)
            if quick is not None:
                peer.warm(quick=quick)
            yield peer
        finally:
            process.kill()


def compile_java(sources: Iterable[Path], folder: Path, class_path: str) -> None:
    """Compile sources into a folder; raises `LabError` with the compiler's output."""
    listed = folder / "sources"
    listed.write_text("\n".join(map(str, sources)), "utf-8")
    compiler = (java_with_compiler(), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn")
    command = [*compiler, "-d", str(folder), "-cp", class_path, f"@{listed}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S)
    if done.returncode:
        raise LabError(f"a benchmark's peer does not compile:\n{done.stderr[-4000:]}")


def class_path_of(jars: Path) -> str:
    """Return all jars of a folder as a class path: the compiler's module accepts no wildcard."""
    return ":".join(sorted(map(str, jars.glob("*.jar"))))


def whole_command(command: list[str]) -> tuple[float, float]:
    """Run a command that does its work once and prints the nanoseconds of that: seconds of (the whole command, the work)."""
    started = time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    return time.perf_counter() - started, int(done.stdout.split()[-1]) / 1e9
