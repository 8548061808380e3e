"""The log: what it accepts, returns, flushes and refuses. Damage is in test_recovery.py."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.errors import CorruptLogError, FlushFailedError, InvalidAppendError, LogWriteError, OffsetOutOfRangeError
from kafka_log.files.log import Log
from kafka_log.format.roll import LogSettings
from kafka_wire.records import batch_headers
from tests.kafka_log.batches import batch, fast_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder in memory."""
    with fast_folder() as empty:
        yield empty


@pytest.fixture
def log(folder: Path) -> Iterator[Log]:
    """An empty log with small segments."""
    opened = Log(folder / "t-0", LogSettings(segment_bytes=1_000, index_interval_bytes=150))
    yield opened
    opened.close()


def fill(log: Log, count: int = 20) -> list[bytes]:
    """Append batches of two records and return them."""
    batches = [batch(log.end_offset + 2 * number, records=2, size_bytes=40) for number in range(count)]
    for one in batches:
        log.append(one)
    return batches


# Appending


def test_a_leader_assigns_offsets_and_epoch_to_each_batch(log: Log) -> None:
    """B2. The checksum covers neither, so that it stays valid."""
    fill(log, 1)
    appended = log.append_as_leader(batch(0, records=3) + batch(0), 5)

    assert (appended.first_offset, appended.last_offset, log.end_offset) == (2, 5, 6)
    headers = [header for _, header in batch_headers(log.read(2, 10_000))]
    assert [(header.base_offset, header.partition_leader_epoch) for header in headers] == [(2, 5), (5, 5)]
    assert log.epochs.entries == ((0, 0), (5, 2))


WHOLE = batch(0)
REFUSED = {
    "nothing": (b"", "There is no batch to append."),
    "gap": (batch(1), "A batch starts at offset 1, the next offset is 0 (log start offset 0)."),
    "repeated offset": (WHOLE + WHOLE, "A batch starts at offset 0, the next offset is 1 (log start offset 0)."),
    "cut short": (WHOLE[:-1], "The batch at position 0 is invalid: a batch of 78 bytes has only 77 bytes."),
    "bytes behind it": (
        WHOLE + b"\0" * 9,
        "The batch at position 78 is invalid: 9 bytes at the end are no whole batch.",
    ),
    "above a segment": (batch(0, size_bytes=950), "1020 bytes of batches exceed the largest segment of 1000 bytes."),
    "format 1": (
        WHOLE[:16] + b"\x01" + WHOLE[17:],
        "The batch at position 0 is invalid: message format 1 is not supported, only 2.",
    ),
    "length": (
        WHOLE[:8] + b"\0\0\0\x05" + WHOLE[12:],
        "The batch at position 0 is invalid: record size 17 is smaller than the minimum of 61.",
    ),
}


@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED)
def test_batches_that_do_not_continue_the_log_are_refused(log: Log, data: bytes, reason: str) -> None:
    """With the reason, and without any effect."""
    with pytest.raises(InvalidAppendError) as refused:
        log.append(data)

    assert str(refused.value) == reason
    assert (log.end_offset, log.size_bytes) == (0, 0)


def test_a_batch_with_a_wrong_checksum_is_refused(log: Log) -> None:
    """B4. In Kafka's words (UnifiedLog.analyzeAndValidateRecords)."""
    with pytest.raises(InvalidAppendError, match=r"record is corrupt \(stored crc = \d+, computed crc = \d+\)"):
        log.append(batch(0)[:-1] + b"?")


@given(st.binary(min_size=1, max_size=300))
def test_bytes_that_are_no_batches_are_refused(data: bytes) -> None:
    """KafkaRaftLogTest.testRandomRecords: whatever another node sends."""
    with fast_folder() as folder:
        log = Log(folder / "t-0")
        with pytest.raises(InvalidAppendError):
            log.append(data)
        assert (log.end_offset, log.size_bytes, log.epochs.latest) == (0, 0, None)
        log.close()


def test_a_batch_above_the_largest_size_is_refused(folder: Path) -> None:
    """max.message.bytes, and 8 MiB in the quorum."""
    log = Log(folder / "t-0", LogSettings(max_batch_bytes=100))

    with pytest.raises(InvalidAppendError, match=r"A batch of 118 bytes exceeds the largest of 100 bytes\."):
        log.append(batch(0, size_bytes=50))
    log.close()


