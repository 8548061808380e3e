"""Snapshots as files: names, partial files, parts by position, and their control records."""

from __future__ import annotations

import errno
import os
import stat
import uuid
from pathlib import Path

import pytest

from kafka_log.errors import CorruptLogError, LogWriteError
from kafka_log.files.snapshots import (
    SnapshotReader,
    SnapshotWriter,
    check_snapshot,
    delete_snapshot,
    delete_unneeded_snapshots,
    list_snapshots,
    write_snapshot,
)
from kafka_log.format.control_records import Voter, last_contained_timestamp_ms, snapshot_batches
from kafka_log.format.names import SnapshotId, snapshot_of
from kafka_wire.records import ControlType, CorruptBatch, batch_headers, control_type, decode_batches

ID = SnapshotId(42, 7)
NAME = "00000000000000000042-0000000007.checkpoint"
VOTER = Voter(1, uuid.UUID(int=5), (("CONTROLLER", "localhost", 9093),))


def names(folder: Path) -> list[str]:
    """Return the names of the files in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_a_snapshot_has_its_name_only_when_it_is_whole_and_never_changes(tmp_path: Path) -> None:
    """Kafka's names: offset and epoch, `.checkpoint.part` with a random part before."""
    with SnapshotWriter(tmp_path, ID) as writer:
        writer.append(b"one")
        partial = names(tmp_path)
        writer.append(b"two")
        path = writer.freeze()

    assert [snapshot_of(name) for name in partial] == [(ID, ".checkpoint.part")]
    assert names(tmp_path) == [path.name] == [NAME]
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"onetwo", 0o400)


def test_a_whole_snapshot_takes_no_more_bytes(tmp_path: Path) -> None:
    """FileRawSnapshotTest.testAppendToFrozenSnapshot, testCreateSnapshotWithSameId: a second one with its id replaces it as a whole."""
    for content in (b"one", b"another"):
        with SnapshotWriter(tmp_path, ID) as writer:
            writer.append(content)
            path = writer.freeze()
            with pytest.raises(ValueError, match="is whole or closed"):
                writer.append(b"two")
        assert (names(tmp_path), path.read_bytes()) == ([NAME], content)


def test_an_abandoned_snapshot_leaves_nothing(tmp_path: Path) -> None:
    """A fetch that fails, or a leader that is deposed."""
    with SnapshotWriter(tmp_path, ID) as writer:
        writer.append(b"one")

    assert names(tmp_path) == []
    with pytest.raises(ValueError, match="is whole or closed"):
        writer.append(b"two")


def test_a_full_disk_fails_a_part_and_the_writer_can_repeat_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The position at which the next part is fetched does not move."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with SnapshotWriter(tmp_path, ID) as writer:
        writer.append(b"one")
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwritev", full)
            with pytest.raises(LogWriteError, match="No space left on device"):
                writer.append(b"two")
        assert writer.size_bytes == len(b"one")
        writer.append(b"two")
        assert writer.freeze().read_bytes() == b"onetwo"


def test_a_snapshot_is_read_by_position(tmp_path: Path) -> None:
    """FetchSnapshot: parts need not be whole batches, and it can be deleted in the meantime."""
    write_snapshot(tmp_path, ID, [b"abc", b"def"])
    with SnapshotReader(tmp_path, ID) as reader:
        delete_snapshot(tmp_path, ID)
        delete_snapshot(tmp_path, ID)

        assert (reader.size_bytes, reader.read(0, 4), reader.read(4, 4), reader.read(6, 4)) == (6, b"abcd", b"ef", b"")
    assert names(tmp_path) == []


def test_only_whole_snapshots_at_or_above_the_logs_start_are_kept(tmp_path: Path) -> None:
    """KafkaRaftLog.recoverSnapshots."""
    kept = ["00000000000000000100-0000000003.checkpoint", "00000000000000000200-0000000004.checkpoint"]
    others = ["00000000000000000000.log", "quorum-state", "bootstrap.checkpoint"]
    gone = [
        "00000000000000000099-0000000003.checkpoint",
        "00000000000000000150-0000000003.checkpoint.deleted",
        "00000000000000000300-0000000005-8162536152637.checkpoint.part",
    ]
    for name in kept + others + gone:
        (tmp_path / name).touch()

    assert sorted(path.name for path in delete_unneeded_snapshots(tmp_path, 100)) == gone
    assert names(tmp_path) == sorted(kept + others)
    assert list_snapshots(tmp_path) == [SnapshotId(100, 3), SnapshotId(200, 4)]


