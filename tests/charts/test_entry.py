"""The entry of the image with Kafka: what a pod's environment becomes, told by a `java` that only shows how it was called."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.charts.rendering import ROOT

ENTRY = ROOT / "images" / "kafka" / "steward-kafka"

BROKER = {
    "POD_NAME": "steward-broker-2",
    "POD_DOMAIN": "steward-brokers.kafka.svc.cluster.local",
    "ZOOKEEPER_CONNECT": "zookeeper:2181",
    "JAVA_HEAP": "384m",
}


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """A folder with a `java` that says its process id and arguments."""
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
    """broker.id from the ordinal, advertised under the stable name."""
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


def test_java_takes_the_place_of_the_entry(bin_folder: Path) -> None:
    """SIGTERM goes to process 1: a shell in between would keep a controlled shutdown from the broker."""
    process = subprocess.Popen(
        ["sh", ENTRY, "broker"],
        env={"PATH": f"{bin_folder}:{os.environ['PATH']}", "TMPDIR": str(bin_folder.parent), **BROKER},
        stdout=subprocess.PIPE,
        text=True,
    )
    told, _ = process.communicate(timeout=60)

    assert str(process.pid) == told.split()[0]
    assert "-Xmx384m" in told


def test_a_broker_without_a_label_on_its_node_has_no_rack(bin_folder: Path) -> None:
    """An empty file stands for no rack, and a missing one for an accident."""
    rack = bin_folder.parent / "rack"
    missing = enter(bin_folder, "broker", RACK_FILE=str(rack), **BROKER)
    rack.touch()

    assert (missing.returncode, str(rack) in missing.stderr) == (2, True)
    assert not enter(bin_folder, "broker", RACK_FILE=str(rack), **BROKER).returncode
    assert "broker.rack" not in (bin_folder.parent / "server.properties").read_text(encoding="ascii")


@pytest.mark.parametrize("name", ["steward-broker", "steward-broker-x"])
def test_a_pod_without_a_number_is_refused(bin_folder: Path, name: str) -> None:
    """Two brokers of one id would end each other."""
    done = enter(bin_folder, "broker", **{**BROKER, "POD_NAME": name})

    assert (done.returncode, done.stderr) == (2, f"steward-kafka: the pod's name {name} does not end in a number\n")


@pytest.mark.parametrize("name", sorted(BROKER))
def test_what_is_not_set_is_named(bin_folder: Path, name: str) -> None:
    """Whoever runs the image by hand reads what is missing."""
    done = enter(bin_folder, "broker", **{key: value for key, value in BROKER.items() if key != name})

    assert done.returncode
    assert f"steward-kafka: {name} is not set" in done.stderr


def test_an_unknown_command_is_refused(bin_folder: Path) -> None:
    """With those that there are."""
    done = enter(bin_folder, "start")

    assert (done.returncode, "unknown command 'start': broker, zookeeper" in done.stderr) == (2, True)


def test_a_server_begins_with_the_classes_that_were_kept_of_one(bin_folder: Path) -> None:
    """JEP 350: tools share the archive of brokers; what writes them runs with no agent, of which Java archives nothing."""
    broker = enter(bin_folder, "broker", **BROKER).stdout
    tool = enter(bin_folder, "tool", "A").stdout
    (bin_folder.parent / "started").unlink()  # with it, the next broker waits for the end of the former one's session
    writing = enter(bin_folder, "broker", KEEP_CLASSES="-XX:ArchiveClassesAtExit=/kept.jsa", **BROKER).stdout

    assert "-XX:SharedArchiveFile=/opt/kafka/classes/broker.jsa" in broker
    assert "-javaagent:" in broker
    assert "-XX:SharedArchiveFile=/opt/kafka/classes/broker.jsa" in tool
    assert "-XX:ArchiveClassesAtExit=/kept.jsa" in writing
    assert "-XX:SharedArchiveFile" not in writing
    assert "-javaagent:" not in writing
