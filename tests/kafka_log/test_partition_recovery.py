"""Opening a partition's folder: recovery after a crash as Kafka's LogLoader does it, and clean starts."""

from __future__ import annotations

import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_log.errors import UnreadableFileError, UnsupportedFormatError
from kafka_log.files.partition_settings import Checkpoints
from kafka_log.format.transaction_index import AbortedTransaction, encode_transaction
from kafka_wire.records import batch_headers, encode_batch
from tests.cases import case
from tests.effort import EXHAUSTIVE
from tests.kafka_log.batches import fast_folder
from tests.kafka_log.judge import NOW_MS, PartitionJudge
from tests.kafka_log.partitions import CONFIG, Session, comparable, files
from tests.kafka_log.producer_cases import data, marker
from tests.kafka_log.test_leader_append import changed, record


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder in memory."""
    with fast_folder() as empty:
        yield empty


def plain(size: int, shift: int = 0) -> bytes:
    """Encode a batch without a producer."""
    return encode_batch([record(timestamp_ms=NOW_MS + shift, value=bytes(size))])


def leader(content: bytes, epoch: int = 0, origin: str = "CLIENT") -> tuple[Any, ...]:
    """Return the step of a leader."""
    return ("lead", content, epoch, origin, 0)


STEPS = [
    leader(data(1, 0)),
    leader(plain(900)),
    leader(data(2, 0, transactional=True)),
    leader(plain(700, 5)),
    leader(marker(2, abort=True), origin="COORDINATOR"),
    leader(data(1, 1), 1),
    leader(plain(900, 3), 1),
    leader(data(2, 1, transactional=True), 1),
    leader(data(3, 0, records=3), 1),
    leader(plain(300, 9), 1),
    ("roll",),
    leader(data(1, 2, records=2), 1),
    leader(data(3, 3, transactional=True), 2),
    leader(plain(150, 20), 2),
    leader(marker(2, abort=True), 2, "COORDINATOR"),
    leader(data(1, 4), 2),
    leader(plain(120, 1), 2),
    leader(data(2, 2), 3),
    leader(marker(3, abort=True), 3, "COORDINATOR"),
    leader(data(4, 7, epoch=2), 3),
]
"""Three segments; the last one has producers, ends of transactions that began before it and in it, two epochs, and index entries."""


def written(parent: Path) -> Path:
    """Write a log, close it and return its folder."""
    session = Session(parent / "t-0")
    for step in STEPS:
        assert "error" not in session.take(step)
    assert len(session.log.log.segment_offsets) == 3
    session.log.close()
    return parent / "t-0"


def last_segment(folder: Path) -> Path:
    """Return the file of the active segment."""
    return max(folder.glob("*.log"))


def copies_of(source: Path, parent: Path, **changes: bytes) -> tuple[Path, Path]:
    """Return two copies of a folder with changed files, for Steward and for Kafka."""
    copies = parent / "steward" / "t-0", parent / "kafka" / "t-0"
    for copy in copies:
        shutil.rmtree(copy.parent, ignore_errors=True)
        shutil.copytree(source, copy)
        for name, content in changes.items():
            (copy / name).write_bytes(content)
    return copies


def steward_opens(folder: Path, checkpoints: Checkpoints) -> dict[str, Any]:
    """Open a log and close it; return its state."""
    session = Session(folder, checkpoints)
    state = session.state()
    session.log.close()
    return state


def kafka_opens(judge: PartitionJudge, folder: Path, checkpoints: Checkpoints) -> dict[str, Any]:
    """Open a log with Kafka and close it; return its state."""
    answer = judge.run(
        folder,
        config=CONFIG,
        recovery_point=checkpoints.recovery_point,
        log_start_offset=checkpoints.log_start_offset,
        clean=checkpoints.is_clean,
    )
    return comparable(answer)


# Crashes


FIELDS = (0, 7, 8, 11, 12, 15, 16, 17, 21, 22, 23, 27, 35, 43, 51, 53, 57, 61, 70)
"""Positions in a batch: the first or last byte of each field of its header, and two in its records."""
CUTS = (0, 1, 12, 17, 60, 61, 62)


def damages(content: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Yield the last segment cut at each byte, and with each byte changed; in a normal run, in some of its batches."""
    heads = [position for position, _ in batch_headers(content)]
    chosen = [heads[0], heads[3], *heads[-2:]]
    everywhere = range(len(content) + 1)
    for position in everywhere if EXHAUSTIVE else sorted({head + cut for head in chosen for cut in CUTS}):
        yield "cut", position, content[:position]
    for position in everywhere[:-1] if EXHAUSTIVE else sorted({head + field for head in chosen for field in FIELDS}):
        yield "changed", position, content[:position] + bytes([content[position] ^ 0x41]) + content[position + 1 :]


UNCHECKED = {*range(8), 16}
"""Bytes of a header that the checksum does not cover: base offset and format. Kafka keeps such a batch, or cannot open the log."""


