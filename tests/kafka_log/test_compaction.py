"""Swap of compacted segments: crashes, aborts, and flushes in the background."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_log.errors import FlushFailedError
from kafka_log.files.cleaner import CleanedLog, clean_segments
from kafka_log.files.compaction import PendingSwap, prepare_cleaning
from kafka_log.files.partition_settings import Checkpoints
from tests.cases import case
from tests.effort import EXHAUSTIVE
from tests.kafka_log.batches import fast_folder
from tests.kafka_log.crash_points import killed_at
from tests.kafka_log.partitions import CONFIG, Session
from tests.kafka_log.test_cleaning import COMPACTED, keyed, offsets

MANY_SEGMENTS = COMPACTED | {"internal.segment.bytes": 700}
"""Two groups of segments."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder in memory."""
    with fast_folder() as empty:
        yield empty


def filled(folder: Path) -> Session:
    """Return a log of four closed segments with the same three keys."""
    session = Session(folder / "t-0", config=MANY_SEGMENTS)
    for _ in range(4):
        for key in range(3):
            session.take(keyed(session, [(key, False, 100)]))
        session.take(("roll",))
    session.take(("high_watermark", session.log.end_offset))
    session.log.flush()
    return session


def cleaned(session: Session) -> CleanedLog:
    """Write the `.cleaned` files of a round."""
    task = prepare_cleaning(session.log, 0, high_watermark=session.high_watermark)
    assert task is not None
    return clean_segments(task)


@pytest.mark.slow
def test_a_round_that_is_killed_at_any_operation_is_undone_or_finished(folder: Path) -> None:
    """LogLoader: the last record of each key is there, no record twice, and the log ends where it ended."""
    session = filled(folder)
    session.log.close()
    first = shutil.copytree(folder / "t-0", folder / "first")
    operations = 0
    for number in range(0, 500, 1 if EXHAUSTIVE else 3):
        with case("killed in front of operation", number):
            shutil.rmtree(folder / "t-0")
            shutil.copytree(first, folder / "t-0")
            session = Session(folder / "t-0", Checkpoints(is_clean=True), MANY_SEGMENTS)
            session.high_watermark = session.log.end_offset
            is_finished = False
            with killed_at(number) as done:
                session.clean(0, 1_000)
                is_finished = True
            operations = len(done)
            session.log.close_files()
            for is_clean in (True, False):
                copy = shutil.copytree(folder / "t-0", folder / f"copy-{is_clean}")
                reopened = Session(copy, Checkpoints(is_clean=is_clean), MANY_SEGMENTS)
                found = offsets(reopened)
                assert found[-3:] == [9, 10, 11]
                assert found == sorted(set(found))
                assert reopened.log.end_offset == 12
                assert [path.name for path in copy.iterdir() if path.suffix in {".cleaned", ".swap", ".deleted"}] == []
                reopened.log.close()
                shutil.rmtree(copy)
            if is_finished:
                assert found == [9, 10, 11]
                break
    assert operations > 30


def test_a_swap_that_is_aborted_before_a_truncation_leaves_nothing_behind(folder: Path) -> None:
    """The new segment has records that the truncated log does not have any more."""
    session = filled(folder)
    swaps = [PendingSwap(session.log.log.folder, group) for group in cleaned(session).groups]
    session.log.before_truncation = lambda _: swaps[0].abort()
    swaps[0].prepare()
    session.log.truncate_to(4)
    swaps[0].finish(session.log)

    assert offsets(session) == [0, 1, 2, 3]
    session.log.close()
    reopened = Session(folder / "t-0", Checkpoints(is_clean=False), MANY_SEGMENTS)
    assert offsets(reopened) == [0, 1, 2, 3]
    reopened.log.close()


def test_an_aborted_swap_is_not_prepared(folder: Path) -> None:
    """The thread that prepares it may be late."""
    session = filled(folder)
    swap = PendingSwap(session.log.log.folder, cleaned(session).groups[0])
    swap.abort()
    swap.prepare()

    assert [path.name for path in (folder / "t-0").iterdir() if path.suffix == ".swap"] == []
    assert len(offsets(session)) == 12
    session.log.close()


def test_a_segment_that_was_rolled_is_flushed_with_the_next_flush(folder: Path) -> None:
    """UnifiedLog.roll leaves the flush to a scheduler: rolling does not delay what is appended next."""
    session = Session(folder / "t-0", config=CONFIG)
    for key in range(3):
        session.take(keyed(session, [(key, False, 100)]))
        session.take(("roll",))
    flushed: list[int] = []
    assert session.log.log.flushed_offset == 0
    pending = session.log.begin_flush()
    pending.run()
    flushed.append(session.log.complete(pending))

    assert flushed == [3]
    assert [segment.base_offset for segment in pending.closed] == [0, 1, 2]
    assert session.log.begin_flush().closed == ()


def test_segments_that_are_replaced_need_no_flush(folder: Path) -> None:
    """A flush that began before finishes on the old files."""
    session = filled(folder)
    for key in range(2):
        session.take(keyed(session, [(key, False, 100)]))
        session.take(("roll",))
    pending = session.log.begin_flush()
    session.take(("high_watermark", session.log.end_offset))
    session.clean(0, 1_000)
    session.take(("time", session.now_ms + COMPACTED["file.delete.delay.ms"]))
    assert session.log.run_deletions() == 6
    pending.run()

    assert session.log.complete(pending) == 14
    assert session.log.begin_flush().closed == ()


def test_after_a_failed_flush_of_a_closed_segment_the_log_is_unusable(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages may be gone."""
    session = filled(folder)
    session.take(keyed(session, [(0, False, 100)]))
    session.take(("roll",))

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    pending = session.log.begin_flush()
    with monkeypatch.context() as patched:
        patched.setattr("os.fdatasync", fail)
        with pytest.raises(FlushFailedError):
            pending.run()
    with pytest.raises(FlushFailedError):
        session.log.complete(pending)
    with pytest.raises(FlushFailedError):
        session.log.roll()
    session.log.close_files()
