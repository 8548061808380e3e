"""The test suites of librdkafka and franz-go against one broker that is a process: a light broker, or Kafka 4.3 as the judge.

    python -m lab.peers.client_suites librdkafka light          all tests that need a broker
    python -m lab.peers.client_suites franz-go kafka TestGroupETL

Both are built from their packages: librdkafka's tests are part of the crate `rdkafka-sys`, franz-go's of its Go module.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from lab.downloads.cache import cached
from lab.downloads.go_build import module_sources
from lab.errors import LabError, find_tool
from lab.peers.client_tests import Judged, Outcome, Status
from lab.peers.kraft import kafka_4_command, kraft_cluster
from lab.peers.light_broker import light_broker
from lab.processes.commands import run_to_end
from lab.processes.folder import lab_folder
from lab.processes.process import Process

CRATE = Path(__file__).parent / "librdkafka"
CRATE_VERSION = "4.10.0"
"""As in `lab/peers/librdkafka/Cargo.toml`; it has librdkafka 2.12.1."""
FRANZ_GO = "github.com/twmb/franz-go@v1.22.3"

BUILD_TIMEOUT_S = 3_600
"""Five minutes for librdkafka on two cores."""
TIMEOUT_S = 3_600
"""librdkafka's tests take a quarter of an hour."""

SETTINGS = {
    "num.partitions": "4",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "allow.everyone.if.no.acl.found": "true",
}
"""As the brokers of librdkafka's own runs have them: its tests add ACLs that deny everybody something."""

BROKER_VERSION = "4.0.0"
"""The version by which librdkafka's tests choose what they expect."""
WITHOUT_GROUP_CONFIGS = "3.9.0"
"""The same for `0081_admin`, which else changes configs of groups (KIP-848)."""
ADMIN = "0081"

TOOLS = {
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
}
"""Kafka's tools that librdkafka's tests call."""

SLOW_MACHINE = 5
"""Factor of the limits of librdkafka's tests, which are for a machine of their own."""

FRANZ_GO_RECORDS = "50000"
"""Records of its group tests; 500,000 by default, which take a quarter of an hour."""

_RESULT = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
_STATUSES = {"PASS": Status.PASSED, "FAIL": Status.FAILED, "SKIP": Status.SKIPPED}


class Suite(StrEnum):
    """A client's tests."""

    LIBRDKAFKA = "librdkafka"
    FRANZ_GO = "franz-go"


Outcomes = dict[str, Outcome]
"""By the name of the test."""


def run_suite(suite: Suite, address: str, folder: Path, selected: str = "", skipped: Sequence[str] = ()) -> Outcomes:
    """Run the tests that `selected` selects in the suite's own way, all by default; `folder` gets the logs.

    Raises `LabError` when the tests do not run to their end.
    """
    return _RUN[suite](address, folder, selected, skipped)


@contextlib.contextmanager
def judged_broker(judged: Judged) -> Iterator[str]:
    """Yield the address of a running broker."""
    if judged is Judged.LIGHT:
        with light_broker(SETTINGS) as broker:
            yield broker.bootstrap
        return
    # The controller is in the same process and uses the same authorizer, so that requests between them need a user's rights.
    with kraft_cluster((1,), settings={**SETTINGS, "super.users": "User:ANONYMOUS"}) as cluster:
        yield cluster.bootstrap()


def _run_librdkafka(address: str, folder: Path, selected: str, skipped: Sequence[str]) -> Outcomes:
    """Run the tests; those of the admin client apart, as for a broker without configs of groups."""
    others = _librdkafka_part(address, folder / "others", selected, [*skipped, ADMIN], BROKER_VERSION)
    if ADMIN in skipped or (selected and ADMIN not in selected):
        return others
    admin = _librdkafka_part(address, folder / "admin", ADMIN, (), WITHOUT_GROUP_CONFIGS)
    return {**others, **{name: outcome for name, outcome in admin.items() if ADMIN in name}}


def _librdkafka_part(address: str, folder: Path, selected: str, skipped: Sequence[str], version: str) -> Outcomes:
    folder.mkdir()
    tests = _built_librdkafka() / "librdkafka" / "tests"
    report = folder / "report.json"
    configuration = folder / "test.conf"
    configuration.write_text(f"bootstrap.servers={address}\ntest.timeout.multiplier={SLOW_MACHINE}\n", encoding="utf-8")
    environment = {
        "LD_LIBRARY_PATH": f"{tests.parent / 'src'}:{tests.parent / 'src-cpp'}",
        "RDKAFKA_TEST_CONF": str(configuration),
        "TEST_REPORT": str(report),
        "TEST_KAFKA_VERSION": version,
        "TEST_LEVEL": "1",
        "TESTS": selected,
        "TESTS_SKIP": ",".join(skipped),
        "KAFKA_PATH": str(_tools(folder)),
        "BROKERS": address,
    }
    # One at a time; fewer iterations; without tests that need no broker, have known issues or break connections below librdkafka.
    command = [str(tests / "test-runner"), "-p1", "-Q", "-L", "-K", "-E", "-r"]
    text = _run(Process("librdkafka", command, folder, environment=environment))
    if not report.is_file():
        raise LabError(f"librdkafka's tests wrote no report\n{text[-2_000:]}")
    return read_librdkafka_report(report.read_text(encoding="utf-8"))


