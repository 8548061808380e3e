"""Compactions that are interrupted at any step, by the end of the process, another sampler or new files, lose no row.

Source: docs/sampling.md. Readers count a sample that occurs twice once.
"""

import contextlib
import itertools
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from balance_analytics.sampling.parquet_compaction import CompactionStopped, Compactor
from tests.balance_analytics.sampling.stored_days import MINUTE_MS, ROUNDS, Row, names, rows, rows_in, store, visible


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


@pytest.mark.slow
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
        assert sorted(row for path in visible(copy) for row in rows_in(path)) == sorted(before)


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_a_compaction_that_is_stopped_changes_nothing(day: Path) -> None:
    """At shutdown no draft is left."""
    before = names(day)
    answers = iter([False, False, True])
    with pytest.raises(CompactionStopped):
        Compactor(lambda: next(answers)).compact(day)

    assert names(day) == before
