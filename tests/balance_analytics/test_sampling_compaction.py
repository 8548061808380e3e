"""Compaction of complete days, and their retention: no row is lost or counted twice, and only the sampler's own files are deleted.

Source: docs/sampling.md. Readers read every `*.parquet` of a day whose name begins with neither `_` nor `.`, and count a sample that
occurs twice once.
"""

import asyncio
import contextlib
import datetime as dt
import itertools
import json
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balance_analytics.sampling import parquet_compaction, parquet_upkeep
from balance_analytics.sampling.parquet_compaction import CompactionStopped, Compactor
from balance_analytics.sampling.parquet_days import DAY_MS, DRAFT_MAX_AGE_S, GRACE_MS, day_of, is_own, sample_file
from balance_analytics.sampling.parquet_upkeep import ParquetUpkeep
from balance_analytics.sampling.parquet_writer import ParquetWriter
from balance_analytics.sampling.settings import ParquetSettings
from tests.balance_analytics.sampling_makers import row, samples

DAY = dt.date(2026, 2, 1)
DAY_START_MS = 1_769_904_000_000
MINUTE_MS = 60_000
ROUNDS = [DAY_START_MS + at * MINUTE_MS for at in (0, 1, 2, 700)]
NEXT_DAY_MS = DAY_START_MS + DAY_MS

Row = tuple[Any, ...]


def store(folder: Path, *rounds_ms: int, cluster_id: str = "c", end_offset: int = 1_000) -> None:
    """Store samples of three partitions, as the sampler does."""
    writer = ParquetWriter(folder)
    for round_ms in rounds_ms:
        content = {"a": [row(0, end_offset=end_offset), row(1, end_offset=None)], "b": [row(0, replicas=[])]}
        sample = samples(content, round_ms=round_ms, cluster_id=cluster_id)
        asyncio.run(writer.write(sample, deadline=0.0))


@pytest.fixture
def day(tmp_path: Path) -> Path:
    """The folder of a day with some samples."""
    store(tmp_path, *ROUNDS)
    return tmp_path / "date=2026-02-01"


def names(day: Path) -> list[str]:
    """Everything in a folder."""
    return sorted(path.name for path in day.iterdir())


def visible(day: Path) -> list[Path]:
    """The files that readers read."""
    return sorted(path for path in day.glob("*.parquet") if path.name[0] not in "._")


def rows_in(path: Path) -> list[Row]:
    """The rows of a file, in its order."""
    return [
        tuple(json.dumps(value) for value in one.values()) for one in pq.read_table(path, partitioning=None).to_pylist()
    ]


def rows(day: Path) -> set[Row]:
    """The distinct rows that readers count."""
    return {one for path in visible(day) for one in rows_in(path)}


class Killed(BaseException):
    """The process is killed at this point."""


STEPS = [(os, "replace"), (os, "unlink"), (os, "fsync"), (pq.ParquetWriter, "write_table")]
"""All steps of a compaction that change files."""


@contextlib.contextmanager
def at_each_step(act: Callable[[int, bool], None]) -> Iterator[None]:
    """Call `act(number, done)` before and after each step of what runs in this context."""
    numbers = itertools.count()

    def wrapped(step: Any) -> Any:
        def call(*arguments: Any, **more: Any) -> Any:
            number = next(numbers)
            act(number, False)
            result = step(*arguments, **more)
            act(number, True)
            return result

        return call

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in STEPS:
            patch.setattr(owner, name, wrapped(getattr(owner, name)))
        yield


def moments_of_a_compaction(day: Path) -> list[tuple[int, bool]]:
    """Before and after every step; a step that raises has no second moment."""
    seen: list[tuple[int, bool]] = []
    with tempfile.TemporaryDirectory() as folder, at_each_step(lambda number, done: seen.append((number, done))):
        Compactor().compact(shutil.copytree(day, Path(folder) / "day"))
    assert len(seen) > 2 * (2 + 2 * len(ROUNDS)), "at least the renaming and each deletion, which has two, are steps"
    return seen


