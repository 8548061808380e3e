"""Samples for tests: generated, or built from rows."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from balance_analytics.model.samples import NO_BROKER, UNKNOWN, Samples

LONG = st.integers(0, 2**62)
OPTIONAL = st.none() | LONG
BROKERS = st.lists(st.integers(0, 2**31 - 1), max_size=4, unique=True)


def samples(topics: dict[str, list[dict[str, Any]]], *, round_ms: int = 60_000, cluster_id: str = "cluster") -> Samples:
    """Return a sample with these rows, by column; None means unknown."""
    rows = [row for found in topics.values() for row in found]
    width = max((len(row["replicas"]) for row in rows), default=0)
    isr_width = max((len(row["isr"]) for row in rows), default=0)

    def numbers(name: str, kind: Any = np.int64) -> Any:
        return np.array([UNKNOWN if row[name] is None else row[name] for row in rows], kind)

    def lists(name: str, longest: int, kind: Any, rest: int) -> Any:
        found = np.full((len(rows), longest), rest, kind)
        for at, row in enumerate(rows):
            found[at, : len(row[name])] = [UNKNOWN if value is None else value for value in row[name]]
        return found

    return Samples(
        cluster_id,
        round_ms,
        tuple(topics),
        np.cumsum([0, *map(len, topics.values())]),
        np.full(len(topics), round_ms + 5, np.int64),
        numbers("partition", np.int32),
        numbers("leader", np.int32),
        numbers("leader_epoch", np.int32),
        lists("replicas", width, np.int32, NO_BROKER),
        lists("isr", isr_width, np.int32, NO_BROKER),
        numbers("start_offset"),
        numbers("end_offset"),
        lists("size_bytes", width, np.int64, UNKNOWN),
        numbers("committed_offset_sum"),
        numbers("committed_groups", np.int32),
    )


def row(partition: int = 0, **values: Any) -> dict[str, Any]:
    """One partition's values, with defaults."""
    replicas = values.get("replicas", [1, 2, 3])
    defaults = {
        "partition": partition,
        "leader": replicas[0] if replicas else NO_BROKER,
        "leader_epoch": 4,
        "replicas": replicas,
        "isr": replicas,
        "start_offset": 10,
        "end_offset": 1_000,
        "size_bytes": [4_096] * len(replicas),
        "committed_offset_sum": 900,
        "committed_groups": 1,
    }
    return {**defaults, **values}


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Some partitions of one topic, with missing values of all kinds."""
    found = []
    for partition in range(draw(st.integers(1, 4))):
        replicas = draw(BROKERS)
        optional = draw(st.lists(OPTIONAL, min_size=len(replicas), max_size=len(replicas)))
        values = {
            "replicas": replicas,
            "isr": draw(BROKERS),
            "size_bytes": optional,
            "leader": draw(st.integers(-1, 9)),
        }
        values |= {name: draw(OPTIONAL) for name in ("start_offset", "end_offset", "committed_offset_sum")}
        found.append(row(partition, **values))
    return found


SAMPLES = st.dictionaries(st.text(min_size=1, max_size=20), rows(), max_size=3).map(samples)
