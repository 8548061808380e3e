"""Loads of partitions and brokers are those of the plain twin, which goes from one hourly row to the next."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balance_analytics.jobs import window_loads
from balance_analytics.jobs.day_rows import day_batches
from balance_analytics.jobs.window_loads import (
    COUNTS,
    SOURCES,
    STAGED_INPUT,
    STEADY,
    Window,
    loads_batches,
)
from balance_analytics.model.column import names
from tests.balance_analytics.hourly_rows import START, batches, facts
from tests.twins.plain_loads import plain_loads

MIN_MINUTES = 5
DAY_S = 86_400


def window_of(rows: list[dict[str, Any]], days: int) -> Window:
    """The window that the stage finds: it ends with the last hour that counts."""
    counting = [int(row["hour"].timestamp()) for row in rows if row["minutes"] >= MIN_MINUTES]
    end_s = max(counting) + 3600
    start_s = max(min(counting), end_s - days * DAY_S)
    last_day_s = max(int(row["hour"].timestamp()) for row in rows) // DAY_S * DAY_S
    return Window(start_s, end_s, (last_day_s + DAY_S - start_s) // 3600, MIN_MINUTES)


def shortened(row: dict[str, Any]) -> dict[str, Any]:
    """A row of DAY_FACTS as the stage gives it to a task."""
    found = {name: row[name] for name in names(STAGED_INPUT)}
    for name in STEADY:
        found[name] = row[name][:1] if all(one == row[name][0] for one in row[name]) else row[name]
    found |= {name: row[name] if any(row[name]) else None for name in COUNTS}
    found |= {name: row[name] if "prometheus" in row[name] else None for name in SOURCES}
    return found


def computed(rows: list[dict[str, Any]], window: Window, size: int) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """What a task computes, partitions that are gone left out; days before the window are not read."""
    found = list(day_batches(batches(rows, 1000)))
    first_day_s = window.start_s // DAY_S * DAY_S
    days = [shortened(row) for batch in found for row in batch.to_pylist() if row["day"].timestamp() >= first_day_s]
    schema = pa.schema([found[0].schema.field(name) for name in names(STAGED_INPUT)])
    given = pa.Table.from_pylist(days, schema).to_batches(max_chunksize=size)
    staged = [row for batch in loads_batches(window, given) for row in batch.to_pylist()]
    loads = {(row["topic"], row["partition"]): row for row in staged if row["topic"] is not None}
    there = {key: row for key, row in loads.items() if row["last_hour"].timestamp() >= window.gone_before_s}
    brokers = {
        (row["broker_broker"], int(row["broker_hour"].timestamp())): row for row in staged if row["topic"] is None
    }
    return there, brokers


@given(facts(), st.integers(1, 3), st.integers(1, 10), st.sampled_from((1, window_loads.MAX_CELLS)))
def test_loads_are_those_of_the_plain_twin(rows: list[dict[str, Any]], days: int, size: int, cells: int) -> None:
    """Windows that begin within a day, gaps, partitions that are gone, brokers with any id; batches of any size, all or one partition at once."""
    expected_loads, expected_brokers = plain_loads(rows, days, MIN_MINUTES)

    with patch.object(window_loads, "MAX_CELLS", cells):
        loads, brokers = computed(rows, window_of(rows, days), size)

    assert loads.keys() == expected_loads.keys()
    for key, expected in expected_loads.items():
        found = {name: loads[key][name] for name in expected}
        assert {name: _close(value) for name, value in expected.items()} == found
    assert brokers.keys() == expected_brokers.keys()
    for cell, sums in expected_brokers.items():
        assert {name: brokers[cell][f"broker_{name}"] for name in sums} == {n: _close(v) for n, v in sums.items()}


def _close(value: Any) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-3) if isinstance(value, float) else value


def test_the_busiest_hour_is_the_first_of_those_with_the_same_whole_bytes() -> None:
    """Rates of 100.5 and 101.4 bytes/s are both 101: the first of them counts, though it is the lower one."""
    rows = [row(hour, rate * 3600) for hour, rate in enumerate((3.0, 100.5, 101.4, 100.4))]

    loads, _ = computed(rows, window_of(rows, 3), 10)

    assert loads["a", 0]["bytes_in_peak_hour"] == START + timedelta(hours=1)
    assert loads["a", 0]["bytes_in_peak"] == pytest.approx(101.4)


def row(hour: int, bytes_in: float) -> dict[str, Any]:
    """The fact of an hour without anything special."""
    return {
        "cluster_id": "c",
        "topic": "a",
        "partition": 0,
        "hour": START + timedelta(hours=hour),
        "leader": 1,
        "replicas": [1],
        "minutes": 60,
        "gap_minutes": 0,
        "resets": 0,
        "leader_changes": 0,
        "bytes_in": bytes_in,
        "bytes_out_source": "none",
        "source_in": "offsets",
    }