def test_a_complete_day_becomes_one_file_in_order_of_time(day: Path) -> None:
    """Rows by round, then topic and partition; nothing else is left in the folder."""
    before = [one for path in visible(day) for one in rows_in(path)]

    result = Compactor().compact(day)

    (path,) = visible(day)
    assert names(day) == [path.name]
    assert rows_in(path) == before
    assert (result.sources, result.files, result.rows, result.size_bytes) == (4, 1, 12, path.stat().st_size)


def test_a_process_that_ends_at_any_step_loses_and_doubles_no_row(day: Path) -> None:
    """Before and after every step. The next run finishes the work, and later nothing but one file is left."""
    before = rows(day)
    for number, (step, done) in enumerate(moments_of_a_compaction(day)):
        copy = shutil.copytree(day, day.parent / f"copy-{number}")

        def kill(at: int, after: bool, step: int = step, done: bool = done) -> None:
            if (at, after) >= (step, done):
                raise Killed

        with at_each_step(kill), pytest.raises(Killed):
            Compactor().compact(copy)
        assert rows(copy) == before, f"killed at {step}, {done}"
        Compactor().compact(copy)
        assert rows(copy) == before, f"after a run that followed {step}, {done}"
        for draft in copy.glob(".*"):
            os.utime(draft, (0, 0))
        Compactor().compact(copy)
        assert names(copy) == [path.name for path in visible(copy)]
        assert sorted(one for path in visible(copy) for one in rows_in(path)) == sorted(before)


def test_two_samplers_that_compact_the_same_day_lose_no_row(day: Path) -> None:
    """The second one runs as a whole at any step of the first."""
    before = rows(day)
    for number, moment in enumerate(moments_of_a_compaction(day)):
        copy = shutil.copytree(day, day.parent / f"copy-{number}")
        other = Compactor()
        entered: list[int] = []

        def meet(
            at: int, after: bool, moment: Any = moment, copy: Path = copy, other: Any = other, entered: Any = entered
        ) -> None:
            if (at, after) == moment and not entered:
                entered.append(at)
                other.compact(copy)

        with at_each_step(meet), contextlib.suppress(CompactionStopped):
            Compactor().compact(copy)
        assert entered, moment
        assert rows(copy) == before, moment
        Compactor().compact(copy)
        assert names(copy) == [path.name for path in visible(copy)], moment
        assert all(name.startswith("day-") for name in names(copy)), moment


def test_a_file_that_appears_in_the_meantime_is_kept_at_any_step(day: Path) -> None:
    """A late sample, and a sample that another process stores again with another content: only what was read is deleted."""
    late, again = ROUNDS[-1] + MINUTE_MS, ROUNDS[1]
    for number, moment in enumerate(moments_of_a_compaction(day)):
        folder = day.parent / f"copy-{number}"
        copy = shutil.copytree(day, folder / day.name)
        stored: list[Row] = []

        def appear(at: int, after: bool, moment: Any = moment, folder: Path = folder, stored: Any = stored) -> None:
            if (at, after) == moment and not stored:
                stored.append(())
                store(folder, late, again, end_offset=5_000)
                for round_ms in (late, again):
                    stored.extend(rows_in(folder / day.name / f"sample-c-{round_ms}.parquet"))

        with at_each_step(appear), contextlib.suppress(CompactionStopped):
            Compactor().compact(copy)
        assert {*stored[1:]} <= rows(copy), moment
        Compactor().compact(copy)
        assert {*stored[1:]} <= rows(copy), moment


def test_a_sample_that_is_stored_again_stops_the_compaction(day: Path) -> None:
    """What was read is outdated: nothing is published. The next run compacts the new content."""
    synced: list[int] = []

    def again(_: int, done: bool) -> None:
        if done and not synced and list(day.glob(".day-*")):
            synced.append(0)
            store(day.parent, ROUNDS[1], end_offset=5_000)

    with at_each_step(again), pytest.raises(CompactionStopped):
        Compactor().compact(day)
    assert len(visible(day)) == len(ROUNDS)

    before = rows(day)
    Compactor().compact(day)
    assert (len(visible(day)), rows(day)) == (1, before)


