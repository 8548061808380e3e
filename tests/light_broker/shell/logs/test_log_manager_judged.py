"""Log directories that Kafka's LogManager and this one write and open in turn."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_log.files.data_folder import read_log_start_offsets, read_recovery_points, write_recovery_points
from kafka_log.files.partition_settings import PartitionSettings, broker_log_settings
from kafka_log.format.names import CLEAN_SHUTDOWN
from kafka_wire.records import Record, encode_batch
from kafka_wire.topic_partition import TopicPartition
from kafka_wire.uuids import encode_uuid
from tests.cases import case
from tests.kafka_log.batches import fast_folder
from tests.kafka_log.judge import JavaProgram
from tests.kafka_log.partitions import NO_EPOCHS
from tests.light_broker.log_managers import NODE_ID, ORDERS, TOPIC_ID, Managed

pytestmark = pytest.mark.java

SEGMENT_BYTES = 1_048_576
"""The least that a broker of Kafka takes."""
SETTINGS = PartitionSettings(log=broker_log_settings(segment_bytes=SEGMENT_BYTES))
PARTITIONS = [ORDERS, TopicPartition("orders", 1), TopicPartition("orders", 2), TopicPartition("an.other_topic-1", 0)]
BATCHES = [
    encode_batch(
        [Record(0, 1_700_000_000_000 + number, f"key-{number}".encode(), bytes(150_000 + number))],
        producer_id=number % 2,
        producer_epoch=0,
        base_sequence=number // 2,
    )
    for number in range(10)
]
"""One segment and a half, of two producers."""


class LogManagerJudge(JavaProgram):
    """A running LogManagerJudge.java."""

    def __init__(self) -> None:
        super().__init__(Path(__file__).parent / "LogManagerJudge.java")

    def open(self, directories: Sequence[Path], *steps: Sequence[object], broker_epoch: int = 7) -> Any:
        """Open directories, take steps and shut down. Return the logs, and the broker epoch of the last clean shutdown."""
        config = {
            "node.id": NODE_ID,
            "process.roles": "broker",
            "controller.quorum.voters": "9@localhost:9",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "listeners": "PLAINTEXT://localhost:0",
            "log.dirs": ",".join(map(str, directories)),
            "log.segment.bytes": SEGMENT_BYTES,
            "log.cleaner.dedupe.buffer.size": 2_097_152,
            "log.initial.task.delay.ms": 3_600_000,
        }
        return self._ask({"config": config, "steps": steps, "broker_epoch": broker_epoch})

    def dump(self, *arguments: object) -> list[str]:
        """Return the lines that kafka-dump-log prints."""
        return str(self._ask({"dump": list(map(str, arguments))})["dump"]).splitlines()

    def _ask(self, question: dict[str, Any]) -> Any:
        encoded = json.dumps(question, default=lambda content: base64.b64encode(content).decode())
        answer = json.loads(self.exchange(encoded))
        assert "error" not in answer, answer["error"]
        return answer


@pytest.fixture(scope="module")
def judge() -> Iterator[LogManagerJudge]:
    """One JVM for all tests."""
    with LogManagerJudge() as running:
        yield running


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder in memory."""
    with fast_folder() as empty:
        yield empty


SUFFIXES = (".log", ".index", ".timeindex", ".snapshot")


def managed_in(folder: Path) -> Managed:
    """Return a manager of two directories."""
    topics = {partition.topic: SETTINGS for partition in PARTITIONS}
    return Managed([folder / "a", folder / "b"], topics=topics)


async def written_here(folder: Path) -> Managed:
    """Write four logs, one of which starts behind its first records, and shut down cleanly."""
    managed = managed_in(folder)
    async with managed.opened(broker_epoch=41) as logs:
        for partition in PARTITIONS:
            opened = await logs.create(partition, TOPIC_ID)
            for batch in BATCHES:
                opened.append_as_leader(batch, 0)
            managed.high_watermarks[partition] = len(BATCHES)
        first = logs.log(ORDERS)
        assert first is not None
        first.raise_start_offset(2, high_watermark=len(BATCHES))
    return managed


def steps_of_kafka() -> list[list[object]]:
    """Return the steps with which Kafka writes the same."""
    steps: list[list[object]] = []
    for topic, number in PARTITIONS:
        steps.append(["create", topic, number, encode_uuid(TOPIC_ID)])
        steps += [["append", topic, number, batch] for batch in BATCHES]
        steps.append(["high_watermark", topic, number, len(BATCHES)])
    return [*steps, ["start_offset", *ORDERS, 2]]


def contents(directories: Sequence[Path]) -> dict[str, bytes]:
    """Return the files of all logs by folder and name, without indexes and epochs that have no entries."""
    return {
        f"{path.parent.name}/{path.name}": content
        for directory in directories
        for path in sorted(directory.glob("*-*/*"))
        if (content := path.read_bytes()) not in {b"", NO_EPOCHS}
    }


