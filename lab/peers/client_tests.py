"""Kafka's own client tests (`kafka-clients-integration-tests`) against one broker that is a process: a light broker, or Kafka 4.3 as the judge.

    python -m lab.peers.client_tests light ProducerCompressionTest
    python -m lab.peers.client_tests kafka 'PlaintextConsumerCommitTest#testClassic.*'

`OneBrokerExtension.java` replaces Kafka's extension, which starts brokers in the JVM of the tests. A case for several brokers gets one, and
its topics get one replica.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from lab.downloads.cache import cached
from lab.downloads.class_archives import archive_name
from lab.downloads.jars import JAVA_FOLDER, NEWEST_KAFKA_VERSION, java_with_compiler
from lab.downloads.maven import fetch_jars
from lab.errors import LabError
from lab.peers.java_process import SMALL, compile_source
from lab.peers.kraft import format_as_kafka, kafka_4_command, new_id
from lab.peers.steward import steward_command, steward_environment
from lab.processes.folder import lab_folder
from lab.processes.process import Process

EXTENSION = JAVA_FOLDER / "OneBrokerExtension.java"

POM = JAVA_FOLDER / "client-tests-pom.xml"

SERVICE = Path("META-INF") / "services" / "org.junit.jupiter.api.extension.Extension"
"""File by which JUnit finds an extension."""

PACKAGE = "org.apache.kafka"

HEAP = "256m"

CASE_TIMEOUT_S = 90
"""The longest case that passes takes 40 s on a busy machine; Kafka's own limit is five minutes."""

FIRST_FAILURE_LINES = 12
"""Lines of a failure that are kept: the exception, and where it was thrown."""


class Judged(StrEnum):
    """What the tests run against."""

    LIGHT = "light"
    KAFKA = "kafka"


class Status(StrEnum):
    """How a case ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a case ended, and why when it did not pass: the beginning of its stack trace."""

    status: Status
    text: str = ""


class Case(NamedTuple):
    """A method of a class; it may run several times, with other settings of the broker."""

    class_name: str
    method: str


Outcomes = dict[Case, Outcome]
"""A case with several invocations passes when each does."""


def run_client_tests(judged: Judged, selected: Sequence[str], folder: Path, *, timeout_s: float) -> Outcomes:
    """Run the cases selected as `CLASS` or `CLASS#PATTERN` of methods, and return how each ended; `folder` gets the logs.

    Raises `LabError` when the tests do not run to their end.
    """
    process = Process("client-tests", _command(judged, selected, folder), folder, environment=steward_environment())
    process.launch()
    try:
        process.wait(timeout_s=timeout_s)
    finally:
        process.kill()
    report = folder / "TEST-junit-jupiter.xml"
    if not report.is_file():
        raise LabError(f"Kafka's client tests wrote no report\n{process.log_tail()}")
    return read_report(report.read_text(encoding="utf-8"))


def _command(judged: Judged, selected: Sequence[str], folder: Path) -> list[str]:
    jars = client_test_jars()
    patterns = [
        rf"{re.escape(PACKAGE)}\..*\.{name}[.#]{methods or '.*'}"
        for name, _, methods in (name_filter.partition("#") for name_filter in selected)
    ]
    return [
        java_with_compiler(), f"-Xmx{HEAP}", *SMALL,
        f"-Dlog4j.configuration={(JAVA_FOLDER / 'log4j-tools.properties').resolve().as_uri()}",
        f"-Dsteward.cluster.folder={folder}",
        "-Dsteward.broker.command=" + "\n".join(_broker_command(judged)),
        "-Djunit.jupiter.extensions.autodetection.enabled=true",
        f"-Djunit.jupiter.extensions.autodetection.exclude={PACKAGE}.*",
        f"-Djunit.jupiter.execution.timeout.testtemplate.method.default={CASE_TIMEOUT_S} s",
        "-cp", f"{_extension(jars)}:{jars}/*",
        "org.junit.platform.console.ConsoleLauncher", "execute", "--details=flat", "--disable-banner",
        f"--scan-classpath={jars / f'kafka-clients-integration-tests-{NEWEST_KAFKA_VERSION}-test.jar'}",
        "--include-classname=.*",
        *(f"--include-methodname={pattern}" for pattern in patterns),
        f"--reports-dir={folder}",
    ]  # fmt: skip


