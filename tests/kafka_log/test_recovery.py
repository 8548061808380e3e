"""Recovery: what opening a log does with every kind of damage."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.errors import CorruptLogError, UnreadableFileError
from kafka_log.files.log import Log
from kafka_log.format.roll import LogSettings
from kafka_wire.records import HEADER_BYTES
from tests.kafka_log.batches import batch, fast_folder

SETTINGS = LogSettings(segment_bytes=1_000, index_interval_bytes=150)


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder in memory."""
    with fast_folder() as empty:
        yield empty


def write(folder: Path, count: int = 12) -> tuple[Path, list[bytes]]:
    """Write batches of one to three records in two epochs; return the closed log's folder and the batches."""
    log, batches, offset = Log(folder / "t-0", SETTINGS), [], 0
    for number in range(count):
        records = 1 + number % 3
        batches.append(batch(offset, records=records, size_bytes=10, epoch=number // 7, timestamp_ms=1_000 + number))
        log.append(batches[-1])
        offset += records
    log.close()
    return folder / "t-0", batches


def last_segment(folder: Path) -> Path:
    """Return the file of the active segment."""
    return max(folder.glob("*.log"))


def everything(log: Log) -> bytes:
    """Return the content of all segments."""
    return b"".join(path.read_bytes() for path in sorted(log.folder.glob("*.log")))


def test_a_log_cut_at_any_byte_of_its_last_segment_keeps_exactly_the_whole_batches(folder: Path) -> None:
    """B4, B5. A kill -9 or a crash of the machine in the middle of a write; the log can be appended to afterwards."""
    written, batches = write(folder)
    last, copy = last_segment(written), folder / "copy-0"
    content = last.read_bytes()
    before = b"".join(batches).removesuffix(content)
    kept, ends = before, [len(before)]
    for one in batches[-(len(batches) - _count_in(before, batches)) :]:
        kept += one
        ends.append(len(kept))
    for cut in range(len(content) + 1):
        shutil.copytree(written, copy, dirs_exist_ok=True)
        with (copy / last.name).open("r+b") as file:
            file.truncate(cut)
        log = Log(copy, SETTINGS)
        end = max(end for end in ends if end <= len(before) + cut)
        assert everything(log) == b"".join(batches)[:end]
        assert log.end_offset == sum(1 + number % 3 for number in range(_count_in(kept[:end], batches)))
        log.append(batch(log.end_offset, epoch=9))
        assert log.epochs.latest == 9
        log.close()
        shutil.rmtree(copy)


def _count_in(content: bytes, batches: list[bytes]) -> int:
    count = 0
    while content:
        content = content.removeprefix(batches[count])
        count += 1
    return count


def test_a_log_whose_last_batch_has_any_byte_changed_is_cut_in_front_of_it(folder: Path) -> None:
    """B4. Also where the changed byte is a length that reaches behind the file. The checksum covers neither offset nor epoch."""
    written, batches = write(folder)
    last, copy = last_segment(written), folder / "copy-0"
    content, start = last.read_bytes(), len(last.read_bytes()) - len(batches[-1])
    for position in [*range(start + 8, start + 12), *range(start + 16, len(content))]:
        shutil.copytree(written, copy)
        changed = bytearray(content)
        changed[position] ^= 0x41
        (copy / last.name).write_bytes(changed)
        log = Log(copy, SETTINGS)
        assert everything(log) == b"".join(batches[:-1])
        log.close()
        shutil.rmtree(copy)


@pytest.mark.parametrize(("offset", "opens"), [(99, False), (2, True)])
def test_a_valid_last_batch_at_a_wrong_offset_is_corruption_above_and_cut_below_the_expected_offset(
    folder: Path, offset: int, opens: bool
) -> None:
    """B2, B4. Above it, batches between the two are missing. Below it, an earlier content of the disk came back, and nothing is missing."""
    written, batches = write(folder)
    last = last_segment(written)
    content = last.read_bytes().removesuffix(batches[-1])
    last.write_bytes(content + batch(offset))
    if not opens:
        with pytest.raises(CorruptLogError, match=f"base offset is {offset}, expected is "):
            Log(written, SETTINGS)
        return
    log = Log(written, SETTINGS)
    assert everything(log) == b"".join(batches[:-1])
    log.close()


def test_a_log_with_a_changed_byte_in_front_of_a_valid_batch_is_not_opened(folder: Path) -> None:
    """B4, Q11. In any segment, and nothing is changed on the disk; Kafka would cut the log there."""
    written, batches = write(folder)
    for path in sorted(written.glob("*.log"))[:-1]:
        content = path.read_bytes()
        path.write_bytes(content[:-3] + b"?" + content[-2:])
        with pytest.raises(CorruptLogError, match="segments with content follow, the first from offset"):
            Log(written, SETTINGS)
        assert path.read_bytes() == content[:-3] + b"?" + content[-2:]
        path.write_bytes(content)
    last = last_segment(written)
    content = last.read_bytes()
    for position in (8, 16, 20, HEADER_BYTES):
        last.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        with pytest.raises(
            CorruptLogError, match=f"Found invalid messages in log segment {last} at byte offset 0, offset "
        ):
            Log(written, SETTINGS)
    last.write_bytes(content)
    log = Log(written, SETTINGS)
    assert everything(log) == b"".join(batches)
    log.close()


def test_a_sector_that_the_disk_cannot_read_is_no_end_of_the_log(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B4, Q11. An I/O error stops the opening; nothing is cut."""
    written, batches = write(folder)

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(os, "pread", fail)
        with pytest.raises(
            CorruptLogError, match=r"Failed to read log segment .* at byte offset 0: Input/output error\."
        ):
            Log(written, SETTINGS)
    log = Log(written, SETTINGS)
    assert everything(log) == b"".join(batches)
    log.close()


def test_a_broker_may_cut_at_a_corrupt_batch_as_kafka_does(folder: Path) -> None:
    """All segments behind the batch are deleted (LogLoader.recoverLog)."""
    written, batches = write(folder)
    first = min(written.glob("*.log"))
    content = bytearray(first.read_bytes())
    content[-1] ^= 1
    first.write_bytes(content)
    log = Log(written, LogSettings(segment_bytes=1_000, index_interval_bytes=150, cut_at_corruption=True))

    assert log.segment_offsets == [0]
    assert b"".join(batches).startswith(everything(log))
    assert len(everything(log)) == len(content) - len(batches[_count_in(everything(log), batches)])
    log.close()


def test_a_missing_segment_is_corruption(folder: Path) -> None:
    """B2. Kafka opens such a log with a gap."""
    written, _ = write(folder, 40)
    sorted(written.glob("*.log"))[1].unlink()

    with pytest.raises(CorruptLogError, match="the segment starts at offset"):
        Log(written, SETTINGS)


def test_an_empty_segment_from_an_interrupted_reset_is_deleted(folder: Path) -> None:
    """`truncate_fully_and_start_at` creates the new segment before it deletes the others."""
    written, _ = write(folder)
    end = Log(written, SETTINGS).end_offset
    (written / "00000000000000009999.log").touch()
    log = Log(written, SETTINGS)

    assert log.end_offset == end
    assert 9999 not in log.segment_offsets
    log.append(batch(end, epoch=5))
    log.close()


def test_zeros_behind_the_last_batch_are_cut(folder: Path) -> None:
    """Some file systems extend a file before they write its data."""
    written, batches = write(folder)
    with last_segment(written).open("ab") as file:
        file.write(bytes(5_000))
    log = Log(written, SETTINGS)

    assert everything(log) == b"".join(batches)
    log.close()


def test_segments_below_the_recovery_point_are_not_read(folder: Path) -> None:
    """They were flushed with their indexes. Without an index they are checked all the same."""
    written, _ = write(folder, 40)
    paths = sorted(written.glob("*.log"))
    content = paths[0].read_bytes()
    paths[0].write_bytes(content[:-1] + b"?")
    recovery_point = int(paths[1].stem)
    Log(written, SETTINGS, recovery_point=recovery_point).close()
    epochs = (written / "leader-epoch-checkpoint").read_text()
    (written / "leader-epoch-checkpoint").write_text("nonsense\n\n")
    with pytest.raises(UnreadableFileError):
        Log(written, SETTINGS, recovery_point=recovery_point)
    (written / "leader-epoch-checkpoint").write_text(epochs)
    paths[0].with_suffix(".index").unlink()

    with pytest.raises(CorruptLogError):
        Log(written, SETTINGS, recovery_point=recovery_point)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("content", [None, b"", b"\0" * 10_000, b"nonsense!"])
def test_indexes_are_built_again_from_the_log(folder: Path, suffix: str, content: bytes | None) -> None:
    """B5. Kafka's allocated index of zeros, an empty and a damaged one, and none."""
    written, _ = write(folder, 40)
    good = {path: path.read_bytes() for path in written.glob(f"*{suffix}")}
    for path in good:
        path.unlink()
        if content is not None:
            path.write_bytes(content)
    Log(written, SETTINGS).close()

    assert {path: path.read_bytes() for path in written.glob(f"*{suffix}")} == good


def test_what_interrupted_deletions_left_is_removed(folder: Path) -> None:
    """Indexes without a log, and files that Kafka renamed before it deletes them."""
    written, _ = write(folder)
    leftovers = ["00000000000000000500.index", "00000000000000000000.log.deleted", "00000000000000000007.log.cleaned"]
    for name in leftovers:
        (written / name).touch()
    Log(written, SETTINGS).close()

    assert [name for name in leftovers if (written / name).exists()] == []


def test_a_swap_file_of_a_compaction_is_left_to_kafka(folder: Path) -> None:
    """The quorum's log is never compacted."""
    written, _ = write(folder)
    (written / "00000000000000000000.log.swap").touch()

    with pytest.raises(UnreadableFileError, match="open the folder with Kafka once"):
        Log(written, SETTINGS)


@pytest.mark.parametrize("wrong", ["0\n2\n0 3\n7 5\n", "", "nonsense\n\n", "0\n9\n0 0\n"])
def test_wrong_epochs_on_disk_are_corrected_from_the_batches(folder: Path, wrong: str) -> None:
    """Kafka only adds to them; a truncation whose epochs were not yet on disk leaves wrong ones."""
    written, _ = write(folder)
    right = (written / "leader-epoch-checkpoint").read_text()
    (written / "leader-epoch-checkpoint").write_text(wrong)
    Log(written, SETTINGS).close()

    assert right == "0\n2\n0 0\n1 13\n"
    assert (written / "leader-epoch-checkpoint").read_text() == right


@given(st.binary(max_size=400))
def test_any_bytes_behind_a_valid_batch_end_in_a_readable_log(tail: bytes) -> None:
    """Whatever a disk returns."""
    with fast_folder() as folder:
        log = Log(folder / "t-0", SETTINGS)
        log.append(whole := batch(0))
        log.close()
        with last_segment(folder / "t-0").open("ab") as file:
            file.write(tail)
        log = Log(folder / "t-0", SETTINGS)
        assert everything(log) == whole
        log.close()
