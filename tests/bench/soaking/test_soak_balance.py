"""Soak test of the balance analytics: its lines and its comparison of results."""

from bench import soak
from bench.soaking.balance.kills import short
from bench.soaking.balance.results import Results
from bench.soaking.balance.soak import NAMES

FACTS = {"2026-01-05": [{"topic": "t", "bytes_in": [1.0]}]}


def test_results_differ_by_rows_and_by_bytes_of_the_files_that_are_compared() -> None:
    """Files that a run does not write are not compared."""
    expected = Results(FACTS, {}, {"result.json": b"1", "report.html": b"1"})
    found = Results({"2026-01-05": []}, {}, {"result.json": b"2", "report.html": b"2"})

    assert found.differences(expected, ["result.json"]) == ["facts", "result.json"]
    assert expected.differences(expected) == []


def test_an_operation_is_named_without_what_each_run_makes_up() -> None:
    """So that two runs that are killed at the same point print the same line."""
    path = "facts/v=0a1b2c3d4e5f/rows=day/.spark-staging-9b55d80e-299d/_temporary/0/task_2026_m_0/part-00000-9b55.c000.parquet"

    assert short(f"rename /w/{path}", "/w") == (
        "rename facts/v=*/rows=day/.spark-staging-*/_temporary/0/task_*/part-*.parquet"
    )


def test_the_soak_of_the_analytics_runs_all_scenarios_or_those_that_are_named() -> None:
    """Without `--analytics` none."""
    assert soak.parse([]).analytics is None
    assert soak.parse(["--analytics"]).analytics == []
    assert soak.parse(["--analytics", "executors", "unavailable"]).analytics == ["executors", "unavailable"]
    assert set(NAMES) >= {"kills-folder", "kills-kafka", "executors", "unavailable"}
