"""Decoding of ZooKeeper's bytes without a server: operations of a request, and a truncated log."""

import struct
from pathlib import Path

import pytest

from kafka_zookeeper.protocol import MULTI, MULTI_READ, MultiWrite
from kafka_zookeeper.writes import Check, Create, Delete, SetData
from lab import jute
from lab.checks.zookeeper_history import Write, read_history
from lab.errors import LabError
from lab.faults.zookeeper_proxy import Operation, operations_of
from lab.faults.zookeeper_sessions import password_of


def request(kind: int, body: bytes) -> bytes:
    """A request as the proxy sees it: its number, its opcode, its body."""
    return struct.pack(">ii", 7, kind) + body


def text(value: bytes) -> bytes:
    """Bytes behind their length."""
    return struct.pack(">i", len(value)) + value


def record(zxid: int, path: bytes, data: bytes) -> bytes:
    """A record of the transaction log: a change of a znode's data by session 5."""
    body = struct.pack(">qiqqi", 5, 1, zxid, 0, jute.SET_DATA) + text(path) + text(data) + struct.pack(">i", 1)
    return struct.pack(">q", 0) + text(body) + b"B"


def log(folder: Path, first: int, data: bytes) -> None:
    """A file of the log, named by its first transaction."""
    version = folder / "version-2"
    version.mkdir(exist_ok=True)
    (version / f"log.{first:x}").write_bytes(bytes(16) + data)


def test_a_transactions_operations_are_read_in_their_order() -> None:
    """As Steward's session writes them, with the chroot; other requests have none."""
    body = MultiWrite(
        [Check("/e", 3), Create("/a", b"1"), Create("/n", None), SetData("/b", b"2", 0), Delete("/c", -1)], "/kafka"
    ).serialize()

    assert operations_of(request(MULTI, body)) == [
        Operation(jute.CHECK, "/kafka/e", b""),
        Operation(jute.CREATE, "/kafka/a", b"1"),
        Operation(jute.CREATE, "/kafka/n", b""),
        Operation(jute.SET_DATA, "/kafka/b", b"2"),
        Operation(jute.DELETE, "/kafka/c", b""),
    ]
    assert operations_of(request(MULTI_READ, body)) == []


def test_an_operation_that_the_proxy_does_not_know_is_an_error() -> None:
    """A test whose fault does not happen proves nothing."""
    with pytest.raises(LabError, match="unknown kind 99"):
        operations_of(request(MULTI, struct.pack(">ibi", 99, 0, -1) + text(b"/a")))


@pytest.mark.parametrize(
    "end", [b"", bytes(64), record(9, b"/late", b"x")[:-1] + b"\0", record(9, b"/late", b"x")[:20]]
)
def test_a_log_is_read_up_to_its_last_complete_record(tmp_path: Path, end: bytes) -> None:
    """Files in the order of their transactions, zeros behind the last record, or a record that is just being written."""
    log(tmp_path, 0x10, record(16, b"/a", b"2") + end)
    log(tmp_path, 0x9, record(9, b"/a", b"1"))

    assert read_history(tmp_path) == [Write(9, 5, "/a", b"1"), Write(16, 5, "/a", b"2")]


def test_a_sessions_password_is_java_utils_random() -> None:
    """ZooKeeperServer.generatePasswd: `new Random(0x100000abcL ^ 0xB3415C00L).nextBytes(p)`."""
    assert password_of(0x100000ABC).hex() == "7cfef52bb39bef34a6102e06d7bb1d8b"
