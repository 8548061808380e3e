"""A Kafka Streams application for tests: `CountByKey.java`, a process of its own."""

from __future__ import annotations

from pathlib import Path

from lab.downloads.cache import cached
from lab.downloads.jars import JAVA_FOLDER, NEWEST_KAFKA_VERSION, java
from lab.downloads.maven import fetch_jars
from lab.peers.java_process import SMALL, compiled
from lab.processes.process import Process

SOURCE = JAVA_FOLDER / "CountByKey.java"
HEAP = "128m"


def count_by_key(folder: Path, bootstrap: str, application: str, protocol: str, source: str, target: str) -> Process:
    """Return a process, not started yet, that counts the records of each key of `source` and writes the counts to `target`.

    `protocol` is that of its group: classic or streams (KIP-1071).
    """
    jars = cached(f"kafka-streams-{NEWEST_KAFKA_VERSION}", _fetch)
    classes = compiled(SOURCE, jars, NEWEST_KAFKA_VERSION)
    arguments = (bootstrap, application, protocol, source, target, str(folder / f"{application}-state"))
    command = [java(), f"-Xmx{HEAP}", *SMALL, "-cp", f"{jars / '*'}:{classes}", SOURCE.stem, *arguments]
    return Process(application, command, folder)


def _fetch(folder: Path) -> None:
    fetch_jars(
        JAVA_FOLDER / "streams-pom.xml",
        folder,
        what="Kafka Streams",
        among="kafka-streams-*.jar",
        **{"kafka.version": NEWEST_KAFKA_VERSION},
    )