@pytest.mark.java
@pytest.mark.slow
def test_a_log_with_a_damaged_last_segment_is_recovered_as_by_kafka(
    partition_judge: PartitionJudge, folder: Path
) -> None:
    """LogLoader: end, producers, indexes, snapshots; with the log flushed up to its last segment, and not at all (ADR 49)."""
    source = written(folder / "written")
    last = last_segment(source)
    content = last.read_bytes()
    heads = [position for position, _ in batch_headers(content)]
    for kind, position, damaged in damages(content):
        checkpoints = Checkpoints(recovery_point=int(last.stem) if position % 2 else 0)
        with case(kind, position):
            steward, kafka = copies_of(source, folder, **{last.name: damaged})
            state = steward_opens(steward, checkpoints)
            head = max((head for head in heads if head <= position), default=0)
            if kind == "changed" and position - head in UNCHECKED:
                ends = {head, *[other for other in heads if other > head][:1], len(content)}
                assert (steward / last.name).read_bytes() in {damaged[:end] for end in ends}
                continue
            expected = kafka_opens(partition_judge, kafka, checkpoints)
            assert state == expected
            assert files(steward) == files(kafka)


# Other states of a folder


def corrupt(folder: Path, pattern: str) -> None:
    """Change the last byte of files."""
    for path in folder.glob(pattern):
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def remove(folder: Path, *patterns: str) -> None:
    """Delete files."""
    for pattern in patterns:
        for path in folder.glob(pattern):
            path.unlink()


def rename(folder: Path, suffix: str, *base_offsets: int) -> None:
    """Add a suffix to the files of segments."""
    for base_offset in base_offsets:
        for path in folder.glob(f"{base_offset:020d}.*"):
            if path.suffix in {".log", ".index", ".timeindex", ".txnindex"}:
                path.rename(path.with_name(path.name + suffix))


def compacted(folder: Path) -> None:
    """Leave a compaction of the first two segments at the moment before the old ones are deleted."""
    first, second, _ = sorted(folder.glob("*.log"))
    kept = list(batch_headers(first.read_bytes()))[1:]
    whole = first.read_bytes()[kept[0][0] :] + second.read_bytes()
    first.with_name(first.name + ".swap").write_bytes(whole)
    first.with_name(f"{first.stem}.index.swap").write_bytes(b"")
    first.with_name(f"{first.stem}.timeindex.swap").write_bytes(b"")


def half_compacted(folder: Path) -> None:
    """Leave a split of a segment of which a part is not whole: it is undone."""
    first, second, _ = sorted(folder.glob("*.log"))
    second.with_name(second.name + ".swap").write_bytes(b"whole")
    first.with_name(first.name + ".cleaned").write_bytes(b"half")


FOLDERS = {
    "closed": lambda _: None,
    "no snapshots": lambda folder: remove(folder, "*.snapshot"),
    "no last snapshot": lambda folder: remove(folder, max(folder.glob("*.snapshot")).name),
    "snapshots of no segment": lambda folder: [
        shutil.copy(max(folder.glob("*.snapshot")), folder / f"{offset:020d}.snapshot") for offset in (3, 4, 9, 15)
    ],
    "damaged snapshots": lambda folder: corrupt(folder, "*.snapshot"),
    "no indexes": lambda folder: remove(folder, "*.index", "*.timeindex"),
    "no transaction indexes": lambda folder: remove(folder, "*.txnindex"),
    "damaged transaction indexes": lambda folder: [
        path.write_bytes(encode_transaction(AbortedTransaction(2, -9, -8, -7))) for path in folder.glob("*.txnindex")
    ],
    "no epochs": lambda folder: remove(folder, "leader-epoch-checkpoint"),
    "an index without a log": lambda folder: (folder / f"{99:020d}.index").write_bytes(bytes(8)),
    "deleted files": lambda folder: rename(folder, ".deleted", 0),
    "unfinished compaction": lambda folder: (folder / f"{0:020d}.log.cleaned").write_bytes(b"unfinished"),
    "finished compaction": compacted,
    "half of a split": half_compacted,
    "damage in the first segment": lambda folder: corrupt(folder, min(folder.glob("*.log")).name),
    "no last segment": lambda folder: max(folder.glob("*.log")).unlink(),
    "empty last segment": lambda folder: max(folder.glob("*.log")).write_bytes(b""),
    "no segment": lambda folder: remove(folder, "*"),
}
CHECKPOINTS = {
    "no checkpoint": Checkpoints(),
    "flushed up to the last segment": Checkpoints(recovery_point=12),
    "clean": Checkpoints(recovery_point=21, is_clean=True),
    "start inside of a segment": Checkpoints(log_start_offset=6),
    "clean start at a segment": Checkpoints(recovery_point=21, log_start_offset=12, is_clean=True),
    "start above the end": Checkpoints(log_start_offset=100),
}
INCONSISTENT = "empty last segment"
"""After a clean shutdown Kafka trusts indexes that point behind the end of this segment; here it is checked."""


