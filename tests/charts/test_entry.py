"""Entry point of the Kafka image: settings from a pod's environment. A fake `java` prints its arguments."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from lab.peers.authority import Authority
from lab.peers.cluster import kafka_cluster
from lab.peers.zookeeper import ZooKeeperServer
from lab.processes.waiting import wait_until
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


@pytest.fixture
def secured(bin_folder: Path, authority: Authority) -> dict[str, str]:
    """The environment of a broker with TLS and SASL/PLAIN, and the files that its pod mounts."""
    folder = bin_folder.parent
    certificate, key = authority.sign("broker", "/CN=broker")
    files = {
        "tls/tls.crt": certificate.read_text("ascii"),
        "tls/tls.key": key.read_text("ascii"),
        "tls/ca.crt": authority.certificate.read_text("ascii"),
        "user/password": OWN,
        "further/users": f"# further users\n\nalice:{ALICE}\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    folders = {"TLS_FOLDER": "tls", "USER_FOLDER": "user", "USERS_FOLDER": "further"}
    return {
        **BROKER,
        "SECURITY_PROTOCOL": "SASL_SSL",
        "SASL_MECHANISM": "PLAIN",
        "SASL_USERNAME": "steward",
        **{name: str(folder / value) for name, value in folders.items()},
    }


CLIENT_TIMEOUT_S, REFUSED_TIMEOUT_S = 30.0, 1.0
"""An answer takes tenths of a second. A client that is refused tries again until the end of its time."""

OWN, ALICE = 'own "password"', 'back\\slash "quote"; $x'
"""Passwords with each character that a shell, a JAAS configuration or a properties file treats as its own."""


def properties(path: Path) -> dict[str, str]:
    """Read the properties that the entry wrote."""
    return dict(line.partition("=")[::2] for line in path.read_text("ascii").splitlines() if line)


def test_a_secured_broker_has_the_key_and_the_logins_of_its_secrets(bin_folder: Path, secured: dict[str, str]) -> None:
    """The files that are written are readable only for the broker."""
    done = enter(bin_folder, "broker", **secured)

    assert not done.returncode, done.stderr
    written = bin_folder.parent / "server.properties"
    settings = properties(written)
    assert settings["listener.security.protocol.map"] == "INTERNAL:SASL_SSL,CLIENT:SASL_SSL"
    store = Path(settings["ssl.keystore.location"])
    assert store.read_text("ascii").count("-----BEGIN") == 2
    assert {path.stat().st_mode & 0o777 for path in (written, store, bin_folder.parent / "users")} == {0o600}


def test_passwords_reach_kafka_as_they_are(bin_folder: Path, secured: dict[str, str]) -> None:
    """As Java reads the file: a properties file, whose value is a JAAS configuration with quoted texts."""
    enter(bin_folder, "broker", **secured)

    text = (bin_folder.parent / "server.properties").read_text("ascii")
    (login,) = re.findall(r"^listener\.name\.client\.plain\.sasl\.jaas\.config=(.*)$", text, re.MULTILINE)
    of_jaas = re.sub(r"\\(.)", r"\1", login)
    assert dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', of_jaas)) == {
        "username": "steward",
        "password": OWN.replace('"', '\\"'),
        "user_steward": OWN.replace('"', '\\"'),
        "user_alice": ALICE.replace("\\", "\\\\").replace('"', '\\"'),
    }


@pytest.mark.kafka
@pytest.mark.shows("F46")
def test_a_broker_accepts_the_users_of_the_secrets(
    bin_folder: Path, secured: dict[str, str], authority: Authority, zookeeper: ZooKeeperServer, chroot: str
) -> None:
    """A broker of version 3.9 with the settings that the entry writes, PLAIN over TLS on both listeners."""
    enter(bin_folder, "broker", **secured)
    written = properties(bin_folder.parent / "server.properties")
    settings = {name: written[name] for name in written if re.search(r"^ssl|sasl|protocol\.map$", name)}
    common = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "ssl.ca.location": str(authority.certificate)}

    def brokers(user: str, password: str, timeout_s: float = CLIENT_TIMEOUT_S) -> int:
        login = {"sasl.username": user, "sasl.password": password, "log_level": 0}
        client = AdminClient({"bootstrap.servers": cluster.bootstrap(), **common, **login})
        known: set[int] = set()

        def is_known() -> bool:
            try:
                known.update(client.list_topics(timeout=timeout_s).brokers)
            except KafkaException as error:
                # A broker that the controller has not sent any metadata yet lists no broker, not even itself.
                if error.args[0].code() != KafkaError._PARTIAL:
                    raise
            return bool(known)

        wait_until(is_known, timeout_s=CLIENT_TIMEOUT_S, what="the broker lists itself")
        return len(known)

    with kafka_cluster((1,), start=False, zookeeper=zookeeper, chroot=chroot, settings=settings) as cluster:
        cluster.start_brokers()

        assert [brokers("steward", OWN), brokers("alice", ALICE)] == [1, 1]
        with pytest.raises(KafkaException):
            brokers("alice", OWN, REFUSED_TIMEOUT_S)


def test_scram_users_are_written_before_the_broker_starts(bin_folder: Path, secured: dict[str, str]) -> None:
    """Brokers authenticate to each other with one of them."""
    done = enter(bin_folder, "broker", **{**secured, "SASL_MECHANISM": "SCRAM-SHA-512"})

    first, second = done.stdout.splitlines()
    users = bin_folder.parent / "users"
    assert first.endswith(f"steward.ScramUsers {bin_folder.parent / 'server.properties'} SCRAM-SHA-512 {users}")
    assert " kafka.Kafka " in second
    assert OWN not in done.stdout
    assert users.read_text("ascii").splitlines() == [f"steward:{OWN}", f"alice:{ALICE}"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("further/users", "alice\n", "line 1 of USERS is not NAME:PASSWORD"),
        ("further/users", "bob:x\nan alice:x\n", "line 2 of USERS is not NAME:PASSWORD"),
        ("further/users", "alice:ü\n", "line 1 of USERS is not NAME:PASSWORD"),
        ("further/users", "steward:x\n", "USERS has the user steward twice, or it is SASL_USERNAME"),
        ("user/password", "", "user/password is not one line, the ASCII password of steward"),
        ("user/password", "a\nü", "user/password is not one line"),
        ("user/password", "ü", "user/password is not one line"),
        ("tls/tls.key", "-----BEGIN RSA PRIVATE KEY-----\n", "tls.key is not a PKCS#8 key in PEM"),
    ],
)
def test_secrets_that_kafka_cannot_read_are_named_and_not_shown(
    bin_folder: Path, secured: dict[str, str], name: str, text: str, message: str
) -> None:
    """Kafka's own error would be a stack trace."""
    (bin_folder.parent / name).write_text(text, encoding="utf-8")
    done = enter(bin_folder, "broker", **secured)

    assert done.returncode == 2
    assert message.replace("USERS", f"{bin_folder.parent}/further/users") in done.stderr
    assert done.stdout == ""


def test_zookeeper_with_tls_has_a_plain_port_only_for_its_own_pod(bin_folder: Path, secured: dict[str, str]) -> None:
    """The probe needs no certificate."""
    data = bin_folder.parent / "data"
    environment = {**secured, "ZOOKEEPER_TLS": "true", "POD_NAME": "steward-zookeeper-0", "ZOOKEEPER_DATA": str(data)}
    done = enter(bin_folder, "zookeeper", **environment)

    assert not done.returncode, done.stderr
    lines = set((bin_folder.parent / "zookeeper.properties").read_text("ascii").splitlines())
    assert {"clientPortAddress=127.0.0.1", "secureClientPort=2281", "ssl.clientAuth=need", "sslQuorum=true"} <= lines
