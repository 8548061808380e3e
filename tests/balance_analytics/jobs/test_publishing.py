"""Atomic publication of facts: a run that is killed at any step leaves the previous facts, and the next run completes its work."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from balance_analytics.jobs import facts, publishing, storage
from balance_analytics.jobs.day_rows import StoredFacts
from balance_analytics.jobs.problems import AnalyticsError, LeftOuts
from balance_analytics.jobs.publishing import Published
from balance_analytics.jobs.samples import Samples
from balance_analytics.model.column import ddl
from balance_analytics.model.manifest import EMPTY, FOLDER, KEPT_MS
from balance_analytics.model.sample_rows import SAMPLE_ROWS
from lab.generated_load import LoadSpec, lay_out
from lab.generated_load.hourly_facts import write_facts
from tests.balance_analytics.jobs.test_facts import END_MS, START_MS, sample
from tests.balance_analytics.published import FACT_ORDER, newest, rows
from tests.balance_analytics.shared_spark import SharedSpark
from tests.effort import EXHAUSTIVE

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

DAY_MS = 24 * 3_600_000
FIRST = 1
"""Minute of the first sample. A sample of minute 0 belongs to the previous hour and day."""
FEW, MORE = 6, 12
"""Number of samples of the first run and of the second."""


class KilledError(BaseException):
    """Ends a run as SIGKILL would: nothing of the product catches it."""


@pytest.fixture(scope="module")
def samples(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], str]:
    """Return a folder with this number of samples of one partition; each folder is written once for this module."""
    spark = shared_spark.get()
    root = tmp_path_factory.mktemp("samples")

    @cache
    def folder(minutes: int) -> str:
        minute_samples = [sample(minute, 1000 + 10 * minute) for minute in range(FIRST, FIRST + minutes)]
        frame = spark.createDataFrame(minute_samples, ddl(SAMPLE_ROWS))
        frame.selectExpr("*", "timestamp_millis(round_ms)::date AS date").coalesce(1).write.partitionBy("date").parquet(
            str(root / str(minutes))
        )
        return str(root / str(minutes))

    return folder


@pytest.fixture(scope="module")
def stored(shared_spark: SharedSpark, samples: Callable[[int], str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Facts after a run over few samples (`few`), over more (`more`), and after both (`both`). Tests change only copies."""
    spark = shared_spark.get()
    root = tmp_path_factory.mktemp("stored")
    run(spark, root / "few", samples(FEW))
    run(spark, root / "more", samples(MORE))
    shutil.copytree(root / "few", root / "both")
    run(spark, root / "both", samples(MORE))
    return root


def run(spark: SparkSession, folder: Path, samples: str, now_ms: int = END_MS) -> LeftOuts:
    """Run the stage."""
    left_out = LeftOuts()
    options = facts.FactsOptions(now_ms=now_ms, window_days=14)
    facts.run(spark, Samples(spark, samples), str(folder / "facts"), str(folder / "out"), options, left_out)
    return left_out


def found(folder: Path) -> list[dict[str, Any]]:
    """The facts that readers see."""
    return rows(folder / "facts", order=FACT_ORDER)


STEPS = (
    (storage, "write_text"),
    (storage, "remove"),
    (storage, "remove_folder"),
    (Published, "write"),
    (Published, "publish"),
    (Published, "sweep"),
)
"""All steps that change the storage."""

STEPS_OF_A_RUN = (False, False, False, False, True, True)
"""For each step of one run: whether its facts are published before it."""

AROUND_THE_MANIFEST = (3, 4)
"""Numbers of the step that writes the manifest, and of the one after it."""


@pytest.fixture
def killing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], list[str]]]:
    """Kill the run before its n-th step, counted from 0; returns the names of the steps that began, the last one killed."""

    def kill_at(number: int) -> list[str]:
        steps: list[str] = []
        for place, name in STEPS:
            original = getattr(place, name)

            def step(*arguments: Any, _name: str = name, _original: Any = original, **more: Any) -> Any:
                steps.append(_name)
                if len(steps) == number + 1:
                    raise KilledError(_name)
                return _original(*arguments, **more)

            monkeypatch.setattr(place, name, step)
        return steps

    yield kill_at
    monkeypatch.undo()


def test_a_run_that_is_killed_before_any_step_leaves_complete_facts_and_the_next_run_updates_them(
    spark: SparkSession,
    tmp_path: Path,
    samples: Callable[[int], str],
    stored: Path,
    monkeypatch: pytest.MonkeyPatch,
    killing: Any,
) -> None:
    """Readers see the previous facts, or the new ones once the manifest is written. The soak kills before each step."""
    more = samples(MORE)
    shutil.copytree(stored / "few", tmp_path / "first")
    before, after = found(stored / "few"), found(stored / "more")
    assert before != after

    for number, is_published in enumerate(STEPS_OF_A_RUN):
        if not EXHAUSTIVE and number not in AROUND_THE_MANIFEST:
            continue
        folder = tmp_path / f"killed-{number}"
        shutil.copytree(tmp_path / "first", folder)
        steps = killing(number)
        with pytest.raises(KilledError):
            run(spark, folder, more)
        monkeypatch.undo()
        assert found(folder) == (after if is_published else before), steps
    for number in AROUND_THE_MANIFEST:
        run(spark, tmp_path / f"killed-{number}", more)
        assert found(tmp_path / f"killed-{number}") == after
    steps = killing(len(STEPS_OF_A_RUN))
    run(spark, tmp_path / "first", more)
    assert steps == ["write", "write", "publish", "write_text", "remove_folder", "sweep"]


