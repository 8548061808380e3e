"""SCRAM users that a broker's pod writes into ZooKeeper before its broker starts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from kafka_wire.sasl.scram_keys import SCRAM_SHA_512, decode_credential, make_credential
from lab.downloads.kafka_image import class_path
from lab.peers.java_process import java_command, write_properties
from lab.peers.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.zookeeper

RUN_TIMEOUT_S = 60.0

USERS = {"steward": "own-password", "al.ice": 'with: colon, "quote" and ü'}


def write(connect: str, folder: Path, mechanism: str, users: dict[str, str]) -> str:
    """Run the program of the image and return its output."""
    properties = write_properties(folder / "server.properties", {"broker.id": "1", "zookeeper.connect": connect})
    lines = folder / "users"
    lines.write_text("".join(f"{user}:{password}\n" for user, password in users.items()), encoding="utf-8")
    command = java_command(
        "steward.ScramUsers", str(properties), mechanism, str(lines), heap="64m", log4j="log4j-tools.properties"
    )
    command[command.index("-cp") + 1] = class_path()
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=RUN_TIMEOUT_S)
    return done.stdout


def config(zookeeper: ZooKeeperServer, path: str) -> dict[str, str]:
    """Read the credentials of a user by mechanism."""
    data = zookeeper.read(path)
    assert data is not None
    found: dict[str, str] = json.loads(data)["config"]
    return found


@pytest.mark.shows("F46")
def test_scram_users_are_created_once_and_changed_passwords_replaced(
    zookeeper: ZooKeeperServer, chroot: str, tmp_path: Path
) -> None:
    """As `kafka-configs --zookeeper`, in a chroot that does not exist yet. Credentials of other mechanisms and users stay."""
    connect, users = zookeeper.connect(f"{chroot}/new"), f"{chroot}/new/config/users"
    first = write(connect, tmp_path, "SCRAM-SHA-512", USERS)
    created = {user: config(zookeeper, f"{users}/{user}") for user in USERS}
    other = write(connect, tmp_path, "SCRAM-SHA-256", {"steward": USERS["steward"]})
    again = write(connect, tmp_path, "SCRAM-SHA-512", {**USERS, "steward": "another"})
    changed = config(zookeeper, f"{users}/steward")

    assert [output.split()[2] for output in (first, other, again)] == ["2", "1", "1"]
    for user, password in USERS.items():
        assert is_of(password, created[user]["SCRAM-SHA-512"])
    assert is_of("another", changed["SCRAM-SHA-512"])
    assert set(changed) == {"SCRAM-SHA-256", "SCRAM-SHA-512"}
    assert config(zookeeper, f"{users}/al.ice") == created["al.ice"]


def is_of(password: str, text: str) -> bool:
    """Whether a credential was made from a password, by the program's counterpart in Python."""
    credential = decode_credential(text)
    mechanism = SCRAM_SHA_512
    salted = mechanism.salted_password(password, credential.salt, credential.iterations)
    return credential == make_credential(mechanism, salted, credential.salt, credential.iterations)
