"""Kafka's own log opens, checks and dumps what is written here, and the other way round, byte for byte."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller_core.shell.quorum.metadata_log import MetadataLog
from kafka_log.files.log import Log
from kafka_log.files.snapshots import list_snapshots
from kafka_log.format.control_records import snapshot_batches
from kafka_log.format.names import SnapshotId
from kafka_log.format.roll import LogSettings
from tests.cases import case
from tests.kafka_log.batches import batch, fast_folder
from tests.kafka_log.judge import LogJudge, Opened

pytestmark = pytest.mark.java

SEGMENT_BYTES = 20_000
SETTINGS = LogSettings(segment_bytes=SEGMENT_BYTES)

NO_OP = b"\x01\x14\x00\x00"
"""A NoOpRecord of the metadata log: frame version, api key, version, no tagged fields."""

PRODUCERS = ".snapshot"
"""Files of Kafka with the state of idempotent producers, which the quorum does not have; they may be missing."""


@pytest.fixture(scope="module")
def judge() -> Iterator[LogJudge]:
    """One JVM for all tests."""
    with LogJudge() as running:
        yield running


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder in memory."""
    with fast_folder() as empty:
        yield empty


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a log by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != PRODUCERS}


def batches(count: int = 60) -> list[bytes]:
    """Return batches of one to three records in three epochs, whose timestamps go up and down."""
    made, offset = [], 0
    for number in range(count):
        records = 1 + number % 3
        made.append(
            batch(offset, records=records, size_bytes=700, epoch=number // 20, timestamp_ms=1_000 + number * 7 % 50)
        )
        offset += records
    return made


def metadata_log(parent: Path, content: list[bytes]) -> Path:
    """Write a log of the quorum and return its folder."""
    folder = parent / "__cluster_metadata-0"
    log = MetadataLog(folder, SETTINGS)
    for batch_bytes in content:
        log.append_as_follower(batch_bytes, 100)
    log.close()
    return folder


def test_the_same_batches_make_the_same_files_as_kafkas(judge: LogJudge, folder: Path) -> None:
    """B5. Segments, both indexes, epochs and the topic's id."""
    steward = metadata_log(folder / "steward", batches())
    kafka = folder / "kafka" / "__cluster_metadata-0"
    (folder / "batches").write_bytes(b"".join(batches()))
    (folder / "kafka").mkdir()

    assert judge.write(kafka, SEGMENT_BYTES, folder / "batches") == Opened(0, 120, 2, "none", "none")
    assert contents(steward) == contents(kafka)
    assert len(contents(steward)) == 5 * 3 + 2


def test_kafka_dumps_segments_of_steward_and_finds_no_fault_in_their_indexes(judge: LogJudge, folder: Path) -> None:
    """kafka-dump-log."""
    values = [batch(offset, size_bytes=3_000, timestamp_ms=1_000 + offset) for offset in range(20)]
    log = metadata_log(folder, values)
    files = [sorted(map(str, log.glob(f"*{suffix}"))) for suffix in (".log", ".index", ".timeindex")]

    checked = judge.dump("--files", ",".join(files[1] + files[2]), "--index-sanity-check")
    verified = judge.dump("--files", ",".join(files[1] + files[2]), "--verify-index-only")
    assert [line.removeprefix(f"{path} ") for path, line in zip(files[1] + files[2], checked[1::2], strict=True)] == [
        *["passed sanity check."] * 3,
        "is empty.",
        *["passed sanity check."] * 4,
    ]
    assert [line for line in verified if line and not line.startswith("Dumping ")] == [f"{files[1][3]} is empty."]
    dumped = judge.dump("--files", ",".join(files[0]), "--cluster-metadata-decoder")
    assert sum("isvalid: true" in line for line in dumped) == 20


def test_kafka_reads_snapshots_of_steward(judge: LogJudge, folder: Path) -> None:
    """With the decoder of metadata records; and it opens a log that starts at one."""
    log = folder / "__cluster_metadata-0"
    steward = MetadataLog(log, SETTINGS)
    writer = steward.fetch_snapshot(SnapshotId(500, 9))
    assert writer is not None
    for part in snapshot_batches([NO_OP] * 3, epoch=9, timestamp_ms=1_000, last_contained_timestamp_ms=900):
        writer.append(part)
    steward.finish_snapshot(writer)
    assert steward.truncate_to_latest_snapshot()
    steward.append_as_leader(batch(0), 10)
    steward.close()

    assert judge.open(log, SEGMENT_BYTES) == Opened(500, 501, 10, "500-9", "500-9")
    dumped = judge.dump("--files", log / "00000000000000000500-0000000009.checkpoint", "--cluster-metadata-decoder")
    assert [line.partition("sequence: -1 ")[2] for line in dumped if line.startswith("|")] == [
        'headerKeys: [] SnapshotHeader {"version":0,"lastContainedLogTimestamp":900}',
        *['headerKeys: [] payload: {"type":"NO_OP_RECORD","version":0,"data":{}}'] * 3,
        'headerKeys: [] SnapshotFooter {"version":0}',
    ]


def test_kafka_finds_the_epochs_of_a_killed_voter_in_its_batches(judge: LogJudge, folder: Path) -> None:
    """B5. Those of the last segment are not in leader-epoch-checkpoint yet; Kafka's quorum also opens without a recovery point."""
    log = MetadataLog(folder / "__cluster_metadata-0", SETTINGS)
    for appended in batches(25):
        log.append_as_follower(appended, 100)
    killed = shutil.copytree(log.folder, folder / "killed" / "__cluster_metadata-0")
    log.close()

    assert judge.open(killed, SEGMENT_BYTES) == Opened(0, log.end_offset, 1, "none", "none")
    assert contents(killed)["leader-epoch-checkpoint"] == contents(log.folder)["leader-epoch-checkpoint"]


def test_kafka_and_steward_recover_the_same_log_wherever_it_is_cut(judge: LogJudge, folder: Path) -> None:
    """B4, B5. Cuts around each batch and header, and bytes changed in the last batch: end, epochs, segments and indexes are equal."""
    written = metadata_log(folder / "written", batches(9))
    last = max(written.glob("*.log"))
    size = last.stat().st_size
    ends = [size - sum(map(len, batches(9)[count:])) for count in range(10)]
    cuts = sorted({end + shift for end in ends for shift in (-1, 0, 1, 17, 61)} & set(range(size + 1)))
    damages: list[tuple[int, int | None]] = [(cut, None) for cut in cuts]
    damages += [(size, size - back) for back in (1, 300, len(batches(9)[-1]) - 21, len(batches(9)[-1]) - 10)]
    for length, flipped in damages:
        with case("length", length), case("flipped", flipped):
            copies = [folder / name / "__cluster_metadata-0" for name in ("steward", "kafka")]
            for copy in copies:
                shutil.rmtree(copy.parent, ignore_errors=True)
                shutil.copytree(written, copy)
                content = bytearray(last.read_bytes()[:length])
                if flipped is not None:
                    content[flipped] ^= 0x5A
                (copy / last.name).write_bytes(content)
            steward = Log(copies[0], SETTINGS)
            found = (steward.start_offset, steward.end_offset, steward.epochs.latest or 0)
            steward.close()
            kafka = judge.open(copies[1], SEGMENT_BYTES)

            assert found == (kafka.start_offset, kafka.end_offset, kafka.last_epoch)
            assert contents(copies[0]) == contents(copies[1])


def test_kafka_opens_what_steward_has_truncated_and_the_other_way_round(judge: LogJudge, folder: Path) -> None:
    """At every batch: both drop the same bytes."""
    written = metadata_log(folder / "written", batches(40))
    for offset in (1, 26, 27, 28, 55, 79):
        with case("offset", offset):
            copies = [folder / name / "__cluster_metadata-0" for name in ("steward", "kafka")]
            for copy in copies:
                shutil.rmtree(copy.parent, ignore_errors=True)
                shutil.copytree(written, copy)
            steward = MetadataLog(copies[0], SETTINGS)
            steward.truncate_to(offset, high_watermark=0)
            end = steward.end_offset
            steward.close()
            judge.truncate(copies[1], SEGMENT_BYTES, offset)

            assert judge.open(copies[0], SEGMENT_BYTES).end_offset == end
            kafka = MetadataLog(copies[1], SETTINGS)
            assert kafka.end_offset == end
            kafka.close()
            logs = [{name: data for name, data in contents(copy).items() if name.endswith(".log")} for copy in copies]
            assert logs[0] == logs[1]


def test_a_fetched_snapshot_replaces_the_log_as_in_kafka(judge: LogJudge, folder: Path) -> None:
    """Killed between the two steps: each finishes it when it opens the folder."""
    written = metadata_log(folder / "written", batches(40))
    log = MetadataLog(written, SETTINGS)
    writer = log.fetch_snapshot(SnapshotId(300, 5))
    assert writer is not None
    writer.append(b"".join(snapshot_batches([NO_OP], epoch=5, timestamp_ms=1, last_contained_timestamp_ms=1)))
    log.finish_snapshot(writer)
    log.close()
    shutil.copytree(written, copy := folder / "copy" / "__cluster_metadata-0")

    assert judge.open(copy, SEGMENT_BYTES) == Opened(300, 300, 5, "300-5", "300-5")
    steward = MetadataLog(written, SETTINGS)
    assert (steward.start_offset, steward.end_offset, steward.last_fetched_epoch) == (300, 300, 5)
    steward.close()
    assert list_snapshots(written) == [SnapshotId(300, 5)]