def test_files_of_a_killed_run_are_deleted_after_a_day(
    spark: SparkSession,
    tmp_path: Path,
    samples: Callable[[int], str],
    stored: Path,
    monkeypatch: pytest.MonkeyPatch,
    killing: Any,
) -> None:
    """A day is longer than any run. Files of replaced facts are deleted then as well."""
    more = samples(MORE)
    shutil.copytree(stored / "few", tmp_path, dirs_exist_ok=True)
    killing(1)
    with pytest.raises(KilledError):
        run(spark, tmp_path, more)
    monkeypatch.undo()
    left = {path.parts[-4] for path in tmp_path.rglob("facts/v=*/rows=day/date=*/*.parquet")}
    assert len(left) == 2

    run(spark, tmp_path, more, END_MS + 1)
    assert len({path.parts[-4] for path in tmp_path.rglob("facts/v=*/rows=day/date=*/*.parquet")}) == 3
    expected = found(tmp_path)
    ahead_ms = int(max(path.stat().st_mtime for path in tmp_path.rglob("facts/**/*.parquet")) * 1000) + 2 * KEPT_MS
    table = Published(spark, str(tmp_path / "facts"), "facts")
    assert table.sweep(ahead_ms) > 0

    assert found(tmp_path) == expected
    assert {path.parts[-4] for path in tmp_path.rglob("facts/v=*/rows=day/date=*/*.parquet")} == {
        f"v={newest(tmp_path / 'facts').run}"
    }
    assert len([path for path in (tmp_path / "facts" / FOLDER).iterdir() if path.suffix == ".json"]) == 1


