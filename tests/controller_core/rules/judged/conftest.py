"""Kafka as the reference: one JVM of each version for all tests of this folder, which returns the results of Kafka's own classes."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lab.downloads.jars import KAFKA_VERSION, NEWEST_KAFKA_VERSION, java
from lab.errors import Missing
from lab.peers.java_process import java_command

JAVA = Path(__file__).parent / "java"
"""Programs that are run from source, which needs a JDK."""

ENDING_S = 10
"""Time limit in seconds: the JVM ends a fraction of a second after its input."""


class Judge:
    """Connection to a program of `JAVA`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, what: str, cases: Sequence[dict[str, Any]]) -> list[Any]:
        """Return Kafka's result for each case; an error is {"refused": its message, "of_value": a ConfigException or not}."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"ask": what, "cases": list(cases)}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the judge ended; its standard error is above"
        answers: list[Any] = json.loads(line)
        assert len(cases) == len(answers)
        return answers


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """Kafka 3.9.2, in ZooKeeper mode; mark the test `java`."""
    yield from started("ClusterJudge.java", KAFKA_VERSION)


@pytest.fixture(scope="session")
def kraft_judge() -> Iterator[Judge]:
    """Kafka 4.3.1, in KRaft mode; mark the test `java`."""
    yield from started("KraftJudge.java", NEWEST_KAFKA_VERSION)


def started(source: str, version: str) -> Iterator[Judge]:
    """Run a program with the jars of a version of Kafka, and end it afterwards."""
    if not Path(java()).resolve().with_name("javac").is_file():
        raise Missing("a JDK (compiles the judge)", "apt-get install --yes default-jdk-headless")
    command = java_command(str(JAVA / source), heap="256m", version=version, log4j="log4j-tools.properties")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        try:
            yield Judge(process)
            assert process.stdin is not None
            process.stdin.close()
            process.wait(ENDING_S)
        finally:
            process.kill()
