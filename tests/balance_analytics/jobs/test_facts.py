"""Hourly facts of samples: differences where they are valid, and marks instead of numbers where they are not."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from balance_analytics.jobs import facts
from balance_analytics.jobs.hourly import hourly
from balance_analytics.jobs.problems import LeftOuts
from balance_analytics.jobs.samples import Samples
from balance_analytics.model.column import ddl
from balance_analytics.model.sample_rows import SAMPLE_ROWS
from lab.generated_load import lay_out
from lab.generated_load.minute_samples import write_samples
from lab.generated_load.state import hours
from tests.balance_analytics.generated import MINUTES
from tests.balance_analytics.published import FACT_ORDER, rows

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

MINUTE_MS = 60_000
START_MS = MINUTES.start_s * 1000
END_MS = START_MS + MINUTES.hours * 3_600_000


def sample(minute: int, end: int | None, topic: str = "t", **changes: Any) -> tuple[Any, ...]:
    """A sample of partition 0 of a topic: two replicas, 100 bytes per message, no deleted messages."""
    size = None if end is None else end * 100
    values = {
        "cluster_id": "c",
        "topic": topic,
        "partition": 0,
        "sampled_at_ms": START_MS + minute * MINUTE_MS + 300,
        "round_ms": START_MS + minute * MINUTE_MS,
        "leader": 1,
        "leader_epoch": 0,
        "replicas": [1, 2],
        "isr": [1, 2],
        "start_offset": None if end is None else 0,
        "end_offset": end,
        "size_bytes": [size, size],
        "committed_offset_sum": end,
        "committed_groups": 1,
    }
    return tuple({**values, **changes}.values())


def facts_of(spark: SparkSession, *samples: tuple[Any, ...]) -> dict[str, Any]:
    """The fact of the first hour, by topic."""
    frame = spark.createDataFrame(list(samples), ddl(SAMPLE_ROWS))
    found = hourly(frame, MINUTE_MS).where(f"hour = timestamp_seconds({MINUTES.start_s})").collect()
    return {row.topic: row for row in found}


def run_stage(spark: SparkSession, folder: Path, samples: str = "samples") -> list[dict[str, Any]]:
    """Run the stage over `samples` and return the stored facts."""
    options = facts.FactsOptions(now_ms=END_MS, window_days=14)
    facts.run(
        spark, Samples(spark, str(folder / samples)), str(folder / "facts"), str(folder / "out"), options, LeftOuts()
    )
    return rows(folder / "facts", order=FACT_ORDER)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day of samples, written once for this module; tests change only copies."""
    folder = tmp_path_factory.mktemp("samples")
    write_samples(lay_out(MINUTES), folder / "samples")
    return folder


def test_samples_that_cannot_be_compared_are_marked_and_yield_no_number(spark: SparkSession) -> None:
    """Resets, leader changes, gaps, missing values, duplicate samples: one topic for each."""
    found = facts_of(
        spark,
        *(sample(minute, 1000 + 10 * minute, "plain") for minute in range(6)),
        *(sample(minute, 1000 + 10 * minute, "twice") for minute in (0, 1, 1, 2, 2, 3)),
        sample(0, 1000, "reset"),
        sample(1, 1010, "reset"),
        sample(2, 5, "reset"),
        sample(3, 25, "reset"),
        sample(0, 1000, "gap"),
        sample(1, 1010, "gap"),
        sample(20, 9000, "gap"),
        sample(21, 9010, "gap"),
        sample(0, 1000, "unknown"),
        sample(1, None, "unknown", leader=-1),
        sample(2, 1020, "unknown"),
        sample(0, 1000, "moved"),
        sample(1, 1010, "moved", leader=2, size_bytes=[101000, 77]),
        sample(2, 1020, "moved", leader=2, size_bytes=[101000, 177]),
        sample(0, 1000, "groups"),
        sample(1, 1010, "groups", committed_groups=2, committed_offset_sum=5000),
        sample(2, 1020, "groups", committed_groups=2, committed_offset_sum=4000),
    )

    expected = {
        # minutes, resets, leader changes, messages, bytes read, growth of the leader's copy
        "plain": (5, 0, 0, 50.0, 5000.0, 5000.0),
        "twice": (3, 0, 0, 30.0, 3000.0, 3000.0),
        "reset": (2, 1, 0, 30.0, 3000.0, 3000.0),
        "gap": (2, 0, 0, 20.0, 2000.0, 2000.0),
        "unknown": (0, 0, 0, None, None, None),
        "moved": (2, 0, 1, 20.0, pytest.approx(20 * (77 + 177) / (1010 + 1020)), 100.0),
        "groups": (2, 0, 0, 20.0, None, 2000.0),
    }
    assert {
        topic: (row.minutes, row.resets, row.leader_changes, row.messages_in, row.bytes_out, row.size_growth_bytes)
        for topic, row in found.items()
    } == expected
    assert {found[topic].bytes_out_source for topic in ("unknown", "groups")} == {"none"}
    assert (found["unknown"].leader, found["plain"].gap_minutes, found["moved"].leader) == (1, 55, 2)