def test_files_are_deleted_after_the_new_one_and_its_name_are_on_the_disk(
    day: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a loss of power has the same result as a killed process."""
    steps: list[str] = []
    real_sync, real_replace = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real_sync(descriptor)

    def replace(source: Path, target: Path) -> None:
        steps.append(target.name[:4])
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    Compactor().compact(day)

    assert steps == ["file", "day-", "folder", *([".sam"] * len(ROUNDS))]


def test_a_late_sample_stays_and_is_read_and_two_are_compacted_again(day: Path) -> None:
    """The first compacted file is not written again."""
    Compactor().compact(day)
    first = visible(day)
    store(day.parent, ROUNDS[0] + 5 * MINUTE_MS)
    with_one = rows(day)
    Compactor().compact(day)
    assert (len(visible(day)), rows(day)) == (2, with_one)

    store(day.parent, ROUNDS[0] + 6 * MINUTE_MS)
    with_two = rows(day)
    Compactor().compact(day)

    assert len(with_two) == 3 * 6
    assert (len(visible(day)), rows(day)) == (2, with_two)
    assert first[0] in visible(day)


def test_a_compacted_file_never_replaces_one_of_other_samples(day: Path) -> None:
    """Late samples that begin with the same round have a file of another name."""
    Compactor().compact(day)
    store(day.parent, ROUNDS[0], ROUNDS[0] + 5 * MINUTE_MS, end_offset=5_000)
    before = rows(day)
    Compactor().compact(day)

    assert (len(visible(day)), rows(day)) == (2, before)


def test_each_cluster_has_a_file_of_its_own(day: Path) -> None:
    """Samplers of several clusters may write into one folder."""
    store(day.parent, *ROUNDS, cluster_id="d-1")
    before = rows(day)
    Compactor().compact(day)

    assert [name.rsplit("-", 2)[0] for name in names(day)] == ["day-c", "day-d-1"]
    assert rows(day) == before


def test_a_large_day_becomes_several_files_with_row_groups_by_time(day: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers skip by the footers: no group of rows overlaps the times of another."""
    monkeypatch.setattr(parquet_compaction, "MAX_ROWS", 6)
    monkeypatch.setattr(parquet_compaction, "ROW_GROUP_ROWS", 3)
    Compactor().compact(day)

    times = []
    for path in visible(day):
        footer = pq.read_metadata(path)
        column = footer.schema.names.index("round_ms")
        assert footer.num_rows == 6
        for group in range(footer.num_row_groups):
            statistics = footer.row_group(group).column(column).statistics
            times.append((statistics.min, statistics.max))
    assert times == [(round_ms, round_ms) for round_ms in ROUNDS]


@settings(deadline=None, max_examples=20)
@given(
    st.sets(st.tuples(st.sampled_from("ab"), st.integers(0, 1_439)), max_size=12), st.integers(1, 9), st.integers(1, 9)
)
def test_any_day_has_the_same_rows_after_compaction(
    stored: set[tuple[str, int]], group_rows: int, max_rows: int
) -> None:
    """In order in every file, whatever was stored and however files are cut."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_compaction, "ROW_GROUP_ROWS", group_rows)
        patch.setattr(parquet_compaction, "MAX_ROWS", max_rows)
        day = Path(name) / "date=2026-02-01"
        day.mkdir()
        for cluster_id, minute in stored:
            store(Path(name), DAY_START_MS + minute * MINUTE_MS, cluster_id=cluster_id)
        before = rows(day)
        Compactor().compact(day)

        assert rows(day) == before
        for path in visible(day):
            table = pq.read_table(path, partitioning=None)
            keys = list(zip(*(table[key].to_pylist() for key in ("round_ms", "topic", "partition")), strict=True))
            assert keys == sorted(keys)


def test_files_that_cannot_be_read_are_left_and_logged_once(day: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Cut, empty, of other columns, damaged inside; the others are compacted."""
    before = rows(day)
    good = (day / f"sample-c-{ROUNDS[0]}.parquet").read_bytes()
    damaged = bytearray(good)
    damaged[4:200] = bytes(196)
    bad = {
        "sample-c-1.parquet": good[:-9],
        "sample-c-2.parquet": b"",
        "sample-c-4.parquet": bytes(damaged),
    }
    for name, content in bad.items():
        (day / name).write_bytes(content)
    pq.write_table(pa.table({"other": [1]}), day / "sample-c-3.parquet")

    compactor = Compactor()
    with caplog.at_level(logging.WARNING):
        compactor.compact(day)
        compactor.compact(day)

    (compacted,) = (path for path in visible(day) if path.name.startswith("day-"))
    assert [name for name in names(day) if name != compacted.name] == sorted([*bad, "sample-c-3.parquet"])
    assert {*rows_in(compacted)} == before
    assert len([one for one in caplog.records if "left as it is" in one.message]) == 4


def test_links_and_folders_of_a_samples_name_are_left(day: Path, tmp_path: Path) -> None:
    """The sampler creates neither, so their targets are not its own files."""
    target = tmp_path / "elsewhere.parquet"
    shutil.copy(day / f"sample-c-{ROUNDS[0]}.parquet", target)
    (day / "sample-c-1.parquet").symlink_to(target)
    (day / "sample-c-2.parquet").mkdir()
    Compactor().compact(day)

    assert target.exists()
    assert [name for name in names(day) if name.startswith("sample-")] == ["sample-c-1.parquet", "sample-c-2.parquet"]


def test_a_footer_deletes_nothing_but_samples_of_its_day(day: Path, tmp_path: Path) -> None:
    """Any program may have written it: names in it are only searched among the files of the day."""
    victim = tmp_path / "victim.parquet"
    victim.write_text("")
    status = victim.stat()
    sources = [("../victim.parquet", 0, status.st_mtime_ns), [str(victim), 0, 0], ["mine.parquet", 0, 0]]
    (day / "mine.parquet").write_text("")
    for number, content in enumerate((json.dumps(sources), "{}", "[1]", "null", '[["a"]]', "\x00")):
        table = pa.table({"a": [1]}).replace_schema_metadata({parquet_compaction.SOURCES_KEY: content})
        pq.write_table(table, day / f"day-c-{number}-{'0' * 16}.parquet")
    Compactor().compact(day)

    assert victim.exists()
    assert "mine.parquet" in names(day)


def test_a_compaction_that_is_stopped_changes_nothing(day: Path) -> None:
    """At shutdown no draft is left."""
    before = names(day)
    answers = iter([False, False, True])
    with pytest.raises(CompactionStopped):
        Compactor(lambda: next(answers)).compact(day)

    assert names(day) == before


def test_a_file_without_all_rows_replaces_nothing(day: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written is counted before anything is deleted."""
    before = names(day)
    monkeypatch.setattr(pq.ParquetWriter, "write_table", lambda *_: None)
    with pytest.raises(parquet_compaction.CompactionFailed, match="does not contain the 12 rows"):
        Compactor().compact(day)

    assert names(day) == before


def test_a_draft_in_use_is_kept_and_an_old_one_deleted(day: Path) -> None:
    """Another sampler may be writing it."""
    used, old = day / ".day-c-1.parquet.0a", day / ".sample-c-2.parquet.17"
    for draft in (used, old):
        draft.write_text("")
    os.utime(old, (0, old.stat().st_mtime - DRAFT_MAX_AGE_S - 60))
    Compactor().compact(day)

    assert (used.exists(), old.exists()) == (True, False)


def upkeep(folder: Path, now_ms: int, retention_days: int | None = None) -> None:
    """Run upkeep once."""
    ParquetUpkeep(ParquetSettings(folder=folder, retention_days=retention_days), lambda: now_ms).run_once()


def test_a_day_is_compacted_some_minutes_after_its_end(day: Path) -> None:
    """Not while samples may still arrive."""
    upkeep(day.parent, NEXT_DAY_MS + GRACE_MS - 1)
    assert len(visible(day)) == len(ROUNDS)

    upkeep(day.parent, NEXT_DAY_MS + GRACE_MS)
    assert len(visible(day)) == 1


def test_nothing_is_deleted_without_a_retention(day: Path) -> None:
    """Not even after a hundred years."""
    before = rows(day)
    upkeep(day.parent, NEXT_DAY_MS + 36_500 * DAY_MS)

    assert rows(day) == before


@pytest.mark.parametrize("compacted", [False, True])
def test_days_that_ended_longer_ago_than_the_retention_are_deleted(day: Path, compacted: bool) -> None:
    """With their folder; the next day stays."""
    store(day.parent, NEXT_DAY_MS)
    if compacted:
        Compactor().compact(day)
    upkeep(day.parent, NEXT_DAY_MS + 3 * DAY_MS - 1, retention_days=3)
    assert day.exists()

    upkeep(day.parent, NEXT_DAY_MS + 3 * DAY_MS, retention_days=3)
    assert names(day.parent) == ["date=2026-02-02"]


def test_retention_deletes_only_what_the_sampler_writes(
    day: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Files and folders of other names stay, links are not followed, and what stays is logged once."""
    elsewhere = tmp_path / "elsewhere"
    store(elsewhere, ROUNDS[0])
    linked = elsewhere / "date=2026-02-01"
    (day.parent / "date=2020-01-01").symlink_to(linked)
    others = [
        "_SUCCESS",
        "sample.parquet",
        "sample-c-1.parquet.bak",
        "sample-c-x.parquet",
        "day-c-1.parquet",
        ".hidden",
        "x\nsample-c-1.parquet",
    ]
    for name in others:
        (day / name).write_text("mine")
    (day / "sample-c-5.parquet").mkdir()
    for name in ("date=2020-1-1", "date=2020-02-30", "date=2020-01-01.old", "2020-01-01", "date=\u0662020-01-01"):
        (day.parent / name).mkdir()
        (day.parent / name / "sample-c-1.parquet").write_text("mine")

    keeper = ParquetUpkeep(ParquetSettings(folder=day.parent, retention_days=1), lambda: NEXT_DAY_MS + 9 * DAY_MS)
    with caplog.at_level(logging.WARNING):
        keeper.run_once()
        keeper.run_once()

    assert names(day) == sorted([*others, "sample-c-5.parquet"])
    assert len(visible(linked)) == 1
    assert len(list(day.parent.glob("*/sample-c-1.parquet"))) == 5
    assert len([one for one in caplog.records if "they are kept" in one.message]) == 1


@given(st.text(max_size=40))
def test_no_other_text_is_a_name_of_the_sampler(text: str) -> None:
    """Nor is a path: the name of a file never leads out of its folder."""
    for name in (text, f"sample-{text}.parquet", f"sample-{text}-1.parquet", f"date={text}", f".day-{text}.parquet.1"):
        assert day_of(name) is None or name == f"date={day_of(name)}"
        if is_own(name) or sample_file(name, 0, 0) is not None:
            assert Path(name).name == name
            assert "\n" not in name


def test_a_failure_of_one_day_is_logged_and_other_days_are_compacted(
    day: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Sampling continues in any case."""
    store(day.parent, *(round_ms + DAY_MS for round_ms in ROUNDS))
    real = Compactor.compact

    def failing(self: Compactor, folder: Path) -> Any:
        if folder == day:
            raise OSError(28, "No space left on device")
        return real(self, folder)

    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(Compactor, "compact", failing)
        upkeep(day.parent, NEXT_DAY_MS + 2 * DAY_MS)

    assert (len(visible(day)), len(visible(day.parent / "date=2026-02-02"))) == (4, 1)
    assert "No space left on device" in caplog.records[0].reason  # type: ignore[attr-defined]


async def test_upkeep_runs_again_and_ends_with_the_sampler(day: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that does not exist yet is no failure."""
    monkeypatch.setattr(parquet_upkeep, "INTERVAL_S", 0.01)
    later = day.parent / "later"
    keeper = ParquetUpkeep(ParquetSettings(folder=later), lambda: NEXT_DAY_MS + DAY_MS)
    task = asyncio.create_task(keeper.run())
    await asyncio.sleep(0.05)
    await asyncio.to_thread(shutil.copytree, day, later / day.name)
    async with asyncio.timeout(30):
        while len(visible(later / day.name)) > 1:  # noqa: ASYNC110 - files have no event
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("days", [0, -1, 36_501])
def test_a_retention_out_of_range_is_rejected(days: int) -> None:
    """The lowest, 1, keeps the day before."""
    with pytest.raises(ValueError, match=f"--parquet-retention-days is {days}; it must be 1 to 36500"):
        ParquetSettings(folder=Path(), retention_days=days)
