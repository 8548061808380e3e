"""Loads of partitions and brokers are those of the plain twin, which goes from one hourly row to the next."""

from __future__ import annotations

import io
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balance_analytics.jobs import window_loads
from balance_analytics.jobs.day_batches import day_batches
from balance_analytics.jobs.day_matrices import (
    Window,
    by_bucket,
    ends_of_file,
    matrices_of_file,
)
from balance_analytics.jobs.facts_columns import UnreadableFileError
from balance_analytics.jobs.window_loads import broker_hours, task_loads
from balance_analytics.study.partition_hours import BrokerSums
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
    return Window(start_s, end_s, last_day_s + DAY_S, MIN_MINUTES)


def files(rows: list[dict[str, Any]], size: int, layout: str) -> list[tuple[str, bytes]]:
    """Files of facts by day, of earlier versions (`hours`) or of this one; row groups have at most `size` rows."""
    found = []
    for day in sorted({row["hour"].date() for row in rows}):
        of_day = [row for row in rows if row["hour"].date() == day]
        made = batches(of_day, 1000, by_day=layout == "days")
        stream = io.BytesIO()
        table = pa.Table.from_batches(day_batches(made) if layout == "days" else made)
        # Spark writes times as INT96, without a time zone.
        pq.write_table(table, stream, row_group_size=size, use_deprecated_int96_timestamps=layout == "hours")
        folder = "v=1/rows=day" if layout == "days" else "v=1"
        found.append((f"/facts/{folder}/date={day}/a.parquet", stream.getvalue()))
    return found


def computed(
    rows: list[dict[str, Any]], window: Window, size: int, layout: str = "days", buckets: int = 1
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """What all tasks compute, a task for each bucket; days before the window are not read."""
    first = datetime.fromtimestamp(window.start_s, START.tzinfo).date().isoformat()
    read = [file for file in files(rows, size, layout) if file[0].split("date=")[1][:10] >= first]
    parts = [
        part for file in read for found in matrices_of_file(window, None, *file) for part in by_bucket(found, buckets)
    ]
    tasks = [task_loads(window, [part for at, part in parts if at == bucket]) for bucket in range(buckets)]
    sums = BrokerSums.none()
    for task in tasks:
        sums = sums.plus(task.sums)
    loads = [row for task in tasks for table in task.loads for row in table.to_pylist()]
    brokers = broker_hours(window, sums).to_pylist()
    return (
        {(row["topic"], row["partition"]): row for row in loads},
        {(row["broker"], int(row["hour"].timestamp())): row for row in brokers},
    )


@given(
    facts(),
    st.integers(1, 3),
    st.integers(1, 10),
    st.sampled_from((1, window_loads.MAX_CELLS)),
    st.sampled_from(("days", "hours")),
    st.integers(1, 3),
)
def test_loads_are_those_of_the_plain_twin(
    rows: list[dict[str, Any]], days: int, size: int, cells: int, layout: str, buckets: int
) -> None:
    """Windows that begin within a day, gaps, partitions that are gone, brokers with any id; any number of row groups, partitions at once and tasks."""
    expected_loads, expected_brokers = plain_loads(rows, days, MIN_MINUTES)

    with patch.object(window_loads, "MAX_CELLS", cells):
        loads, brokers = computed(rows, window_of(rows, days), size, layout, buckets)

    assert loads.keys() == expected_loads.keys()
    for key, expected in expected_loads.items():
        found = {name: loads[key][name] for name in expected}
        assert {name: _close(value) for name, value in expected.items()} == found
    assert brokers.keys() == expected_brokers.keys()
    for cell, sums in expected_brokers.items():
        assert {name: brokers[cell][name] for name in sums} == {n: _close(v) for n, v in sums.items()}


def _close(value: Any) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-3) if isinstance(value, float) else value


def test_the_busiest_hour_is_the_first_of_those_with_the_same_whole_bytes() -> None:
    """Rates of 100.5 and 101.4 bytes/s are both 101: the first of them counts, though it is the lower one."""
    rows = [row(hour, rate * 3600) for hour, rate in enumerate((3.0, 100.5, 101.4, 100.4))]

    loads, _ = computed(rows, window_of(rows, 3), 10)

    assert loads["a", 0]["bytes_in_peak_hour"] == START + timedelta(hours=1)
    assert loads["a", 0]["bytes_in_peak"] == pytest.approx(101.4)


@given(facts(), st.sampled_from(("days", "hours")))
def test_the_ends_of_facts_are_the_first_and_the_last_hour_that_counts(rows: list[dict[str, Any]], layout: str) -> None:
    """Hours with fewer minutes, and days without any hour that counts, are no ends."""
    counting = [int(row["hour"].timestamp()) for row in rows if row["minutes"] >= MIN_MINUTES]

    found = [ends for file in files(rows, 5, layout) for ends in ends_of_file(MIN_MINUTES, *file).values()]

    assert (min(first for first, _ in found), max(last for _, last in found)) == (min(counting), max(counting))


def parquet(**columns: list[Any]) -> bytes:
    """A file with some columns."""
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"PAR1 this is not Parquet PAR1", b"no Parquet" * 40),
        *(parquet(topic=["a"]), parquet(day=[START], minutes=[[60] * 23])),
    ],
    ids=["empty", "marks alone", "text", "without columns", "with a day of 23 hours"],
)
def test_a_file_that_is_no_file_of_facts_is_named(data: bytes) -> None:
    """The stage leaves it out by its name."""
    with pytest.raises(UnreadableFileError, match=r"^/facts/rows=day/a\.parquet: "):
        list(matrices_of_file(Window(0, 1, 1, 5), None, "/facts/rows=day/a.parquet", data))


def test_only_the_rows_of_the_chosen_cluster_are_read() -> None:
    """Where facts are of several clusters."""
    rows = [row(hour, 1.0) | {"cluster_id": cluster} for cluster in ("c", "d") for hour in range(4)]
    ((_, data),) = files(rows, 10, "days")

    found = list(matrices_of_file(window_of(rows, 3), "d", "/rows=day/a", data))

    assert [part.series for part in found] == [(("d", "a"),)]


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