def read_librdkafka_report(report: str) -> Outcomes:
    """Return how the tests of a report of librdkafka's runner ended; it lists those that were not run as well.

    >>> read_librdkafka_report('{"tests": {"0001_multiobj": {"state": "PASSED", "extra": ""}}}')
    {'0001_multiobj': Outcome(status=<Status.PASSED: 'passed'>, text='')}
    """
    statuses = {"PASSED": Status.PASSED, "SKIPPED": Status.SKIPPED}
    tests: Mapping[str, Mapping[str, Any]] = json.loads(report)["tests"]
    return {
        name: Outcome(statuses.get(test["state"], Status.FAILED), test["extra"])
        for name, test in tests.items()
        if name != "<MAIN>"
    }


def _tools(folder: Path) -> Path:
    """Return a folder with Kafka's tools as its distribution has them."""
    scripts = folder / "kafka" / "bin"
    scripts.mkdir(parents=True)
    for name, main_class in TOOLS.items():
        command = shlex.join(kafka_4_command(main_class, heap="64m", log4j="log4j-tools.properties"))
        script = scripts / name
        script.write_text(f'#!/bin/sh\nunset LD_LIBRARY_PATH\nexec {command} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return scripts.parent


def _built_librdkafka() -> Path:
    """Return the folder of the crate with the built tests."""

    def build(folder: Path) -> None:
        cargo = find_tool("cargo", purpose="downloads librdkafka's sources", install="apt-get install --yes cargo")
        find_tool("make", purpose="builds librdkafka", install="apt-get install --yes build-essential")
        shutil.copytree(CRATE, folder / "crate")
        run_to_end([cargo, "vendor", "--quiet", "vendor"], folder=folder / "crate", timeout_s=BUILD_TIMEOUT_S)
        sources = folder / "librdkafka"
        shutil.move(folder / "crate" / "vendor" / "rdkafka-sys" / "librdkafka", sources)
        shutil.rmtree(folder / "crate")
        configure = ["bash", "./configure", "--disable-gssapi", "--disable-curl"]
        for command, where in (
            (configure, sources),
            (["make", "-j2", "libs"], sources),
            (["make", "-j2", "build"], sources / "tests"),
        ):
            run_to_end(command, folder=where, timeout_s=BUILD_TIMEOUT_S)

    return cached(f"librdkafka-tests-{CRATE_VERSION}-1", build)


def _run_franz_go(address: str, folder: Path, selected: str, skipped: Sequence[str]) -> Outcomes:
    environment = {"KGO_SEEDS": address, "KGO_TEST_RF": "1", "KGO_TEST_RECORDS": FRANZ_GO_RECORDS}
    command = [
        str(_built_franz_go() / "kgo.test"),
        "-test.v",
        f"-test.run={selected or '.'}",
        *([f"-test.skip={'|'.join(skipped)}"] if skipped else []),
        f"-test.timeout={TIMEOUT_S}s",
    ]
    found = read_go_tests(_run(Process("franz-go", command, folder, environment=environment)))
    if not found:
        raise LabError("franz-go's tests printed no result")
    return found


def read_go_tests(text: str) -> Outcomes:
    r"""Return how the tests ended that `go test -v` printed; each subtest is a test.

    >>> read_go_tests("--- FAIL: TestGroup (1.00s)\n    --- SKIP: TestGroup/848 (0.00s)")["TestGroup/848"].status
    <Status.SKIPPED: 'skipped'>
    """
    return {name: Outcome(_STATUSES[result]) for result, name in _RESULT.findall(text)}


def _built_franz_go() -> Path:
    """Return the folder of the program with franz-go's tests."""

    def build(folder: Path) -> None:
        sources = module_sources(FRANZ_GO) / "pkg" / "kgo"
        go = find_tool("go", purpose="builds franz-go's tests", install="apt-get install --yes golang-go")
        environment = {**os.environ, "GOTOOLCHAIN": "auto", "GOWORK": "off"}
        command: list[str | Path] = [go, "test", "-mod=readonly", "-c", "-o", folder / "kgo.test", "."]
        run_to_end(command, folder=sources, timeout_s=BUILD_TIMEOUT_S, environment=environment)

    return cached(f"franz-go-tests-{FRANZ_GO.partition('@')[2]}-1", build)


def _run(process: Process) -> str:
    """Run a program to its end, whatever its status is, and return what it printed."""
    process.launch()
    try:
        process.wait(timeout_s=TIMEOUT_S)
    finally:
        process.kill()
    return process.log_text()


_RUN: Mapping[Suite, Callable[[str, Path, str, Sequence[str]], Outcomes]] = {
    Suite.LIBRDKAFKA: _run_librdkafka,
    Suite.FRANZ_GO: _run_franz_go,
}


def main(arguments: Sequence[str]) -> None:
    """Run a suite and print how each test ended, one line of JSON a test."""
    suite, judged, *selected = arguments
    with lab_folder() as folder, judged_broker(Judged(judged)) as address:
        for name, outcome in sorted(run_suite(Suite(suite), address, folder, *selected[:1]).items()):
            sys.stdout.write(f"{json.dumps({'test': name, 'status': outcome.status, 'text': outcome.text})}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
