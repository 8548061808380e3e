"""Loads are the same whichever layout facts have, and cost one shuffle of the facts."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from balance_analytics.jobs.day_rows import StoredFacts
from balance_analytics.jobs.main import parser, run
from balance_analytics.jobs.problems import LeftOuts
from balance_analytics.jobs.publishing import Published
from balance_analytics.model.facts import is_of_days
from balance_analytics.model.loads import BROKER_HOURS_PART, PARTITIONS_PART
from balance_analytics.model.manifest import FOLDER
from lab.generated_load import lay_out
from lab.generated_load.hourly_facts import write_day_facts, write_facts
from tests.balance_analytics.generated import SMALL
from tests.balance_analytics.published import FACT_ORDER, newest, rows
from tests.balance_analytics.shared_spark import SharedSpark
from tests.twins.plain_loads import plain_loads

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

LOAD = replace(SMALL, days=3, partitions=60, topics=6)
END_MS = (LOAD.start_s + LOAD.hours * 3600) * 1000
WINDOW_DAYS = 2
"""Less than is stored: the first day is not read."""


@pytest.fixture(scope="module")
def stored(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same facts as rows of a day (`days`), and with one day as hourly rows of an earlier version (`both`)."""
    assert shared_spark.get() is not None
    folder = tmp_path_factory.mktemp("layouts")
    write_day_facts(lay_out(LOAD), folder / "days" / "facts")
    write_facts(lay_out(LOAD), folder / "hours" / "facts")
    shutil.copytree(folder / "days", folder / "both")
    (old,) = (folder / "hours" / "facts" / "date=2026-01-06").iterdir()
    path = f"date=2026-01-06/{old.name}"
    (folder / "both" / "facts" / "date=2026-01-06").mkdir()
    shutil.copy(old, folder / "both" / "facts" / path)
    (manifest,) = (folder / "both" / "facts" / FOLDER).iterdir()
    named = json.loads(manifest.read_text())
    named["parts"]["2026-01-06"] = [[path, old.stat().st_size]]
    manifest.write_text(json.dumps(named))
    return folder


def loads_of(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The tables that the stage writes."""
    arguments = ["--facts", f"{folder}/facts", "--out", f"{folder}/out", "--stage", "loads"]
    run(parser().parse_args([*arguments, "--window-days", str(WINDOW_DAYS)]), END_MS)
    out = folder / "out" / "loads"
    return rows(out, PARTITIONS_PART, ("topic", "partition")), rows(out, BROKER_HOURS_PART, ("broker", "hour"))


def test_loads_are_the_same_for_both_layouts_and_those_of_the_plain_twin(stored: Path) -> None:
    """Rounded to thousandths; sums may end in another order, which shows in the last digit."""
    facts = rows(stored / "days" / "facts", order=FACT_ORDER)
    by_partition, by_broker = plain_loads(facts, WINDOW_DAYS, 5)

    for layout in ("days", "both"):
        partitions, brokers = loads_of(stored / layout)
        assert {
            (partition["topic"], partition["partition"]): _close(partition, by_partition) for partition in partitions
        } == by_partition
        assert len(partitions) == len(by_partition)
        found = {(broker["broker"], int(broker["hour"].timestamp())): broker for broker in brokers}
        assert {cell: {name: facts[name] for name in by_broker[cell]} for cell, facts in found.items()} == {
            cell: {name: pytest.approx(value, abs=2e-3) for name, value in sums.items()}
            for cell, sums in by_broker.items()
        }


def _close(found: dict[str, Any], expected: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    """The figures of one partition, for a comparison within a thousandth."""
    wanted = expected[found["topic"], found["partition"]]
    return {
        name: pytest.approx(found[name], rel=1e-9, abs=2e-3) if isinstance(value, float) else found[name]
        for name, value in wanted.items()
    }


def test_hourly_facts_are_read_back_as_they_were_stored(stored: Path, spark: SparkSession) -> None:
    """By the stage `facts`, for days that it computes again: in either layout, and in both."""
    expected = rows(stored / "days" / "facts", order=FACT_ORDER)
    for layout in ("days", "both"):
        root = stored / layout / "facts"
        table = Published(spark, str(root), "facts")
        found = StoredFacts.of(table, table.newest(LeftOuts())).by_hour().orderBy(*FACT_ORDER).toArrow().to_pylist()
        assert found == expected
    assert [is_of_days(file.path) for file in newest(stored / "both" / "facts").files()] == [True, False, True]


def test_a_corrupt_file_of_facts_is_named_and_the_other_days_are_computed(stored: Path, tmp_path: Path) -> None:
    """Its size is that of the manifest, so only reading shows it."""
    shutil.copytree(stored / "days" / "facts", tmp_path / "facts")
    (file,) = tmp_path.glob("facts/v=*/rows=day/date=2026-01-06/*.parquet")
    file.write_bytes(b"no Parquet".ljust(file.stat().st_size))

    partitions, _ = loads_of(tmp_path)

    left_out = json.loads((tmp_path / "out" / "left_out" / "loads.json").read_text())
    corrupt = [note["what"] for note in left_out if note["what"].endswith("the file is corrupt or empty")]
    assert [_relative(reason, tmp_path) for reason in corrupt] == [str(file.relative_to(tmp_path))]
    assert {partition["hours"] for partition in partitions} == {24}


def _relative(what: str, folder: Path) -> str:
    return what.partition(f"{folder}/")[2].partition(":")[0]


def test_loads_cost_two_jobs_and_one_shuffle_of_the_facts(stored: Path, spark: SparkSession) -> None:
    """By Spark's own record: a job finds the ends of the window, and another one, of two stages, computes all loads."""
    before = len(_stages_of_jobs(spark))
    loads_of(stored / "days")

    assert _stages_of_jobs(spark)[before:] == [1, 2]


def _stages_of_jobs(spark: SparkSession) -> list[int]:
    """The number of stages of each job so far."""
    jobs = spark._jsc.sc().statusStore().jobsList(None)
    found = {jobs.apply(at).jobId(): jobs.apply(at).stageIds().size() for at in range(jobs.size())}
    return [found[job] for job in sorted(found)]
