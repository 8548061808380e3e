"""The command line of a small JVM.

Serial collector, first compiler tier only, a fixed small heap, and classes that are archived: a broker fits in 130-175 MB and starts
fast on two cores.

A program of the tests is one source file. It is compiled once for each content, and the classes stay in the user's cache: Java can run
a source file too, but compiles it at each start, which takes ten times as long as the start.
"""

from __future__ import annotations

import hashlib
import subprocess
from functools import partial
from pathlib import Path

from lab.downloads.cache import cached
from lab.downloads.class_archives import archive_name, archive_options
from lab.downloads.jars import JAVA_FOLDER, KAFKA_VERSION, java, kafka_jars
from lab.errors import LabError

SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
"""Options of each JVM, the compiler's too."""

COMPILE_TIMEOUT_S = 180.0
"""Some hundred times what one file takes on a machine that is not busy."""


def java_command(
    main_class: str,
    *arguments: str,
    heap: str,
    version: str = KAFKA_VERSION,
    log4j: str = "log4j.properties",
    properties: dict[str, str] | None = None,
    is_small: bool = True,
) -> list[str]:
    """Return the command that runs a program with Kafka's jars; without `is_small`, with Java's own collector and compilers.

    `main_class` is a class of these jars, or the path of a source file (`.../Judge.java`); `heap` as for -Xmx, `properties` become -D
    options. Raises `LabError` for a source file that javac refuses.
    """
    options = [f"-D{name}={value}" for name, value in (properties or {}).items()]
    classes = str(kafka_jars(version) / "*")
    if main_class.endswith(".java"):
        source = Path(main_class)
        classes, main_class = f"{classes}:{compiled(source, kafka_jars(version), version)}", source.stem
    return [
        java(),
        f"-Xmx{heap}",
        f"-Xms{heap}",
        *((*SMALL, *archive_options(version)) if is_small else ()),
        f"-Dlog4j.configuration={(JAVA_FOLDER / log4j).resolve().as_uri()}",
        *options,
        "-cp",
        classes,
        main_class,
        *arguments,
    ]


def compiled(source: Path, jars: Path, version: str) -> Path:
    """Return the folder with the classes of a source file; the first call for a content, a version of Kafka and a Java compiles it.

    `jars` is the folder of what it is compiled with.
    """
    content = source.read_bytes() + archive_name(version).encode()
    return cached(
        f"java-{source.stem}-{hashlib.sha256(content).hexdigest()[:12]}",
        partial(compile_source, source, jars),
    )


def compile_source(source: Path, jars: Path, folder: Path) -> None:
    """Compile a source file with the jars of a folder into another folder. Raises `LabError` when javac refuses it."""
    compiler = str(Path(java()).resolve().with_name("javac"))
    small = [f"-J{option}" for option in SMALL]
    command = [compiler, *small, "-d", str(folder), "-cp", str(jars / "*"), str(source)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S)
    if done.returncode:
        raise LabError(f"javac refuses {source}: {done.stderr.strip()}")


def write_properties(path: Path, settings: dict[str, str]) -> Path:
    """Write a Java properties file, one setting a line in the given order, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
    return path
