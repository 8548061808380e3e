"""Generated rows of facts: gaps, hours with few minutes, deleted topics, unknown sizes, leaders and replicas that change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from balance_analytics.jobs.arrow_types import ARROW_TYPES
from balance_analytics.model.column import names
from balance_analytics.model.facts import FACTS

START = datetime(2026, 1, 5, tzinfo=UTC)
BROKERS = (1, 2, 2**31 - 1)

replicas = st.lists(st.sampled_from(BROKERS), min_size=0, max_size=3, unique=True)
amounts = st.none() | st.integers(0, 10**9).map(float)


@st.composite
def facts(draw: st.DrawFn, days: int = 3) -> list[dict[str, Any]]:
    """Some partitions with some hours each, in the order of KEY; at least one hour counts."""
    found = []
    for topic, partition in draw(st.lists(st.sampled_from([("a", 0), ("a", 1), ("b", 0)]), min_size=1, unique=True)):
        steady = draw(st.booleans())
        usual = draw(st.sampled_from((*BROKERS, -1))), draw(replicas)
        for hour in sorted(draw(st.sets(st.integers(0, days * 24 - 1), min_size=1, max_size=40))):
            leader, placed = usual if steady else (draw(st.sampled_from((*BROKERS, -1))), draw(replicas))
            found.append(_fact(draw, topic, partition, hour, leader, placed))
    found[0]["minutes"] = 60
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["hour"]))


def _fact(draw: st.DrawFn, topic: str, partition: int, hour: int, leader: int, placed: list[int]) -> dict[str, Any]:
    row = {
        "cluster_id": "c",
        "topic": topic,
        "partition": partition,
        "hour": START + timedelta(hours=hour),
        "leader": leader,
        "replicas": placed,
        "minutes": draw(st.sampled_from((0, 4, 5, 60, 60))),
        "gap_minutes": 0,
        "resets": draw(st.sampled_from((0, 0, 1))),
        "leader_changes": draw(st.sampled_from((0, 0, 2))),
        **{name: draw(amounts) for name in ("messages_in", "bytes_in", "bytes_out", "record_bytes")},
        "bytes_out_source": draw(st.sampled_from(("estimate", "prometheus"))),
        "size_bytes": draw(st.none() | st.integers(0, 2**45)),
        "size_growth_bytes": None,
        "source_in": draw(st.sampled_from(("offsets", "offsets", "prometheus"))),
    }
    return {name: row[name] for name in names(FACTS)}


def batches(rows: Sequence[dict[str, Any]], size: int, *, by_day: bool = True) -> Iterator[Any]:
    """Rows of FACTS as Arrow batches of at most `size` rows, with their day."""
    schema = [(column.name, ARROW_TYPES[column.kind]) for column in FACTS]
    table = pa.Table.from_pylist(list(rows), pa.schema(schema))
    if by_day:
        days = [row["hour"].replace(hour=0) for row in rows]
        table = table.append_column("day", pa.array(days, pa.timestamp("us", tz="UTC")))
    yield from table.to_batches(max_chunksize=size)
