"""Days of stored samples: what readers see of a folder that the sampler writes."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from balance_analytics.sampling.parquet_days import DAY_MS
from balance_analytics.sampling.parquet_writer import ParquetWriter
from tests.balance_analytics.sampling.makers import row, samples

DAY_START_MS = 1_769_904_000_000
"""2026-02-01 00:00 UTC."""
MINUTE_MS = 60_000
ROUNDS = [DAY_START_MS + at * MINUTE_MS for at in (0, 1, 2, 700)]
NEXT_DAY_MS = DAY_START_MS + DAY_MS

Row = tuple[Any, ...]


def store(folder: Path, *rounds_ms: int, cluster_id: str = "c", end_offset: int = 1_000) -> None:
    """Store samples of three partitions, as the sampler does."""
    writer = ParquetWriter(folder)
    for round_ms in rounds_ms:
        content = {"a": [row(0, end_offset=end_offset), row(1, end_offset=None)], "b": [row(0, replicas=[])]}
        sample = samples(content, round_ms=round_ms, cluster_id=cluster_id)
        asyncio.run(writer.write(sample, deadline=0.0))


def names(day: Path) -> list[str]:
    """Everything in a folder."""
    return sorted(path.name for path in day.iterdir())


def visible(day: Path) -> list[Path]:
    """The files that readers read."""
    return sorted(path for path in day.glob("*.parquet") if path.name[0] not in "._")


def rows_in(path: Path) -> list[Row]:
    """The rows of a file, in its order."""
    return [
        tuple(json.dumps(value) for value in row.values()) for row in pq.read_table(path, partitioning=None).to_pylist()
    ]


def rows(day: Path) -> set[Row]:
    """The distinct rows that readers count."""
    return {row for path in visible(day) for row in rows_in(path)}
