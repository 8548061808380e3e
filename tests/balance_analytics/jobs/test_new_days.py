"""Incremental runs: their facts and reported problems equal those of one run over all samples."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from balance_analytics.jobs import facts
from balance_analytics.jobs.arrow_types import ARROW_TYPES
from balance_analytics.jobs.problems import LeftOuts
from balance_analytics.jobs.samples import Samples
from balance_analytics.model.column import names
from balance_analytics.model.results import LeftOut
from balance_analytics.model.sample_rows import SAMPLE_ROWS
from tests.balance_analytics.published import FACT_ORDER, records_read, rows

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
MONDAY_MS = 1_767_571_200_000
"""2026-01-05 00:00 UTC."""

SCHEMA = pa.schema([(column.name, ARROW_TYPES[column.kind]) for column in SAMPLE_ROWS])


def sample(day: int, minute: int, end: int, topic: str = "t", partition: int = 0, **changes: Any) -> dict[str, Any]:
    """A sample of a partition with two replicas and messages of 100 bytes; `day` counts from a Monday, `minute` from its midnight."""
    round_ms = MONDAY_MS + day * DAY_MS + minute * MINUTE_MS
    values = {
        "cluster_id": "c",
        "topic": topic,
        "partition": partition,
        "sampled_at_ms": round_ms + 300,
        "round_ms": round_ms,
        "leader": 1,
        "leader_epoch": 0,
        "replicas": [1, 2],
        "isr": [1, 2],
        "start_offset": 0,
        "end_offset": end,
        "size_bytes": [end * 100, end * 100],
        "committed_offset_sum": end,
        "committed_groups": 1,
    }
    return {**values, **changes}


def minutes(day: int, first: int, last: int, begin: int, **changes: Any) -> list[dict[str, Any]]:
    """Samples of a range of minutes of a day, both inclusive, with ten messages a minute."""
    return [sample(day, minute, begin + 10 * (minute - first), **changes) for minute in range(first, last + 1)]


NIGHT = (1380, 1439)
"""The minutes of the last hour of a day."""


class Store:
    """A folder of samples, and one that keeps all samples; `run` runs the stage over the first."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.count = 0

    def add(self, samples: Iterable[dict[str, Any]]) -> list[Path]:
        """Write samples to files of their days, and return the files."""
        by_day: dict[str, list[dict[str, Any]]] = {}
        for sample in samples:
            day = 5 + (sample["round_ms"] - MONDAY_MS) // DAY_MS
            by_day.setdefault(f"date=2026-01-{day:02}", []).append(sample)
        written = []
        for day, some in by_day.items():
            self.count += 1
            for root in ("samples", "everything"):
                path = self.folder / root / day / f"{self.count}.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(pa.Table.from_pylist(some, SCHEMA), path)
            written.append(self.folder / "samples" / day / f"{self.count}.parquet")
        return written

    def run(self, day: int, *, samples: str = "samples", **options: Any) -> list[LeftOut]:
        """Run the stage at 01:00 of a day; return what was left out."""
        left_out = LeftOuts()
        asked = facts.FactsOptions(MONDAY_MS + day * DAY_MS + HOUR_MS, **{"window_days": 14, **options})
        place = str(self.folder / samples)
        out = self.folder / f"of-{samples}"
        facts.run(self.spark, Samples(self.spark, place), str(out / "facts"), str(out / "out"), asked, left_out)
        return list(left_out.all())

    def found(self, samples: str = "samples") -> list[dict[str, Any]]:
        """The facts that readers see."""
        return rows(self.folder / f"of-{samples}" / "facts", order=FACT_ORDER)


@pytest.fixture
def store(spark: SparkSession, tmp_path: Path) -> Store:
    """A folder without samples."""
    return Store(spark, tmp_path)


def test_facts_of_incremental_runs_equal_those_of_one_run_over_all_samples(store: Store) -> None:
    """Late samples (1, 25 and 49 hours), duplicates, two samplers, a clock set back, a missing day, retention, new topics and partitions.

    A second cluster has a partition of the same name.
    """
    store.add(minutes(0, 600, 620, 1000) + minutes(0, *NIGHT, 5000) + minutes(0, *NIGHT, 70, cluster_id="d"))
    store.add(minutes(0, 600, 605, 70, topic="deleted") + minutes(0, *NIGHT, 900, topic="moved"))
    store.run(1)

    # Over midnight; the leader moves; a sample is stored twice; a topic is created again; a partition is added; a second sampler.
    store.add(minutes(1, 0, 30, 5600) + minutes(1, 0, 5, 1500, topic="moved", leader=2))
    store.add(minutes(1, 0, 30, 670, cluster_id="d"))
    store.add(minutes(1, 20, 30, 5800))
    store.add(minutes(1, 600, 610, 3, topic="deleted") + minutes(1, 300, 310, 0, partition=1))
    store.add(
        {**minute, "sampled_at_ms": minute["sampled_at_ms"] + 7_000, "end_offset": minute["end_offset"] + 1}
        for minute in minutes(1, 300, 310, 0, partition=1)
    )
    early = store.add(minutes(1, *NIGHT, 9000))
    store.run(2)

    # Day 2 is missing. Samples of day 1 come an hour late, of day 0 25 and 49 hours late; one sampler's clock is wrong.
    store.add(minutes(1, 1300, 1310, 7000) + minutes(0, 700, 720, 2000) + minutes(0, 1200, 1210, 4000))
    wrong = minutes(3, 10, 12, 1, sampled_at_ms=MONDAY_MS)
    store.add([*wrong, *minutes(3, 0, 20, 9900)])
    clocks = store.run(4)

    # Retention deletes a file of day 1, then all of day 0; there are no new samples.
    early[0].unlink()
    shutil.rmtree(store.folder / "samples" / "date=2026-01-05")
    assert store.run(4) == clocks
    store.add(minutes(4, 0, 70, 12000, leader=2))
    incremental = store.run(5)

    whole = store.run(5, samples="everything")
    assert [(note.what, note.count) for note in whole] == [("samples whose clocks disagree", 3)]
    assert incremental == whole
    assert store.found() == store.found("everything")
    assert {(row["hour"].day, row["hour"].hour) for row in store.found() if row["resets"]} == {(6, 9)}


