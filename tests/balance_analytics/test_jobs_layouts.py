"""Loads are the same whichever layout facts have, and cost one scan and one shuffle of the facts."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from balance_analytics.jobs.day_rows import StoredFacts
from balance_analytics.jobs.main import parser, run
from balance_analytics.jobs.publishing import Published
from balance_analytics.jobs.troubles import LeftOuts
from balance_analytics.model.facts import is_of_days
from balance_analytics.model.loads import BROKER_HOURS_PART, PARTITIONS_PART
from balance_analytics.model.manifest import FOLDER
from lab.generated_load import lay_out
from lab.generated_load.hourly_facts import write_day_facts, write_facts
from tests.balance_analytics.generated import SMALL
from tests.balance_analytics.published import FACT_ORDER, newest, rows
from tests.twins.plain_loads import plain_loads

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

LOAD = replace(SMALL, days=3, partitions=60, topics=6)
END_MS = (LOAD.start_s + LOAD.hours * 3600) * 1000
WINDOW_DAYS = 2
"""Less than is stored: the first day is not read."""


@pytest.fixture(scope="module")
def stored(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same facts as rows of a day (`days`), and with one day as hourly rows of an earlier version (`both`)."""
    assert spark is not None
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
        assert {(one["topic"], one["partition"]): _close(one, by_partition) for one in partitions} == by_partition
        assert len(partitions) == len(by_partition)
        found = {(one["broker"], int(one["hour"].timestamp())): one for one in brokers}
        assert {cell: {name: one[name] for name in by_broker[cell]} for cell, one in found.items()} == {
            cell: {name: pytest.approx(value, abs=2e-3) for name, value in sums.items()}
            for cell, sums in by_broker.items()
        }


def _close(found: dict[str, Any], expected: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    """The figures of one partition, for a comparison within a thousandth."""
    wanted = expected[found["topic"], found["partition"]]
    found["bytes_in_peak_hour"] = found["bytes_in_peak_hour"].replace(tzinfo=UTC)  # Spark's files do not name it
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


def test_loads_cost_one_scan_and_one_shuffle_of_the_facts(stored: Path, spark: SparkSession) -> None:
    """By Spark's own record of executed plans: rates are read by one query, which has one scan and one exchange."""
    before = len(_plans(spark))
    loads_of(stored / "days")
    plans = _plans(spark)[before:]

    of_rates = [plan for plan in plans if _scans(plan, "bytes_in:array<double>")]
    assert len(of_rates) == 1
    final = of_rates[0].split("== Initial Plan ==")[0]
    assert (final.count("Scan parquet"), final.count("Exchange")) == (1, 1)
    others = [plan for plan in plans if _scans(plan, "minutes:array<int>") and plan not in of_rates]
    assert len(others) == 1  # the ends of the window: minutes of two days
    assert not _scans(others[0], "topic:string")


def _plans(spark: SparkSession) -> list[str]:
    """The plans of all queries so far."""
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()  # type: ignore[attr-defined]
    return [executions.apply(at).physicalPlanDescription() for at in range(executions.size())]


def _scans(plan: str, column: str) -> bool:
    return any("ReadSchema" in line and column in line for line in plan.splitlines())
