"""Samples of a small cluster over four days, as a folder of Parquet and as messages of the samples topic.

`FIRST` are there at the first run and `MORE` at the second: a new day, and samples of the day before that came 25 hours late, twice,
from a second sampler, and from one with a wrong clock.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from balance_analytics.jobs.arrow_types import ARROW_TYPES
from balance_analytics.jobs.landing import PER_MESSAGE
from balance_analytics.model.column import names
from balance_analytics.model.sample_rows import SAMPLE_ROWS

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
MONDAY_MS = 1_767_571_200_000
"""2026-01-05 00:00 UTC."""

FIRST_RUN_MS = MONDAY_MS + 3 * DAY_MS + HOUR_MS
SECOND_RUN_MS = MONDAY_MS + 4 * DAY_MS + HOUR_MS
"""At 01:00 UTC of the days after the samples."""

SCHEMA = pa.schema([(column.name, ARROW_TYPES[column.kind]) for column in SAMPLE_ROWS])

KAFKA_TIMEOUT_S = 60.0

Row = dict[str, Any]


def samples(day: int, first: int, last: int, begin: int, **changes: Any) -> list[Row]:
    """Return samples of two partitions for some minutes of a day, both inclusive, with ten messages of 100 bytes a minute."""
    found = []
    for minute in range(first, last + 1):
        for partition in (0, 1):
            round_ms = MONDAY_MS + day * DAY_MS + minute * MINUTE_MS
            end = begin + 10 * (minute - first) * (1 + 9 * partition)
            row = {
                "cluster_id": "c", "topic": "orders", "partition": partition, "sampled_at_ms": round_ms + 300,
                "round_ms": round_ms, "leader": 1, "leader_epoch": 0, "replicas": [1, 2], "isr": [1, 2],
                "start_offset": 0, "end_offset": end, "size_bytes": [end * 100, end * 100],
                "committed_offset_sum": end, "committed_groups": 1,
            }  # fmt: skip
            found.append({**row, **changes})
    return found


def _later(rows: Iterable[Row]) -> list[Row]:
    """Return the same rounds as another sampler has them."""
    return [{**row, "sampled_at_ms": row["sampled_at_ms"] + 5000, "end_offset": row["end_offset"] + 1} for row in rows]


_NIGHT = samples(2, 1435, 1439, 9000)

FIRST = [
    *samples(0, 600, 606, 1000),
    *samples(1, 600, 606, 3000),
    *samples(2, 600, 606, 5000),
    *_NIGHT,
]
MORE = [
    *samples(2, 700, 706, 6000),
    *_NIGHT,
    *_later(_NIGHT),
    *samples(3, 0, 12, 9050),
    *samples(3, 300, 303, 9900, topic="payments", leader=2),
    *samples(3, 20, 22, 9500, sampled_at_ms=MONDAY_MS),
]
"""The last three minutes have a wrong clock; rows that came twice are in both."""

WRONG_CLOCKS = 6


def write_parquet(rows: Iterable[Row], folder: Path, name: str) -> None:
    """Write samples as a file in each of their days."""
    by_day: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_day[f"date=2026-01-{5 + (row['round_ms'] - MONDAY_MS) // DAY_MS:02}"].append(row)
    for day, some in by_day.items():
        path = folder / day / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(some, SCHEMA), path)


def messages(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the samples as the sampler writes them: a message for a topic and round, arrays with an entry for each partition."""
    grouped: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[tuple(row[name] for name in PER_MESSAGE)].append(row)
    for once, some in grouped.items():
        arrays = {name: [row[name] for row in some] for name in names(SAMPLE_ROWS) if name not in PER_MESSAGE}
        yield {"schema": 1, **dict(zip(PER_MESSAGE, once, strict=True)), **arrays}


def create_topic(bootstrap: str, topic: str) -> None:
    """Create a samples topic that keeps everything."""
    client = AdminClient({"bootstrap.servers": bootstrap})  # a request ends with its client
    created = client.create_topics([NewTopic(topic, 2, 1, config={"retention.ms": "-1"})])
    created[topic].result(KAFKA_TIMEOUT_S)


def produce(rows: Iterable[Row], bootstrap: str, topic: str) -> None:
    """Write samples as messages of their time."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for message in messages(rows):
        value, key = json.dumps(message).encode(), message["topic"].encode()
        producer.produce(topic, value, key, timestamp=message["sampled_at_ms"])
    assert producer.flush(KAFKA_TIMEOUT_S) == 0
