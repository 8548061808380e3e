"""Kafka's kafka-storage writes the same bytes and refuses the same arguments."""

import re
import shlex
import stat
import uuid
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kafka_log.format.names import META_PROPERTIES
from kafka_wire.records import ControlType, control_type, decode_batches
from kafka_wire.uuids import decode_uuid
from steward.main import app
from tests.cases import case
from tests.controller_core.shell.quorum.judge import StorageJudge
from tests.controller_core.shell.quorum.properties import DYNAMIC, STATIC

pytestmark = [pytest.mark.java, pytest.mark.slow]

VERSION_BYTES = 2
"""A control record begins with its version, and that of a snapshot's header goes on with a time."""

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
SALT = "salt=aGVsbG8gdGhlcmU="
ALICE = f"'SCRAM-SHA-256=[name=alice,password=alice-secret,{SALT}]'"
BOB = f"'SCRAM-SHA-512=[name=bob,iterations=8192,{SALT},saltedpassword=\"bXkgcGFzc3dvcmQ=\"]'"
THREE = "1@a.example:1:JEXY6aqzQY-32P5TStzaFg,3@[::1]:65535:MvDxzVmcRsaTz33bUuRU6A,2@10.0.0.1:2:07R5amHmR32VDA6jHkGbTA"
OTHERS = ",".join(f"{number}@127.0.0.1:9093:{uuid_text}" for number, uuid_text in zip((104, 101, 103, 102), (
    "JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A", "07R5amHmR32VDA6jHkGbTA", "AAAAAAAAAAAAAAAAAAAAAQ"), strict=True))  # fmt: skip

ACCEPTED = [
    (STATIC, ""),
    (STATIC, "--no-initial-controllers -r 4.0"),
    (STATIC, "-f transaction.version=1 -f group.version=0 -f kraft.version=0"),
    (STATIC | {"metadata.log.dir": "{folder}/meta"}, "-f metadata.version=7"),
    (STATIC | {"unstable.feature.versions.enable": "true"}, ""),
    (DYNAMIC, "--standalone"),
    (DYNAMIC | {"listeners": "CONTROLLER://:9093"}, f"-s --add-scram {ALICE} -S {BOB}"),
    (DYNAMIC | {"metadata.log.dir": "{folder}/meta"}, f"--initial-controllers {THREE} -r 3.9.1"),
    (DYNAMIC, f"-I {OTHERS} -f kraft.version=1"),
    (DYNAMIC, "-N -r 3.5-IV2"),
]

REFUSED = [
    (STATIC, "--standalone"),
    (STATIC, f"-I {THREE}"),
    (STATIC, "-f kraft.version=1"),
    (STATIC, "-f metadata.version=30 -r 4.3"),
    (STATIC, "-f metadata.version=31"),
    (STATIC, "-f metadata.version=6"),
    (STATIC, "-r 4.4"),
    (STATIC, "-r 3.2"),
    (STATIC, "-r 4"),
    (STATIC, "-f unknown.version=1"),
    (STATIC, "-f group.version=2"),
    (STATIC, "-f group.version=-1"),
    (STATIC, "-f group.version"),
    (STATIC, "-f group.version=one"),
    (STATIC, "-f group.version=40000"),
    (STATIC, "-f eligible.leader.replicas.version=1 -r 4.0-IV0"),
    (STATIC, f"-r 3.4 -S {ALICE}"),
    *(
        (STATIC, f"-S '{argument}'")
        for argument in (
            "SCRAM-SHA-256",
            "SCRAM-SHA-1=[name=a,password=b]",
            "SCRAM-SHA-256=name=a,password=b",
            "SCRAM-SHA-256=[name=a,password=b",
            "SCRAM-SHA-256=[password=b]",
            "SCRAM-SHA-256=[name=a]",
            "SCRAM-SHA-256=[name=a,password]",
            "SCRAM-SHA-256=[name=a,saltedpassword=bXk=]",
            "SCRAM-SHA-256=[name=a,password=b,salt=?]",
            "SCRAM-SHA-256=[name=a,password=b,iterations=4095]",
            "SCRAM-SHA-256=[name=a,password=b,iterations=16385]",
            "SCRAM-SHA-256=[name=a,password=b,iterations=x]",
            "SCRAM-SHA-256=[name=a,password=b,other=c]",
        )
    ),
    (DYNAMIC, ""),
    (DYNAMIC, "-s -N"),
    (DYNAMIC, "-s -f kraft.version=0"),
    (DYNAMIC, "-I ,"),
    *(
        (DYNAMIC, f"-I {text}")
        for text in (
            "1", "@a:1:JEXY6aqzQY-32P5TStzaFg", "x@a:1:JEXY6aqzQY-32P5TStzaFg", "1@a", "1@a:1", "1@[a:1:JEXY6aqzQY-32P5TStzaFg",
            "1@a:x:JEXY6aqzQY-32P5TStzaFg", "1@a:65536:JEXY6aqzQY-32P5TStzaFg", "1@a:1:JEXY",
            "1@a:1:JEXY6aqzQY-32P5TStzaFg,1@b:1:MvDxzVmcRsaTz33bUuRU6A",
        )
    ),
]  # fmt: skip