def test_a_snapshot_has_a_header_its_records_in_batches_and_a_footer() -> None:
    """RecordsSnapshotWriter: offsets from 0 on, all with the snapshot's epoch."""
    values = [bytes([number]) for number in range(5)]
    content = b"".join(
        snapshot_batches(values, epoch=7, timestamp_ms=99, last_contained_timestamp_ms=88, max_records=2)
    )
    batches = list(decode_batches(content))

    assert [len(batch.records) for batch in batches] == [1, 2, 2, 1, 1]
    assert [batch.header.is_control for batch in batches] == [True, False, False, False, True]
    assert {batch.header.partition_leader_epoch for batch in batches} == {7}
    records = [record for batch in batches for record in batch.records]
    assert [record.offset for record in records] == list(range(7))
    assert [record.value for record in records[1:-1]] == values
    assert (control_type(records[0]), control_type(records[-1])) == (
        ControlType.SNAPSHOT_HEADER,
        ControlType.SNAPSHOT_FOOTER,
    )
    assert last_contained_timestamp_ms(content) == 88


@pytest.mark.parametrize(
    ("kraft_version", "voters", "kinds"),
    [
        (0, [VOTER], [ControlType.SNAPSHOT_HEADER]),
        (0, None, [ControlType.SNAPSHOT_HEADER]),
        (1, None, [ControlType.SNAPSHOT_HEADER, ControlType.KRAFT_VERSION]),
        (1, [VOTER], [ControlType.SNAPSHOT_HEADER, ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]),
    ],
)
def test_only_kraft_version_1_has_voters_in_a_snapshot(
    kraft_version: int, voters: list[Voter] | None, kinds: list[ControlType]
) -> None:
    """KIP-853; they are in the header's batch (RecordsSnapshotWriterTest, which refuses voters at version 0)."""
    header = next(
        snapshot_batches(
            [], epoch=0, timestamp_ms=1, last_contained_timestamp_ms=1, kraft_version=kraft_version, voters=voters
        )
    )

    assert [control_type(record) for batch in decode_batches(header) for record in batch.records] == kinds


def test_a_large_snapshot_is_divided_below_the_largest_batch() -> None:
    """8 MiB, which Kafka reads at most."""
    batches = list(snapshot_batches([bytes(3_000_000)] * 5, epoch=0, timestamp_ms=1, last_contained_timestamp_ms=1))

    assert [len(batch) // 1_000_000 for batch in batches] == [0, 6, 6, 3, 0]


def content_of(values: int) -> bytes:
    """Return a snapshot with this number of records, two in a batch."""
    return b"".join(
        snapshot_batches([bytes(50)] * values, epoch=7, timestamp_ms=1, last_contained_timestamp_ms=1, max_records=2)
    )


@pytest.mark.parametrize("chunk_bytes", [1, 100, 10_000])
def test_a_whole_snapshot_is_checked_in_parts_of_any_size(tmp_path: Path, chunk_bytes: int) -> None:
    """The result is its first batch: the one with the header."""
    write_snapshot(tmp_path, ID, [content_of(9)])
    with SnapshotReader(tmp_path, ID) as reader:
        first = check_snapshot(reader, chunk_bytes)

    ((start, header), *_) = batch_headers(content_of(9))
    assert (start, first) == (0, content_of(9)[: header.size_bytes])


@pytest.mark.slow
def test_a_snapshot_that_is_cut_short_at_any_byte_is_refused(tmp_path: Path) -> None:
    """Also between two batches: the footer is missing."""
    content = content_of(3)
    for length in range(len(content)):
        folder = tmp_path / str(length)
        write_snapshot(folder, ID, [content[:length]])
        with (
            SnapshotReader(folder, ID) as reader,
            pytest.raises(CorruptLogError, match=r"is invalid at position|is cut short"),
        ):
            check_snapshot(reader)


@pytest.mark.slow
def test_a_snapshot_with_any_changed_byte_is_refused(tmp_path: Path) -> None:
    """Except in the epoch of a batch, which has no checksum."""
    content = content_of(1)
    epochs = {start + shift for start, _ in batch_headers(content) for shift in range(12, 16)}
    for position in sorted(set(range(len(content))) - epochs):
        folder = tmp_path / str(position)
        changed = content[:position] + bytes([content[position] ^ 0x55]) + content[position + 1 :]
        write_snapshot(folder, ID, [changed])
        with SnapshotReader(folder, ID) as reader, pytest.raises(CorruptLogError):
            check_snapshot(reader)


@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_a_snapshot_without_its_header_is_refused(content: bytes) -> None:
    """A file that is cut short, or is something else."""
    with pytest.raises(CorruptBatch, match="does not begin with its header"):
        last_contained_timestamp_ms(content)