@pytest.mark.soak("balance_analytics/model/test_new_days.py::test_days_before_the_window_are_not_computed")
def test_runs_with_another_window_and_samples_of_two_clusters_have_the_facts_of_one_run(store: Store) -> None:
    """A shorter window does not change older days; a longer one includes their late samples. Clusters may have partitions of the same name."""
    for day in range(3):
        store.add(minutes(day, 600, 610, 1000) + minutes(day, 605, 615, 9000, cluster_id="d"))
    store.run(3)
    late = minutes(0, 700, 710, 2000)
    store.add(late)
    store.add(minutes(3, 0, 10, 5000))
    store.run(4, window_days=2)
    without = store.found()

    store.run(4)

    store.run(4, samples="everything")
    assert store.found() == store.found("everything")
    assert [row["hour"].hour for row in without if row["hour"].day == 5] == [9, 10, 10]
    assert [row["hour"].hour for row in store.found() if row["hour"].day == 5] == [9, 10, 10, 11]


def test_a_run_reads_only_new_days_and_the_hour_before_them(store: Store) -> None:
    """By Spark's counter of records read: of five stored days only the last; without new samples only the list of files."""
    for day in range(4):
        store.add(minutes(day, 0, 719, 1000))
    store.run(4)
    store.add(minutes(4, 0, 719, 1000))
    before = records_read(store.spark)

    store.run(5)
    of_new_samples, found = records_read(store.spark) - before, store.found()
    store.run(5)
    without_new_samples = records_read(store.spark) - before - of_new_samples

    assert 720 <= of_new_samples < 2 * 720
    assert len(found) == 5 * 12 + 4
    assert without_new_samples <= len(list((store.folder / "samples").rglob("*.parquet")))
    assert store.found() == found


@pytest.mark.soak("balance_analytics/jobs/test_stages.py::test_a_second_run_writes_the_same_without_generated_code")
def test_days_are_computed_again_on_demand(store: Store) -> None:
    """For a range of days, or from one day to the last."""
    for day in range(3):
        store.add(minutes(day, 0, 30, 1000) + minutes(day, *NIGHT, 2000))
    store.run(3)
    found = store.found()
    before = records_read(store.spark)

    store.run(3, recompute=("2026-01-06", "2026-01-06"))
    some = records_read(store.spark) - before
    store.run(3, recompute=("2026-01-06", None))

    assert found == store.found()
    assert some < records_read(store.spark) - before - some


@pytest.mark.soak(
    "balance_analytics/jobs/test_publishing.py::test_a_missing_published_file_is_reported_and_written_again"
)
def test_a_published_file_that_is_lost_is_computed_again(store: Store) -> None:
    """Also one of the partitions' states, from which the next days are computed."""
    store.add(minutes(0, *NIGHT, 1000))
    store.add(minutes(1, *NIGHT, 2500))
    store.run(2)
    found = store.found()
    (lost,) = (store.folder / "of-samples" / "facts").glob("v=*/table=states/date=2026-01-06/*.parquet")
    lost.unlink()
    store.add(minutes(2, 0, 30, 3100))

    store.run(3)

    store.run(3, samples="everything")
    assert store.found("everything") == store.found() != found


def test_corrupt_files_of_a_day_that_is_not_read_again_are_still_reported(store: Store) -> None:
    """The result of each run reports the gap."""
    store.add(minutes(0, 600, 620, 1000))
    (corrupt,) = store.add(minutes(0, 620, 640, 1200))
    corrupt.write_bytes(b"PAR1 this is not Parquet PAR1")

    first = store.run(1)
    store.add(minutes(1, 600, 620, 2000))
    second = store.run(2)

    assert [note.what.rpartition("/")[2] for note in first] == [f"{corrupt.name}: the file is corrupt or empty"]
    assert first == second


def test_all_columns_of_samples_are_written() -> None:
    """The samples of these tests have the sampler's columns."""
    assert names(SAMPLE_ROWS) == list(sample(0, 0, 0))