class Storage:
    """Directories of one controller, formatted by one of the two programs."""

    def __init__(self, folder: Path, values: dict[str, str], arguments: str) -> None:
        self.folder = folder
        self._config = folder.with_suffix(".properties")
        own = {"log.dirs": f"{folder}/one,{folder}/two"}
        own |= {name: value.format(folder=folder) for name, value in values.items() if name not in own}
        self._config.write_text("".join(f"{name}={value}\n" for name, value in own.items()))
        self.arguments = ["format", "-t", CLUSTER_ID, "-c", str(self._config), *shlex.split(arguments)]

    def files(self) -> dict[str, tuple[str, bytes]]:
        """Return the mode and the content of each file by its name, without times and drawn ids."""
        own_ids = [self._directory_id(path) for path in self.folder.rglob(META_PROPERTIES)]
        return {
            str(path.relative_to(self.folder)): (stat.filemode(path.stat().st_mode), _comparable(path, own_ids))
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }

    def _directory_id(self, path: Path) -> uuid.UUID:
        match = re.search(r"directory\.id=(.*)", path.read_text())
        assert match is not None
        return decode_uuid(match[1])


def _comparable(path: Path, own_ids: list[uuid.UUID]) -> bytes:
    data = path.read_bytes()
    if path.name == META_PROPERTIES:
        text = re.sub(r"(?m)^#\w{3} \w{3} \d{2} \d{2}:\d{2}:\d{2} \w+ \d{4}$", "#TIME", data.decode())
        return re.sub(r"(?m)^directory\.id=\S{22}$", "directory.id=ID", text).encode()
    found = bytearray(data)
    position = 0
    for batch in decode_batches(data):  # checks the checksums, which differ with the times
        found[position + 17 : position + 21] = b"CRC."
        found[position + 27 : position + 43] = b"TIME AND TIME..."
        for record in batch.records:
            value = record.value or b""
            if batch.header.is_control and control_type(record) is ControlType.SNAPSHOT_HEADER and any(value):
                start = data.index(value, position) + VERSION_BYTES
                found[start : start + 8] = b"TIMETIME"
        position += batch.header.size_bytes
    for own_id in own_ids:
        found = found.replace(own_id.bytes, b"A DIRECTORY'S ID")
    return bytes(found)


def steward(arguments: list[str]) -> int:
    """Run Steward's command and return its exit code."""
    return CliRunner().invoke(app, arguments).exit_code


def test_the_same_arguments_write_the_same_bytes(judge: StorageJudge, tmp_path: Path) -> None:
    """Apart from times and drawn ids: names of files, their modes and their content."""
    for number, (values, arguments) in enumerate(ACCEPTED):
        with case(arguments):
            kafka = Storage(tmp_path / f"kafka-{number}", values, arguments)
            own = Storage(tmp_path / f"own-{number}", values, arguments)

            assert (judge.storage_tool(kafka.arguments).error, steward(own.arguments)) == (None, 0)
            assert own.files() == kafka.files()
            assert own.files() != {}


def test_the_same_arguments_are_refused(judge: StorageJudge, tmp_path: Path) -> None:
    """Before anything is written."""
    for number, (values, arguments) in enumerate(REFUSED):
        with case(arguments):
            kafka = Storage(tmp_path / f"kafka-{number}", values, arguments)
            own = Storage(tmp_path / f"own-{number}", values, arguments)

            assert judge.storage_tool(kafka.arguments).error is not None
            assert steward(own.arguments) == 1
            assert own.files() == {}


def test_a_directory_that_either_has_formatted_is_skipped_by_the_other(judge: StorageJudge, tmp_path: Path) -> None:
    """--ignore-formatted reads the other's meta.properties."""
    for number, order in enumerate(("kafka steward", "steward kafka")):
        with case(order):
            storage = Storage(tmp_path / str(number), DYNAMIC, "-s -g")
            for program in order.split():
                if program == "kafka":
                    assert judge.storage_tool(storage.arguments).error is None
                else:
                    assert steward(storage.arguments) == 0
