"""Stores with faults: one that refuses or is too slow ends a run with a sentence, one that lists files late loses nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from balance_analytics.jobs import facts, files, notes, publishing, storage
from balance_analytics.jobs.main import parser, run
from balance_analytics.jobs.problems import AnalyticsError, LeftOuts
from balance_analytics.jobs.samples import Samples
from balance_analytics.model.manifest import FoundFile
from tests.balance_analytics.jobs.test_new_days import DAY_MS, HOUR_MS, MONDAY_MS, NIGHT, Store, minutes
from tests.effort import in_soak

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

OPERATIONS = ("exists", "files_below", "read_text", "write_text", "remove_folder")
"""Of the storage, by a run of the stage `facts`; Spark's own are those of its tasks, which it repeats."""

USERS = (storage, publishing, facts, files, notes)
"""Modules that have these functions by name."""


@pytest.fixture
def store(spark: SparkSession, tmp_path: Path) -> Store:
    """A folder without samples."""
    return Store(spark, tmp_path)


def arguments(store: Store) -> list[str]:
    """The command line of a run over the folder."""
    out = store.folder / "of-samples"
    places = ["--samples", f"{store.folder}/samples", "--facts", f"{out}/facts", "--out", f"{out}/out"]
    return [*places, "--stage", "facts"]


def test_a_store_that_refuses_an_operation_ends_the_run_with_a_sentence_and_the_next_run_completes_it(
    store: Store, spark: SparkSession
) -> None:
    """503 at each kind of operation, after Hadoop's client has retried."""
    store.add(minutes(0, 600, 620, 1000))
    store.run(1)
    store.add(minutes(1, 600, 620, 2000))
    jvm = spark._jvm
    assert jvm is not None
    refusal = jvm.java.io.IOException("Service Unavailable (Service: S3, Status Code: 503)")

    def refused(*_: Any, **__: Any) -> None:
        raise Py4JJavaError("An error occurred.", refusal)

    now_ms = MONDAY_MS + 2 * DAY_MS + HOUR_MS
    for operation in OPERATIONS:
        with pytest.MonkeyPatch.context() as patched:
            for module in USERS:
                if hasattr(module, operation):
                    patched.setattr(module, operation, refused)
            with pytest.raises(
                AnalyticsError, match=r"the store of the .* is overloaded or does not respond in time: "
            ):
                run(parser().parse_args(arguments(store)), now_ms)
    store.run(2)

    store.run(2, samples="everything")
    assert store.found() == store.found("everything")


def test_a_disk_that_is_full_ends_the_run_with_a_sentence(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files on a local disk are written by Python."""
    store.add(minutes(0, 600, 620, 1000))

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AnalyticsError, match=r"the facts at .* could not be processed: .*No space left on device"):
        store.run(1)


def test_published_files_that_are_listed_late_are_not_taken_for_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention took their samples: a run that left them out of its manifest would lose their facts for good."""
    store.add(minutes(0, 600, 620, 1000) + minutes(0, *NIGHT, 3000))
    store.run(1)
    shutil.rmtree(store.folder / "samples" / "date=2026-01-05")
    store.add(minutes(1, 5, 20, 3650))
    listing = storage.files_below

    def without_data(session: SparkSession, folder: str) -> list[FoundFile]:
        is_new = "/v=" in folder
        return [file for file in listing(session, folder) if is_new or "date=2026-01-05" not in file.path]

    monkeypatch.setattr(storage, "files_below", without_data)
    left_out = store.run(2)
    monkeypatch.undo()

    assert left_out == []
    store.run(2, samples="everything")
    assert store.found() == store.found("everything")


@pytest.mark.parametrize("unlisted_by", ["both listings", *in_soak("the listing of the read alone")])
def test_a_sample_that_is_listed_late_is_a_late_sample(
    store: Store, monkeypatch: pytest.MonkeyPatch, unlisted_by: str
) -> None:
    """The next run computes its day again, also where the first of two listings had shown the file."""
    store.add(minutes(0, 600, 620, 1000))
    store.add(minutes(0, 621, 640, 1210))
    listing, table = Samples.files_by_day, Samples.table

    def without_one(samples: Samples, first: str) -> dict[str, dict[str, int]]:
        found = listing(samples, first)
        return {day: {name: size for name, size in some.items() if name != "2.parquet"} for day, some in found.items()}

    def table_without_one(samples: Samples, days: Any) -> Any:
        found = table(samples, days)
        found.files = [f"date={day}/1.parquet" for day in days]
        return found

    if unlisted_by == "both listings":
        monkeypatch.setattr(Samples, "files_by_day", without_one)
    monkeypatch.setattr(Samples, "table", table_without_one)
    store.run(1)
    monkeypatch.undo()
    before = store.found()
    store.run(1)

    store.run(1, samples="everything")
    assert store.found() == store.found("everything") != before


def test_a_file_that_a_store_refuses_twice_is_not_taken_for_corrupt(
    store: Store, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark leaves out such a file when it is to leave out corrupt ones: its samples would be missing in a day that counts as complete."""
    store.add(minutes(0, 600, 620, 1000))
    store.add(minutes(0, 621, 640, 1210))
    table = Samples(spark, f"{store.folder}/samples").table(["2026-01-05"])
    read = files.Table._all

    def without_one(found: files.Table, reader: Any, *more: Any) -> DataFrame:
        is_lenient = bool(more)
        rows = read(found, reader, *more)
        return rows.where(~rows["file"].endswith("/2.parquet")) if is_lenient else rows

    monkeypatch.setattr(files.Table, "_all", without_one)
    left_out = LeftOuts()

    assert table.find_corrupt(left_out) is False
    assert left_out.all() == ()
    assert table.without == set()