def test_a_compacted_log_takes_gaps_but_no_lower_offsets(folder: Path) -> None:
    """A follower of a compacted topic gets batches with gaps between them."""
    log = Log(folder / "t-0", LogSettings(contiguous=False))
    log.append(batch(5) + batch(9))

    with pytest.raises(InvalidAppendError):
        log.append(batch(9))
    log.close()
    reopened = Log(folder / "t-0", LogSettings(contiguous=False))
    assert (reopened.end_offset, reopened.read(6, 1)) == (10, batch(9))
    reopened.close()


def test_a_segment_is_rolled_by_the_age_of_its_batches_not_by_the_clock(folder: Path) -> None:
    """LogSegment.shouldRoll: without a timestamp the clock counts."""
    now = 1_000.0
    log = Log(folder / "t-0", LogSettings(segment_ms=100), clock=lambda: now)
    log.append(batch(0, timestamp_ms=5_000))
    now += 3_600
    log.append(batch(1, timestamp_ms=5_100))
    log.append(batch(2, timestamp_ms=5_101))
    log.append(batch(3, timestamp_ms=4_000))

    assert log.segment_offsets == [0, 2]
    log.truncate_fully_and_start_at(10)
    log.append(batch(10, timestamp_ms=-1))
    now += 3_600
    log.append(batch(11, timestamp_ms=-1))
    assert log.segment_offsets == [10, 11]
    log.close()


def test_a_segment_holds_no_offset_that_its_index_cannot_express(folder: Path) -> None:
    """KAFKA-6264: relative offsets are int32."""
    log = Log(folder / "t-0", LogSettings(contiguous=False))
    log.append(batch(0))
    log.append(batch(2**31 - 1))
    log.append(batch(2**31))

    assert log.segment_offsets == [0, 2**31]
    log.close()


# Reading


def test_a_read_returns_at_least_the_whole_first_batch(log: Log) -> None:
    """KIP-74."""
    batches = fill(log)

    assert log.read(5, 0) == batches[2]
    assert log.read(4, len(batches[2]) + 10) == batches[2] + batches[3][:10]