def test_facts_equal_the_generated_load(spark: SparkSession, written: Path, tmp_path: Path) -> None:
    """Messages of every hour with all samples are exact, and the next run returns the same facts."""
    layout = lay_out(MINUTES)
    shutil.copytree(written / "samples", tmp_path / "samples")

    found = run_stage(spark, tmp_path)

    truth = {
        (layout.names[layout.topic[row]], int(layout.partition[row]), hour.hour): float(hour.messages[row])
        for hour in hours(layout)
        for row in range(MINUTES.partitions)
    }
    whole = [row for row in found if row["minutes"] == 60]
    assert len(whole) > 0.85 * len(truth)
    for one in whole:
        hour = (int(one["hour"].timestamp()) - MINUTES.start_s) // 3600
        assert pytest.approx(truth[one["topic"], one["partition"], hour], abs=1) == one["messages_in"]
    changes = sum(row["leader_changes"] for row in found)
    assert sum((layout.leaders(hour) != layout.leaders(hour - 1)).sum() for hour in range(1, MINUTES.hours)) == changes
    assert len(layout.resets) == sum(row["resets"] for row in found)
    assert found == run_stage(spark, tmp_path)


def test_late_samples_are_included_and_facts_are_kept_without_their_samples(
    spark: SparkSession, written: Path, tmp_path: Path
) -> None:
    """Samples that arrive after a run result in the same facts. Facts stay when retention deletes their samples."""
    files = sorted((written / "samples").rglob("*.parquet"))
    day = tmp_path / "samples" / files[0].parent.name
    day.mkdir(parents=True)
    for file in files[:8] + files[9:]:
        shutil.copy(file, day)
    without = run_stage(spark, tmp_path)

    shutil.copy(files[8], day)
    late = run_stage(spark, tmp_path)
    for file in sorted(day.glob("*.parquet"))[:12]:
        file.unlink()
    after = run_stage(spark, tmp_path)

    in_eighth = [[row["minutes"] for row in found if row["hour"].hour == 8] for found in (without, late)]
    assert in_eighth == [[0] * MINUTES.partitions, [60] * MINUTES.partitions]
    assert late == after


def test_samples_of_wrong_clocks_are_left_out_and_reported(spark: SparkSession, tmp_path: Path) -> None:
    """A sample with a time an hour from its round, and one in the future."""
    wrong = [sample(minute, 1000 + minute) for minute in range(4)]
    wrong += [sample(4, 9000, sampled_at_ms=START_MS + 3_600_000), sample(2_000_000, 9000)]
    names = [column.name for column in SAMPLE_ROWS]
    folder = tmp_path / "samples" / "date=2026-01-05"
    folder.mkdir(parents=True)
    schema = pa.schema(
        [(name, pa.int32()) for name in ("partition", "leader", "leader_epoch", "committed_groups")]
        + [("replicas", pa.list_(pa.int32())), ("isr", pa.list_(pa.int32()))]
    )
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in wrong])
    for field in schema:
        table = table.set_column(names.index(field.name), field.name, table[field.name].cast(field.type))
    pq.write_table(table, folder / "a.parquet")
    left_out = LeftOuts()

    samples = Samples(spark, str(tmp_path / "samples"))
    options = facts.FactsOptions(now_ms=END_MS, window_days=14)
    facts.run(spark, samples, str(tmp_path / "facts"), str(tmp_path / "out"), options, left_out)

    assert [(note.what, note.count) for note in left_out.all()] == [("samples whose clocks disagree", 2)]
    assert [row["messages_in"] for row in rows(tmp_path / "facts") if row["minutes"]] == [3.0]