@pytest.mark.java
@pytest.mark.parametrize("found", FOLDERS)
def test_a_folder_is_opened_as_by_kafka(partition_judge: PartitionJudge, folder: Path, found: str) -> None:
    """LogLoader, with each state of the checkpoints."""
    source = written(folder / "written")
    FOLDERS[found](source)
    for name, checkpoints in CHECKPOINTS.items():
        with case(name):
            steward, kafka = copies_of(source, folder)
            state = steward_opens(steward, checkpoints)
            assert state == kafka_opens(partition_judge, kafka, checkpoints)
            if not (found == INCONSISTENT and checkpoints.is_clean):
                assert files(steward) == files(kafka)


@pytest.mark.java
def test_kafka_opens_a_folder_that_steward_closed_and_the_other_way_round(
    partition_judge: PartitionJudge, folder: Path
) -> None:
    """A broker's folder may change hands after a clean shutdown: both append to it, and its files are the same."""
    steward, kafka = copies_of(written(folder / "written"), folder)
    clean = Checkpoints(recovery_point=100, is_clean=True)
    more = [leader(data(1, 5), 4), leader(data(4, 8, epoch=2), 4), leader(data(1, 3), 4)]
    session = Session(kafka, clean)
    results = [session.take(step) for step in more]
    session.log.close()
    answer = partition_judge.run(steward, *more, config=CONFIG, recovery_point=100, clean=True)

    assert [{key: result[key] for key in result if key != "message"} for result in answer["results"]] == results
    assert [sorted(result) for result in results] == [["first_offset", "last_offset"]] * 2 + [["error"]]
    assert files(steward) == files(kafka)


def test_a_torn_transaction_index_of_a_flushed_segment_is_built_again(folder: Path) -> None:
    """Kafka leaves it torn, and a consumer gets records of an aborted transaction."""
    source = written(folder)
    (index,) = source.glob("00000000000000000000.txnindex")
    content = index.read_bytes()
    index.write_bytes(content[:-5])
    steward_opens(source, Checkpoints(recovery_point=21, is_clean=True))

    assert index.read_bytes() == content


def test_a_swap_file_that_is_no_segment_stops_the_start_and_deletes_nothing(folder: Path) -> None:
    """The segments that it should replace are still there."""
    source = written(folder)
    (source / f"{0:020d}.log.swap").write_bytes(b"nonsense" * 20)
    before = files(source)

    with pytest.raises(UnreadableFileError, match="The segments that it replaces are still in the folder"):
        steward_opens(source, Checkpoints())
    assert files(source) == before


def test_a_marker_that_cannot_be_read_leaves_its_transaction_open(folder: Path) -> None:
    """A follower's log has what its leader has; Kafka does not open such a log."""
    session = Session(folder / "t-0")
    session.take(leader(data(1, 0, transactional=True)))
    session.take(leader(marker(1, abort=True), origin="COORDINATOR"))
    session.log.close()
    path = last_segment(folder / "t-0")
    content = path.read_bytes()
    head = [position for position, _ in batch_headers(content)][1]
    bad = changed(content[head:], 61, b"\x7f")
    path.write_bytes(content[:head] + bad)

    assert steward_opens(folder / "t-0", Checkpoints())["producers"][0]["transaction_first_offset"] == 0


def old_message(message_format: int, offset: int) -> bytes:
    """Encode a message of format 0 or 1."""
    timestamp = struct.pack(">q", NOW_MS) if message_format else b""
    checked = bytes([message_format, 0]) + timestamp + struct.pack(">ii", -1, 5) + b"value"
    return struct.pack(">qiI", offset, 4 + len(checked), zlib.crc32(checked)) + checked


@pytest.mark.parametrize("message_format", [0, 1])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_log_with_an_old_message_format_is_left_as_it_is_with_the_reason(
    folder: Path, message_format: int, is_first: bool, is_clean: bool
) -> None:
    """It is not damage, and nothing is cut. Inside of a segment it is found when the segment is read."""
    source = written(folder)
    last = last_segment(source)
    message = old_message(message_format, 12 if is_first else 21)
    last.write_bytes(message + last.read_bytes() if is_first else last.read_bytes() + message)
    before = {path: path.read_bytes() for path in source.glob("*.log")}

    with pytest.raises(UnsupportedFormatError, match=f"has messages of format {message_format} at byte offset"):
        steward_opens(source, Checkpoints(recovery_point=12, is_clean=is_clean))
    assert {path: path.read_bytes() for path in source.glob("*.log")} == before


def test_a_damaged_message_of_an_old_format_is_damage(folder: Path) -> None:
    """A format byte that was changed to 0 or 1 has no right checksum."""
    source = written(folder)
    last = last_segment(source)
    content = last.read_bytes()
    last.write_bytes(content + old_message(1, 21)[:-1] + b"?")
    steward_opens(source, Checkpoints())

    assert last.read_bytes() == content