def test_a_read_stays_below_its_limit_and_in_one_segment(log: Log) -> None:
    """B3: the limit is the high watermark; a batch that reaches it is not returned."""
    batches = fill(log)

    assert log.read(0, 10_000, up_to=5) == b"".join(batches[:2])
    assert log.read(6, 10_000, up_to=6) == b""
    assert log.read(log.segment_offsets[1], 10_000).startswith(batches[log.segment_offsets[1] // 2])
    assert len(log.read(0, 10_000)) <= 1_000


def test_an_offset_outside_of_the_log_cannot_be_read(log: Log) -> None:
    """OFFSET_OUT_OF_RANGE; the end itself is readable, and empty."""
    fill(log)
    log.delete_before(10)

    assert log.read(40, 100) == b""
    for offset in (9, 41):
        with pytest.raises(OffsetOutOfRangeError, match=f"Offset {offset} is not between 10 and 40"):
            log.read(offset, 100)


def test_deleting_moves_the_start_and_drops_only_whole_segments_below_it(log: Log) -> None:
    """The active segment stays, also when all of it is below the start."""
    fill(log)
    second = log.segment_offsets[1]

    assert (log.delete_before(second - 1), log.start_offset, log.segment_offsets[0]) == (0, second - 1, 0)
    assert (log.delete_before(second), log.start_offset, log.segment_offsets[0]) == (1, second, second)
    left = len(log.segment_offsets)
    assert log.delete_before(40) == left - 1
    assert (log.start_offset, log.end_offset, len(log.segment_offsets)) == (40, 40, 1)
    with pytest.raises(OffsetOutOfRangeError):
        log.delete_before(41)


def test_a_truncation_drops_the_batch_that_it_hits(log: Log) -> None:
    """The end is then in front of that batch."""
    batches = fill(log)

    assert log.truncate_to(7)
    assert (log.end_offset, log.read(0, 10_000)) == (6, b"".join(batches[:3]))
    assert not log.truncate_to(6)


def test_a_truncation_below_the_start_empties_the_log(log: Log) -> None:
    """UnifiedLog.truncateTo."""
    log.truncate_fully_and_start_at(100)
    log.append(batch(100, epoch=3))

    assert log.truncate_to(50)
    assert (log.start_offset, log.end_offset, log.segment_offsets, log.epochs.entries) == (50, 50, [50], ())


def test_an_epoch_without_records_is_forgotten_by_a_truncation_to_the_end(log: Log) -> None:
    """A leader that wrote nothing; UnifiedLog.truncateTo."""
    fill(log, 2)
    log.assign_epoch(4)

    assert log.epochs.entries == ((0, 0), (4, 4))
    log.truncate_to(4)
    assert log.epochs.entries == ((0, 0),)


@pytest.mark.parametrize("kept_bytes", [0, 30, 200, 250])
def test_a_read_of_a_file_that_something_else_has_cut_ends_with_an_error(log: Log, kept_bytes: int) -> None:
    """UnifiedLog's reads fail as well, where a file ends before its last batch."""
    batches = fill(log, 3)
    size_bytes = sum(map(len, batches))
    path = log.segments[-1].path
    os.truncate(path, kept_bytes)

    with pytest.raises(
        CorruptLogError, match=rf"{path} at byte offset \d+: the file has {kept_bytes} of its {size_bytes} bytes"
    ):
        log.read(log.end_offset - 1, 1_000)


def test_a_read_behind_the_end_of_a_segment_is_empty(log: Log) -> None:
    """Another thread may have truncated the segment since the position was found."""
    fill(log, 3)
    segment = log.segments[-1]

    assert segment.read(segment.size_bytes + 1, 100) == b""


# Flushing


def test_only_what_was_there_at_its_beginning_counts_as_flushed(log: Log) -> None:
    """Q6. A flush runs in another thread while the log goes on."""
    fill(log, 1)
    pending = log.begin_flush()
    fill(log, 1)
    thread = threading.Thread(target=pending.run)
    thread.start()
    thread.join()

    assert (log.flushed_offset, log.complete(pending), log.end_offset) == (0, 2, 4)
    assert log.flush() == 4


def test_what_is_truncated_while_it_is_flushed_does_not_count(log: Log) -> None:
    """Q6. Also where the flushed segment is deleted in the meantime."""
    fill(log)
    pending = log.begin_flush()
    log.truncate_to(4)
    fill(log, 3)
    pending.run()

    assert log.complete(pending) == log.flushed_offset
    assert log.flushed_offset == 4


def test_a_failed_fsync_is_never_repeated(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Q6. The kernel may report the second one as a success although the data is lost: the log is unusable from then on."""
    fill(log, 1)

    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", fail)
        with pytest.raises(
            FlushFailedError, match=r"Failed to flush .*: Input/output error\. The process must exit and recover\."
        ):
            log.flush()
    for action in (
        log.flush,
        lambda: log.append(batch(2)),
        lambda: log.read(0, 1),
        lambda: log.truncate_to(0),
        log.begin_flush,
    ):
        with pytest.raises(FlushFailedError):
            action()
    assert log.flushed_offset == 0


def test_a_failed_fsync_in_another_thread_reaches_the_owner(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Q6. The thread's error and the owner's are the same."""
    fill(log, 1)
    pending = log.begin_flush()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))
        with pytest.raises(FlushFailedError):
            pending.run()

    with pytest.raises(FlushFailedError):
        log.complete(pending)
    with pytest.raises(FlushFailedError):
        log.flush()


# Full disks


FULL_DISK = """
import resource, sys
from pathlib import Path
from kafka_log.errors import LogWriteError
from kafka_log.files.log import Log
from kafka_log.format.roll import LogSettings
from tests.kafka_log.batches import batch

log = Log(Path(sys.argv[1]), LogSettings(segment_bytes=100_000))
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
failures = 0
while failures < 3:
    try:
        log.append(batch(log.end_offset, size_bytes=100))
    except LogWriteError as error:
        failures += 1
end, size = log.end_offset, log.size_bytes
assert size <= limit, size
assert (Path(sys.argv[1]) / "00000000000000000000.log").stat().st_size == size
assert len(log.read(end - 1, 1)) == len(batch(0, size_bytes=100))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.append(batch(end, size_bytes=100))
log.close()
reopened = Log(Path(sys.argv[1]), LogSettings(segment_bytes=100_000))
assert reopened.end_offset == end + 1, reopened.end_offset
print("kept", end + 1)
"""


def test_a_write_that_the_system_cuts_leaves_no_part_of_a_batch(folder: Path) -> None:
    """The limit of a file's size cuts a write as a full disk does; with room again, the log goes on."""
    if resource.getrlimit(resource.RLIMIT_FSIZE)[1] != resource.RLIM_INFINITY:
        pytest.skip("the limit of a file's size cannot be raised again")
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(folder / "t-0"), "1000"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.stdout, done.returncode) == ("kept 6\n", 0), done.stderr


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Every file and folder that is flushed from now on: its name, and how many segments there are at that time."""
    recorded = []

    def record(real: Callable[[int], None], descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        folder = path if path.is_dir() else path.parent
        recorded.append((path.name, len(list(folder.glob("*.log")))))
        real(descriptor)

    for name in ("fdatasync", "fsync"):
        monkeypatch.setattr(os, name, partial(record, getattr(os, name)))
    return recorded


def test_a_segment_is_on_the_disk_with_its_indexes_before_the_next_one_exists(
    log: Log, flushed: list[tuple[str, int]]
) -> None:
    """Q6, ADR 26: else a valid batch could follow a torn one. Its epochs are too: below a recovery point no batch is read again."""
    while len(log.segment_offsets) == 1:
        flushed.clear()
        log.append(batch(log.end_offset, size_bytes=200))

    first = "00000000000000000000"
    epochs = [("leader-epoch-checkpoint.tmp", 1), ("t-0", 1)]
    assert flushed == [*epochs, (f"{first}.index", 1), (f"{first}.timeindex", 1), (f"{first}.log", 1), ("t-0", 2)]
    assert log.flushed_offset == log.end_offset - 1


def test_an_append_in_a_new_epoch_flushes_nothing(log: Log, flushed: list[tuple[str, int]]) -> None:
    """An election waits for it; what a crash loses of the epochs is in the batches."""
    fill(log, 1)
    flushed.clear()
    log.append(batch(log.end_offset, epoch=7))
    reopened = Log(log.folder, log.settings)

    assert flushed[:1] == [("00000000000000000000.log", 1)]
    assert (log.epochs.latest, reopened.epochs) == (7, log.epochs)
    reopened.close()


def test_a_truncation_is_on_the_disk_before_the_next_append(log: Log, flushed: list[tuple[str, int]]) -> None:
    """Q6, ADR 26: else the old end could appear behind new batches after a crash."""
    fill(log, 3)
    flushed.clear()
    log.truncate_to(2)

    assert flushed == [("00000000000000000000.log", 1), ("t-0", 1)]


def test_what_is_found_at_the_start_is_on_the_disk_before_it_counts(log: Log, flushed: list[tuple[str, int]]) -> None:
    """Q6: a killed process leaves it in memory only, and the machine may crash next."""
    fill(log, 2)
    flushed.clear()
    reopened = Log(log.folder, log.settings)

    epochs = [("leader-epoch-checkpoint.tmp", 1), ("t-0", 1)]
    assert (reopened.flushed_offset, flushed) == (4, [("00000000000000000000.log", 1), ("t-0", 1), *epochs])
    reopened.close()


def test_a_write_of_which_the_kernel_takes_a_part_is_continued(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """pwritev(2): fewer bytes than given are no error. The batch has two pieces, as a leader writes it."""
    real = os.pwritev
    data = batch(0, records=2, size_bytes=40)
    checked = log.check(data)

    def some(descriptor: int, pieces: Sequence[bytes], position: int) -> int:
        return real(descriptor, [b"".join(pieces)[:7]], position)

    monkeypatch.setattr(os, "pwritev", some)
    log.write(checked._replace(pieces=(data[:21], data[21:])))

    (segment,) = log.folder.glob("*.log")
    assert segment.read_bytes() == data


@pytest.mark.parametrize("function", ["pwrite", "pwritev", "open"])
def test_a_full_disk_leaves_the_log_as_it_was(log: Log, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    """At any place of an append: batches, indexes, or epochs and files of the next segment."""
    real = getattr(os, function)
    fill(log, 1)
    expected = log.read(0, 10_000)
    for number in range(1, 60):
        allowed = number % 4

        def full(*arguments: object, **options: object) -> object:
            nonlocal allowed
            allowed -= 1
            if allowed < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*arguments, **options)

        one = batch(log.end_offset, records=2, size_bytes=40, epoch=number // 5)
        before = (log.end_offset, log.size_bytes, log.epochs)
        with monkeypatch.context() as patched:
            patched.setattr(os, function, full)
            try:
                log.append(one)
                failed = False
            except LogWriteError:
                failed = True
        if failed:
            assert (log.end_offset, log.size_bytes, log.epochs) == before
            log.append(one)
        expected += one
    log.flush()

    content = b"".join(path.read_bytes() for path in sorted(log.folder.glob("*.log")))
    assert content == expected
    reopened = Log(log.folder, log.settings)
    assert (reopened.end_offset, reopened.epochs) == (log.end_offset, log.epochs)
    reopened.close()
