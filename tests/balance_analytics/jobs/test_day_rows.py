"""Facts are stored by day, and read back by hour, as they were."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from balance_analytics.jobs.day_batches import day_batches, whole_groups
from balance_analytics.model.column import names
from balance_analytics.model.facts import DAY_FACTS, DAY_KEY
from tests.balance_analytics.hourly_rows import batches, facts
from tests.balance_analytics.published import unpacked


@given(facts(), st.integers(1, 50))
def test_rows_of_a_day_have_the_hours_that_they_are_made_of(rows: list[dict[str, Any]], size: int) -> None:
    """However the rows are cut into batches; every array has 24 hours, and no partition has a day twice."""
    found = [row for batch in day_batches(batches(rows, size)) for row in batch.to_pylist()]

    assert list(unpacked(found)) == rows
    assert all(list(row) == names(DAY_FACTS) for row in found)
    assert {len(row[name]) for row in found for name in names(DAY_FACTS) if name not in DAY_KEY} == {24}
    assert len({tuple(row[name] for name in DAY_KEY) for row in found}) == len(found)


@given(facts(), st.integers(1, 50))
def test_groups_are_never_cut(rows: list[dict[str, Any]], size: int) -> None:
    """Each group of rows is in one batch, and its start is known."""
    found: list[list[dict[str, Any]]] = []
    for batch, starts in whole_groups(batches(rows, size), ("topic", "partition")):
        ends = [*starts[1:].tolist(), batch.num_rows]
        found += [batch.slice(at, end - at).to_pylist() for at, end in zip(starts.tolist(), ends, strict=True)]

    keys = [{(row["topic"], row["partition"]) for row in group} for group in found]
    assert [len(key) for key in keys] == [1] * len({(row["topic"], row["partition"]) for row in rows})
    assert [row["hour"] for group in found for row in group] == [row["hour"] for row in rows]
