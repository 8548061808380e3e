"""Upkeep of the folder of samples: complete days are compacted, and days past the retention deleted.

Source: docs/sampling.md.
"""

import asyncio
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balance_analytics.sampling import parquet_upkeep
from balance_analytics.sampling.parquet_compaction import Compactor
from balance_analytics.sampling.parquet_days import DAY_MS, GRACE_MS, day_of, is_own, sample_file
from balance_analytics.sampling.parquet_upkeep import ParquetUpkeep
from balance_analytics.sampling.settings import ParquetSettings
from tests.balance_analytics.sampling.stored_days import NEXT_DAY_MS, ROUNDS, names, rows, store, visible


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
    assert len([record for record in caplog.records if "they are kept" in record.message]) == 1


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
    copied = day.parent / "copied"
    await asyncio.to_thread(shutil.copytree, day, copied / day.name)
    copied.rename(later)  # whole: a file that is read while it is copied is remembered as unreadable
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