def test_the_second_of_two_concurrent_runs_is_rejected_when_it_publishes(
    spark: SparkSession, tmp_path: Path, samples: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would undo the other run's publication; the next run includes both."""
    few, more = samples(FEW), samples(MORE)
    publish = Published.publish

    def publish_late(*arguments: Any, **options: Any) -> None:
        monkeypatch.undo()
        run(spark, tmp_path, more)
        publish(*arguments, **options)

    monkeypatch.setattr(Published, "publish", publish_late)
    with pytest.raises(
        AnalyticsError, match=r"another run has published facts at .*: run this again, one run at a time"
    ):
        run(spark, tmp_path, few)
    expected = found(tmp_path)

    run(spark, tmp_path, few)
    assert found(tmp_path) == expected


def test_a_truncated_manifest_is_reported_and_the_previous_one_is_used(
    spark: SparkSession, tmp_path: Path, samples: Callable[[int], str], stored: Path
) -> None:
    """Nothing is deleted in the meantime, since the files of the truncated manifest may be needed to repair it."""
    shutil.copytree(stored / "both", tmp_path, dirs_exist_ok=True)
    before, after = found(stored / "few"), found(stored / "both")
    table = Published(spark, str(tmp_path / "facts"), "facts")
    path = max((tmp_path / "facts" / FOLDER).glob("0*.json"))
    path.write_text(path.read_text()[:-20])
    left_out = LeftOuts()

    seen = StoredFacts.of(table, table.newest(left_out)).by_hour()

    assert [row.messages_in for row in seen.orderBy("hour").collect()] == [row["messages_in"] for row in before]
    (problem,) = left_out.all()
    assert f"{FOLDER}: {path.name} is not a manifest: " in problem.what
    assert table.sweep(END_MS + 400 * DAY_MS) == 0
    run(spark, tmp_path, samples(MORE))
    assert found(tmp_path) == after


def test_an_older_truncated_manifest_does_not_stop_the_sweep(spark: SparkSession, tmp_path: Path, stored: Path) -> None:
    """No reader needs it; it is deleted with the files that only it lists."""
    shutil.copytree(stored / "both", tmp_path, dirs_exist_ok=True)
    before = found(tmp_path)
    table = Published(spark, str(tmp_path / "facts"), "facts")
    oldest = min((tmp_path / "facts" / FOLDER).glob("0*.json"))
    oldest.write_text("{")
    left_out = LeftOuts()

    assert table.newest(left_out).sequence > 1
    assert left_out.all() == ()
    assert table.sweep(END_MS + 400 * DAY_MS) > 0
    assert not oldest.exists()
    assert found(tmp_path) == before


def test_a_missing_published_file_is_reported_and_written_again(
    spark: SparkSession, tmp_path: Path, samples: Callable[[int], str], stored: Path
) -> None:
    """As long as samples of its day exist."""
    shutil.copytree(stored / "more", tmp_path, dirs_exist_ok=True)
    expected = found(tmp_path)
    (file,) = newest(tmp_path / "facts").parts["2026-01-05"]
    (tmp_path / "facts" / file.path).unlink()

    left_out = run(spark, tmp_path, samples(MORE))

    assert [(note.what, note.count) for note in left_out.all()] == [
        (f"{file.path}: a published file of the facts is missing or truncated", 1)
    ]
    assert found(tmp_path) == expected


def test_facts_of_the_layout_before_manifests_are_read_and_kept(
    spark: SparkSession, tmp_path: Path, samples: Callable[[int], str]
) -> None:
    """Days are folders with files. A run replaces the days that it has samples of, and lists the others in its manifest."""
    load = LoadSpec(
        seed=5, partitions=12, topics=3, brokers=3, days=2, hot=0, outages=0, resets=0, start_s=START_MS // 1000
    )
    write_facts(lay_out(load), tmp_path / "facts")
    old = sorted(tmp_path.rglob("facts/date=*/*.parquet"))
    table = Published(spark, str(tmp_path / "facts"), "facts")
    assert sorted(table.newest(LeftOuts()).parts) == ["2026-01-05", "2026-01-06"]

    run(spark, tmp_path, samples(MORE))

    parts = newest(tmp_path / "facts").parts
    assert [file.path for file in parts["2026-01-06"]] == [str(old[1].relative_to(tmp_path / "facts"))]
    assert all(file.path.startswith("v=") for file in parts["2026-01-05"])
    topics = {row["topic"] for row in rows(tmp_path / "facts", "2026-01-05")}
    assert topics == {"t", *lay_out(load).names}
    everything = StoredFacts.of(table, table.newest(LeftOuts())).by_hour()
    assert everything.count() == len(rows(tmp_path / "facts"))


def test_a_store_that_lists_files_late_is_polled(
    spark: SparkSession, tmp_path: Path, samples: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A manifest never lists fewer files than were written; a store that never lists them ends the run."""
    monkeypatch.setattr(publishing, "LISTED_POLL_S", 0.0)
    listing, late = storage.files_below, iter([True, True])

    def listed_late(session: SparkSession, folder: str) -> Any:
        return [] if "/v=" in folder and next(late, False) else listing(session, folder)

    monkeypatch.setattr(storage, "files_below", listed_late)
    run(spark, tmp_path, samples(MORE))
    assert len(found(tmp_path)) == 1

    monkeypatch.setattr(publishing, "LISTED_TIMEOUT_S", 0.0)
    late = iter([True] * 100)
    with pytest.raises(AnalyticsError, match=r"lists 0 of 1 rows that were written"):
        run(spark, tmp_path, samples(FEW))


def test_a_run_ends_once_its_manifest_is_listed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a run that starts right after it would use the previous manifest, and fail when it publishes."""
    monkeypatch.setattr(publishing, "LISTED_POLL_S", 0.0)
    table = Published(spark, str(tmp_path / "facts"), "facts")
    listing, late, seen = storage.files_below, iter([True, True]), []

    def listed_late(session: SparkSession, folder: str) -> Any:
        files = listing(session, folder)
        seen.append([] if files and next(late, False) else files)
        return seen[-1]

    monkeypatch.setattr(storage, "files_below", listed_late)
    table.publish(EMPTY, "abc", {}, END_MS)

    assert [[file.path for file in files] for files in seen] == [[], [], [], ["00000001-abc.json"]]


def test_a_small_file_is_replaced_in_one_step_also_with_a_checksum_of_an_earlier_version(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Hadoop's local file system stores `.NAME.crc` next to a file, which would not match the new content."""
    path = tmp_path / "result.json"
    path.write_text("old")
    (tmp_path / ".result.json.crc").write_bytes(b"crc\0\0\0\2\0 wrong")

    storage.write_text(spark, str(path), "new")

    assert storage.read_text(spark, str(path)) == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["result.json"]


@pytest.mark.parametrize("stores", [frozenset(), frozenset({"viewfs"})], ids=["renamed", "uploaded"])
def test_a_small_file_is_replaced_on_other_file_systems(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stores: frozenset[str]
) -> None:
    """By FileContext's rename, or by one write as on an object store; tested on Hadoop's viewfs over a local folder."""
    monkeypatch.setattr(storage, "OBJECT_STORES", stores)
    configuration = spark._jsc.hadoopConfiguration()
    configuration.set("fs.viewfs.mounttable.lab.link./data", tmp_path.as_uri())
    path = "viewfs://lab/data/result.json"

    storage.write_text(spark, path, "old")
    storage.write_text(spark, path, "new")

    assert storage.read_text(spark, path) == "new"
    assert [(file.path, file.size) for file in storage.files_below(spark, "viewfs://lab/data")] == [("result.json", 3)]
    storage.remove(spark, path)
    assert not storage.exists(spark, path)
