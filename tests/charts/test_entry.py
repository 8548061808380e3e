"""Entry point of the Kafka image: settings from a pod's environment. A fake `java` prints its arguments."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lab.release.commands import ROOT

ENTRY = ROOT / "images" / "kafka" / "steward-kafka"

BROKER = {
    "POD_NAME": "steward-broker-2",
    "POD_DOMAIN": "steward-brokers.kafka.svc.cluster.local",
    "ZOOKEEPER_CONNECT": "zookeeper:2181",
    "JAVA_HEAP": "384m",
}


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """A folder with a `java` that prints its process id and arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "java").write_text('#!/bin/sh\necho "$$ $*"\n', encoding="ascii")
    (folder / "java").chmod(0o755)
    return folder


def enter(bin_folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the entry as a container does."""
    path = f"{bin_folder}:{os.environ.get('PATH', os.defpath)}"
    return subprocess.run(
        ["sh", ENTRY, *arguments],
        env={"PATH": path, "TMPDIR": str(bin_folder.parent), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_broker_has_the_id_and_the_address_of_its_pod(bin_folder: Path) -> None:
    """broker.id is the pod's ordinal, and the advertised host is the pod's stable name."""
    done = enter(bin_folder, "broker", RACK="rack-b", **BROKER)

    assert not done.returncode, done.stderr
    lines = (bin_folder.parent / "server.properties").read_text(encoding="ascii").splitlines()
    host = "steward-broker-2.steward-brokers.kafka.svc.cluster.local"
    assert {
        "broker.id=2",
        "broker.rack=rack-b",
        "zookeeper.connect=zookeeper:2181",
        f"advertised.listeners=INTERNAL://{host}:9094,CLIENT://{host}:9092",
    } <= set(lines)


def test_java_replaces_the_shell_of_the_entry_point(bin_folder: Path) -> None:
    """SIGTERM goes to process 1: with a shell in between, the broker would have no controlled shutdown."""
    process = subprocess.Popen(
        ["sh", ENTRY, "broker"],
        env={"PATH": f"{bin_folder}:{os.environ['PATH']}", "TMPDIR": str(bin_folder.parent), **BROKER},
        stdout=subprocess.PIPE,
        text=True,
    )
    output, _ = process.communicate(timeout=60)

    assert str(process.pid) == output.split()[0]
    assert "-Xmx384m" in output


def test_a_broker_on_a_node_without_a_rack_label_has_no_rack(bin_folder: Path) -> None:
    """An empty file means no rack; a missing file is an error."""
    rack = bin_folder.parent / "rack"
    missing = enter(bin_folder, "broker", RACK_FILE=str(rack), **BROKER)
    rack.touch()

    assert (missing.returncode, str(rack) in missing.stderr) == (2, True)
    assert not enter(bin_folder, "broker", RACK_FILE=str(rack), **BROKER).returncode
    assert "broker.rack" not in (bin_folder.parent / "server.properties").read_text(encoding="ascii")


@pytest.mark.parametrize("name", ["steward-broker", "steward-broker-x"])
def test_a_pod_name_without_a_number_is_rejected(bin_folder: Path, name: str) -> None:
    """Otherwise two brokers could have the same id."""
    done = enter(bin_folder, "broker", **{**BROKER, "POD_NAME": name})

    assert (done.returncode, done.stderr) == (2, f"steward-kafka: the pod's name {name} does not end in a number\n")


@pytest.mark.parametrize("name", sorted(BROKER))
def test_a_missing_variable_is_named(bin_folder: Path, name: str) -> None:
    """For users who run the image by hand."""
    done = enter(bin_folder, "broker", **{key: value for key, value in BROKER.items() if key != name})

    assert done.returncode
    assert f"steward-kafka: {name} is not set" in done.stderr


def test_an_unknown_command_is_rejected(bin_folder: Path) -> None:
    """The message lists the commands."""
    done = enter(bin_folder, "start")

    assert (done.returncode, "unknown command 'start': broker, zookeeper" in done.stderr) == (2, True)


def test_a_server_starts_with_archived_classes(bin_folder: Path) -> None:
    """JEP 350: tools use the brokers' archive. The process that writes it has no agent, since Java archives no classes of agents."""
    broker = enter(bin_folder, "broker", **BROKER).stdout
    tool = enter(bin_folder, "tool", "A").stdout
    (bin_folder.parent / "started").unlink()  # with it, the next broker waits for the end of the previous one's session
    writing = enter(bin_folder, "broker", KEEP_CLASSES="-XX:ArchiveClassesAtExit=/kept.jsa", **BROKER).stdout

    assert "-XX:SharedArchiveFile=/opt/kafka/classes/broker.jsa" in broker
    assert "-javaagent:" in broker
    assert "-XX:SharedArchiveFile=/opt/kafka/classes/broker.jsa" in tool
    assert "-XX:ArchiveClassesAtExit=/kept.jsa" in writing
    assert "-XX:SharedArchiveFile" not in writing
    assert "-javaagent:" not in writing