def merged(read: Any, directories: Sequence[Path]) -> dict[TopicPartition, int]:
    """Return the offsets in the checkpoint files of all directories."""
    return {partition: offset for directory in directories for partition, offset in read(directory).items()}


EXPECTED = {str(partition): (2 if partition == ORDERS else 0, len(BATCHES)) for partition in PARTITIONS}
"""Start and end of each log."""


def ranges(answer: Any) -> dict[str, tuple[int, int]]:
    """Return start and end of each log that Kafka has opened."""
    return {name: (ends["start_offset"], ends["end_offset"]) for name, ends in answer["logs"].items()}


async def test_kafka_opens_the_directories_of_a_clean_shutdown_and_the_other_way_round(
    judge: LogManagerJudge, folder: Path
) -> None:
    """The same files, checkpoints, topic ids and broker epoch, after each of three changes of hands."""
    managed = await written_here(folder / "here")
    (folder / "kafka").mkdir()
    kafka = [folder / "kafka" / name for name in ("a", "b")]
    judge.open(kafka, *steps_of_kafka(), broker_epoch=41)

    assert contents(kafka) == contents(managed.directories)
    assert len(contents(kafka)) == len(PARTITIONS) * 10
    for read in (read_recovery_points, read_log_start_offsets):
        assert merged(read, kafka) == merged(read, managed.directories)
    for directories in (kafka, managed.directories):
        with case("directories", directories[0].parent.name):
            assert [(directory / CLEAN_SHUTDOWN).read_bytes() for directory in directories] == [
                b'{"version":0,"brokerEpoch":41}'
            ] * 2

    opened = judge.open(managed.directories, broker_epoch=42)
    assert (opened["broker_epoch"], ranges(opened)) == (41, EXPECTED)
    assert {log["topic_id"] for log in opened["logs"].values()} == {encode_uuid(TOPIC_ID)}
    assert sorted(Path(log["directory"]).name for log in opened["logs"].values()) == ["a", "a", "b", "b"]
    logs = replace(managed, directories=managed.directories).new()
    assert await logs.open_all() == 42
    assert {
        str(topic_partition): (log.start_offset, log.end_offset) for topic_partition, _, log in logs.online_logs()
    } == EXPECTED
    await logs.close(43)
    assert contents(managed.directories) == contents(kafka)
    assert ranges(judge.open(managed.directories)) == EXPECTED


def damage(directories: Sequence[Path]) -> None:
    """Leave the directories as a crash of the machine may: one recovery point each, torn ends, no producer snapshots."""
    for directory in directories:
        (directory / CLEAN_SHUTDOWN).unlink()
        write_recovery_points(directory, {next(iter(read_recovery_points(directory))): 5})
        for number, log in enumerate(sorted(path for path in directory.glob("*-*") if path.is_dir())):
            last = max(log.glob("*.log"))
            last.write_bytes(last.read_bytes()[: -1 - 200_000 * number])
            for snapshot in log.glob("*.snapshot"):
                snapshot.unlink()


async def test_both_recover_the_same_logs_after_a_crash(judge: LogManagerJudge, folder: Path) -> None:
    """Torn ends, a recovery point in the first segment, and one log without any checkpoint: the same files."""
    managed = await written_here(folder / "here")
    damage(managed.directories)
    copy = Path(shutil.copytree(folder / "here", folder / "copy"))

    recovered = judge.open([copy / "a", copy / "b"])
    async with managed.opened() as logs:
        found = {
            str(topic_partition): (log.start_offset, log.end_offset) for topic_partition, _, log in logs.online_logs()
        }
    assert recovered["broker_epoch"] == -1
    assert found == ranges(recovered)
    assert sorted(end for _, end in found.values()) == [8, 8, 9, 9]
    assert contents(managed.directories) == contents([copy / "a", copy / "b"])


def files_of(partition: TopicPartition, directories: Sequence[Path]) -> dict[str, list[Path]]:
    """Return the files of a log by suffix, in order."""
    found = sorted(path for directory in directories for path in directory.glob(f"{partition}/*"))
    return {suffix: [path for path in found if path.suffix == suffix] for suffix in SUFFIXES}


async def test_kafka_dumps_all_files_of_a_log(judge: LogManagerJudge, folder: Path) -> None:
    """kafka-dump-log reads segments, indexes and producer snapshots, and finds no fault."""
    managed = await written_here(folder / "here")
    names = files_of(ORDERS, managed.directories)
    assert [len(found) for found in names.values()] == [2, 2, 2, 2]

    dumped = judge.dump("--files", ",".join(map(str, names[".log"])), "--print-data-log")
    assert sum("isvalid: true" in line for line in dumped) == len(BATCHES)
    assert sum(" payload: " in line for line in dumped) == len(BATCHES)
    checked = judge.dump("--files", ",".join(map(str, names[".index"] + names[".timeindex"])), "--index-sanity-check")
    assert sum("passed sanity check." in line for line in checked) == 4
    producers = judge.dump("--files", ",".join(map(str, names[".snapshot"])))
    assert sum("producerId: 1 producerEpoch: 0" in line for line in producers) == 2