def _broker_command(judged: Judged) -> list[str]:
    """Return the command of a broker without its properties file."""
    if judged is Judged.KAFKA:
        return [sys.executable, "-m", "lab.peers.client_tests", "start-kafka"]
    return [*steward_command("broker"), "--standalone"]


def client_test_jars() -> Path:
    """Return the folder with the tests and what runs them; the first call downloads it."""
    return cached(
        f"client-tests-{NEWEST_KAFKA_VERSION}-1",
        lambda folder: fetch_jars(
            POM,
            folder,
            what="Kafka's client tests",
            among="kafka-clients-integration-tests-*.jar",
            **{"kafka.version": NEWEST_KAFKA_VERSION},
        ),
    )


def _extension(jars: Path) -> Path:
    """Return the folder with the compiled extension and the file by which JUnit finds it."""

    def build(folder: Path) -> None:
        compile_source(EXTENSION, jars, folder)
        (folder / SERVICE).parent.mkdir(parents=True)
        (folder / SERVICE).write_text(f"{EXTENSION.stem}\n", encoding="utf-8")

    content = EXTENSION.read_bytes() + f"{jars.name} {archive_name(NEWEST_KAFKA_VERSION)}".encode()
    return cached(f"java-{EXTENSION.stem}-{hashlib.sha256(content).hexdigest()[:12]}", build)


def read_report(report: str) -> Outcomes:
    """Return how each case of a report of JUnit ended.

    >>> read_report('<testsuite><testcase classname="a.b.C" name="works(ClusterInstance)[1]"/></testsuite>')
    {Case(class_name='C', method='works'): Outcome(status=<Status.PASSED: 'passed'>, text='')}
    """
    found: Outcomes = {}
    for case in ET.fromstring(report).iter("testcase"):  # noqa: S314 - written by a process of the lab
        name = Case(case.attrib["classname"].rpartition(".")[2], case.attrib["name"].partition("(")[0])
        outcome = _outcome(case)
        if outcome.status is not Status.PASSED or name not in found:
            found[name] = outcome
    return found


def _outcome(case: ET.Element) -> Outcome:
    for tag, status in (("failure", Status.FAILED), ("error", Status.FAILED), ("skipped", Status.SKIPPED)):
        element = case.find(tag)
        if element is not None:
            text = element.text or element.get("message") or ""
            return Outcome(status, "\n".join(text.strip().splitlines()[:FIRST_FAILURE_LINES]))
    return Outcome(Status.PASSED)


def become_kafka(properties: Path) -> None:
    """Format the storage that a properties file names, if it is not, and become Kafka. The variable CLUSTER_FEATURES has `NAME=LEVEL`."""
    if not (properties.parent / "formatted").exists():
        format_as_kafka(
            0,
            new_id(),
            properties,
            *(f"--feature={feature}" for feature in os.environ.get("CLUSTER_FEATURES", "").split()),
        )
        (properties.parent / "formatted").touch()
    command = kafka_4_command("kafka.Kafka", str(properties), heap=HEAP)
    os.execv(command[0], command)  # noqa: S606 - the signals to this process are Kafka's


def main(arguments: Sequence[str]) -> None:
    """Run selected cases and print how each ended, one line of JSON a case, or start Kafka for the extension."""
    if arguments[0] == "start-kafka":
        become_kafka(Path(arguments[1]))
    with lab_folder() as folder:
        outcomes = run_client_tests(Judged(arguments[0]), arguments[1:], folder, timeout_s=4 * 3600)
        for (name, method), outcome in sorted(outcomes.items()):
            line = {"class": name, "case": method, "status": outcome.status, "text": outcome.text}
            sys.stdout.write(f"{json.dumps(line)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
