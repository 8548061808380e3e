"""Compaction of complete days: no row is lost or counted twice, and only the sampler's own files are deleted.

Source: docs/sampling.md. Readers read every `*.parquet` of a day whose name begins with neither `_` nor `.`, and count a sample that
occurs twice once.
"""

import json
import logging
import os
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balance_analytics.sampling import parquet_compaction
from balance_analytics.sampling.parquet_compaction import Compactor
from balance_analytics.sampling.parquet_days import DRAFT_MAX_AGE_S
from tests.balance_analytics.sampling.stored_days import (
    DAY_START_MS,
    MINUTE_MS,
    ROUNDS,
    names,
    rows,
    rows_in,
    store,
    visible,
)


def test_a_complete_day_becomes_one_file_in_order_of_time(day: Path) -> None:
    """Rows by round, then topic and partition; nothing else is left in the folder."""
    before = [row for path in visible(day) for row in rows_in(path)]

    result = Compactor().compact(day)

    (path,) = visible(day)
    assert names(day) == [path.name]
    assert rows_in(path) == before
    assert (result.sources, result.files, result.rows, result.size_bytes) == (4, 1, 12, path.stat().st_size)


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


@pytest.mark.slow
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
    assert len([record for record in caplog.records if "left as it is" in record.message]) == 4


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
