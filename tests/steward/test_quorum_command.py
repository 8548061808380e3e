"""`steward quorum`: messages of a start that fails name the file and what to do."""

import socket
import uuid
from pathlib import Path

import pytest
from typer.testing import CliRunner

from controller_core.shell.quorum.format import format_storage
from controller_core.shell.quorum.format_plan import FormatOptions
from controller_core.shell.quorum.metadata_log import MetadataLog
from controller_core.shell.quorum.settings_file import read_settings_file
from kafka_log.files.lock import FolderLock
from kafka_log.files.text_files import read_meta_properties, write_meta_properties
from kafka_log.format.control_records import snapshot_batches
from kafka_log.format.names import SnapshotId, snapshot_name
from kafka_log.format.text_files import MetaProperties
from lab.processes.ports import free_port
from steward.main import app
from tests.kafka_log.batches import batch

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
FAILED, WRONG_SETTINGS = 1, 2
ADVICE = "Records that this voter acknowledged may be lost. Remove this voter from the quorum, format an empty directory, and add it again."


class Voter:
    """A properties file and its directory."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.data = folder / "data"
        self.path = folder / "voter.properties"
        port = free_port()
        values = {
            "process.roles": "controller",
            "node.id": "1",
            "listeners": f"CONTROLLER://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{port}",
            "log.dirs": str(self.data),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self.path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))

    def format(self) -> None:
        """Format the directory."""
        format_storage(read_settings_file(self.path).settings, FormatOptions(cluster_id=CLUSTER_ID), lambda _: None)

    def refusal(self, *arguments: str) -> tuple[int, str]:
        """Run the command, which must not start; return its exit code and message."""
        command = ["quorum", "--config", str(self.path), "--metrics-port", "0", "--log-level", "CRITICAL", *arguments]
        result = CliRunner().invoke(app, command)
        return result.exit_code, result.output.removeprefix("steward quorum: ").removesuffix("\n")


def test_a_directory_that_is_not_formatted_is_refused(tmp_path: Path) -> None:
    """Without its identity a node could vote under a wrong id."""
    voter = Voter(tmp_path)
    voter.data.mkdir()

    advice = "Run `steward format` with the properties file of this node."
    assert voter.refusal() == (FAILED, f"{voter.data} is not formatted. {advice}")


def test_the_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    """As when a volume was attached to the wrong pod."""
    voter = Voter(tmp_path)
    voter.format()
    write_meta_properties(voter.data, MetaProperties(CLUSTER_ID, 7, uuid.UUID(int=1000)))

    assert voter.refusal() == (
        FAILED,
        (
            f"{voter.data}/meta.properties belongs to node 7, but node.id is 1. Correct node.id, or log.dirs if this is the "
            "directory of another node."
        ),
    )


def test_directories_of_two_clusters_are_refused(tmp_path: Path) -> None:
    """One of them is from another machine."""
    first, second = tmp_path / "one", tmp_path / "two"
    voter = Voter(tmp_path, log_dirs=f"{first},{second}")
    voter.format()
    known = read_meta_properties(second)
    assert known is not None
    write_meta_properties(second, MetaProperties("other", 1, known.directory_id))

    assert voter.refusal() == (
        FAILED,
        (
            f"{first} belongs to cluster {CLUSTER_ID}, but {second} to cluster other. Remove the directory of the other cluster "
            "from log.dirs."
        ),
    )


def test_a_directory_that_another_process_uses_is_refused(tmp_path: Path) -> None:
    """Kafka takes the same lock."""
    voter = Voter(tmp_path)
    voter.format()
    with FolderLock(voter.data):
        code, message = voter.refusal()

    assert code == FAILED
    assert message == (
        f"Failed to acquire the lock on {voter.data}/.lock: another process uses this folder. Stop that process, or give this "
        "node another directory in log.dirs."
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "it is empty"),
        ('{"leaderId":-1,"leaderEpoch":2,"voted', "it is no JSON document, perhaps cut short"),
        ('{"leaderEpoch":2,"data_version":2}', "data_version 2 is not between 0 and 1; a newer program wrote it"),
    ],
)
def test_an_unreadable_quorum_state_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    """The vote in it may be needed (ADR 26)."""
    voter = Voter(tmp_path)
    voter.format()
    folder = voter.data / "__cluster_metadata-0"
    folder.mkdir(exist_ok=True)
    (folder / "quorum-state").write_text(content)
    code, message = voter.refusal()

    assert code == FAILED
    assert message.startswith(f"Failed to read {folder}/quorum-state: {reason}. The file has this voter's vote;")


def test_a_log_with_a_damaged_batch_in_front_of_a_valid_one_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """The records behind it may have been acknowledged (ADR 26)."""
    voter = Voter(tmp_path)
    voter.format()
    log = MetadataLog(voter.data / "__cluster_metadata-0")
    for offset in range(3):
        log.append_as_leader(batch(offset), 1)
    log.close()
    (segment,) = log.folder.glob("*.log")
    content = segment.read_bytes()
    damaged = content[:70] + bytes([content[70] ^ 1]) + content[71:]
    segment.write_bytes(damaged)
    code, message = voter.refusal()

    assert code == FAILED
    assert message.startswith(f"Found invalid messages in log segment {segment} at byte offset 0, offset 0")
    assert message.endswith(ADVICE)
    assert segment.read_bytes() == damaged


def test_a_snapshot_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    """The voters and the records before the log's start are in it."""
    voter = Voter(tmp_path)
    voter.format()
    log = MetadataLog(voter.data / "__cluster_metadata-0")
    log.append_as_leader(batch(0), 1)
    writer = log.create_snapshot(SnapshotId(1, 1), high_watermark=1)
    assert writer is not None
    for part in snapshot_batches([b"record"], epoch=1, timestamp_ms=1, last_contained_timestamp_ms=1):
        writer.append(part)
    log.finish_snapshot(writer)
    log.close()
    path = log.folder / snapshot_name(SnapshotId(1, 1))
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-10])
    code, message = voter.refusal()

    assert code == FAILED
    assert message.startswith(f"Snapshot {path} is invalid at position ")
    assert message.endswith(ADVICE)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("authorizer.class.name", "com.example.Authorizer", "Steward has an equivalent of org.apache.kafka.metadata"),
        ("create.topic.policy.class.name", "com.example.Policy", "Remove the setting."),
        ("alter.config.policy.class.name", "com.example.Policy", "Remove the setting."),
        ("principal.builder.class", "com.example.Builder", "Steward has an equivalent of org.apache.kafka.common"),
    ],
)
@pytest.mark.shows("F69")
def test_a_java_class_without_an_equivalent_is_refused(tmp_path: Path, name: str, value: str, reason: str) -> None:
    """Without it, requests would be allowed that it refuses."""
    voter = Voter(tmp_path, **{name.replace(".", "_"): value})
    code, message = voter.refusal()

    assert code == WRONG_SETTINGS
    assert message.startswith(f"{name} is {value}, and Steward cannot run Java classes.")
    assert reason in message


def test_a_listener_that_starts_early_must_be_bound(tmp_path: Path) -> None:
    """AbstractKafkaConfig: early.start.listeners."""
    voter = Voter(tmp_path, early_start_listeners="OTHER")

    assert "early.start.listeners contains listener OTHER" in voter.refusal()[1]


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    """The message is the system's, which has the address."""
    voter = Voter(tmp_path)
    voter.format()
    endpoint = read_settings_file(voter.path).settings.listeners[0]

    with socket.create_server((endpoint.host, endpoint.port)):
        code, message = voter.refusal()

    assert code == FAILED
    assert str(endpoint.port) in message
    assert "Address already in use" in message


@pytest.mark.parametrize("text", ["", "x", "AAAAAAAAAAAAAAAAAAAAAAAA"])
def test_an_invalid_topic_id_is_refused(tmp_path: Path, text: str) -> None:
    """It is an id in Kafka's form."""
    voter = Voter(tmp_path)

    assert voter.refusal("--topic-id", text)[0] == WRONG_SETTINGS
