"""The command line of a small JVM.

Serial collector, first compiler tier only, a fixed small heap, and classes that are archived: a broker fits in 130-175 MB and starts
fast on two cores.
"""

from __future__ import annotations

from pathlib import Path

from lab.class_archives import archive_options
from lab.jars import JAVA_FOLDER, KAFKA_VERSION, java, kafka_jars


def java_command(
    main_class: str,
    *arguments: str,
    heap: str,
    version: str = KAFKA_VERSION,
    log4j: str = "log4j.properties",
    properties: dict[str, str] | None = None,
) -> list[str]:
    """Return the command that runs `main_class` from Kafka's jars; `heap` as for -Xmx, `properties` become -D options."""
    options = [f"-D{name}={value}" for name, value in (properties or {}).items()]
    return [
        java(),
        f"-Xmx{heap}",
        f"-Xms{heap}",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:-UsePerfData",
        *archive_options(version),
        f"-Dlog4j.configuration={(JAVA_FOLDER / log4j).resolve().as_uri()}",
        *options,
        "-cp",
        str(kafka_jars(version) / "*"),
        main_class,
        *arguments,
    ]


def write_properties(path: Path, settings: dict[str, str]) -> Path:
    """Write a Java properties file, one setting a line in the given order, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
    return path
