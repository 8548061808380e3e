"""A load as facts, written directly: for sizes at which samples per minute would be terabytes.

`write_facts` writes hourly rows, as versions before rows of a day did; `write_day_facts` the layout and manifest of this version.

No sample is missing. The pipeline computes the same facts from samples (`minute_samples`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from balance_analytics.jobs.day_batches import day_batches
from balance_analytics.model.facts import DAY_FOLDER, FACTS
from balance_analytics.model.manifest import EMPTY, FOLDER, DataFile, encode, name_of
from lab.generated_load.layout import Layout
from lab.generated_load.parquet import day_folder, lists, named, table_of, write
from lab.generated_load.state import Hour, hours

PARTITIONS_PER_FILE = 50_000
"""As the pipeline lays its own facts."""

RUN = "generated"
"""In the manifest."""


def write_facts(layout: Layout, folder: Path) -> None:
    """Write all days as rows of FACTS, without a manifest."""
    for start_s, number, rows in _written(layout):
        write(day_folder(folder, start_s) / _name(number), rows)


def write_day_facts(layout: Layout, folder: Path, days: int | None = None) -> None:
    """Write all days, or the first `days`, as rows of DAY_FACTS, and publish them by a manifest."""
    parts: dict[str, list[DataFile]] = {}
    for start_s, number, rows in _written(layout, days):
        path = day_folder(folder / f"v={RUN}" / DAY_FOLDER, start_s) / _name(number)
        write(path, of_days(rows, start_s))
        file = DataFile(str(path.relative_to(folder)), path.stat().st_size)
        parts.setdefault(path.parent.name.removeprefix("date="), []).append(file)
    manifest = EMPTY.followed_by(RUN, 0, {day: tuple(files) for day, files in parts.items()}, keeps=False)
    (folder / FOLDER).mkdir()
    (folder / FOLDER / name_of(manifest)).write_text(encode(manifest), encoding="utf-8")


def of_days(rows: Any, start_s: int) -> Any:
    """Return rows of FACTS of one day, which starts at Unix time `start_s`, as rows of DAY_FACTS."""
    day = pa.array([start_s * 1_000_000], pa.timestamp("us", tz="UTC")).take(pa.array([0] * len(rows), pa.int64()))
    (batch,) = rows.append_column("day", day).combine_chunks().to_batches()
    return pa.Table.from_batches(list(day_batches([batch]))).combine_chunks()


def _name(number: int) -> str:
    return f"part-{number:05d}.parquet"


def _written(layout: Layout, days: int | None = None) -> Iterator[tuple[int, int, Any]]:
    """Yield the start of a day, the number of a file, and its rows of FACTS."""
    leader = layout.leaders(0)
    coming = hours(layout, None if days is None else days * 24)
    while day := tuple(islice(coming, 24)):
        before = [leader, *(hour.leader for hour in day)]
        moved = [leader != other for leader, other in pairwise(before)]
        leader = day[-1].leader
        for number, rows in enumerate(_blocks(layout.spec.partitions)):
            yield layout.spec.start_s + day[0].hour * 3600, number, _block(layout, day, moved, rows)


def _blocks(partitions: int) -> Iterator[slice]:
    for begin in range(0, partitions, PARTITIONS_PER_FILE):
        yield slice(begin, min(partitions, begin + PARTITIONS_PER_FILE))


def _block(layout: Layout, day: tuple[Hour, ...], moved: list[np.ndarray], rows: slice) -> Any:
    """Return a day of some partitions, a partition's hours side by side."""
    spec = layout.spec
    topic = layout.topic[rows]
    there = np.stack([layout.there(hour.hour)[rows] for hour in day], axis=1).reshape(-1)

    def column(values: list[np.ndarray]) -> np.ndarray:
        return np.asarray(np.stack([value[rows] for value in values], axis=1).reshape(-1)[there])

    count = len(day)
    record_bytes = np.repeat(layout.t_record_bytes[topic], count)[there].astype(np.float64)
    groups = np.repeat(layout.t_groups[topic], count)[there]
    messages = np.floor(column([hour.messages for hour in day]))
    seconds = np.tile(spec.start_s + 3600 * np.array([hour.hour for hour in day]), len(topic))[there]
    total = int(there.sum())
    reset = column([hour.reset for hour in day])
    columns = {
        "cluster_id": named([spec.cluster_id], np.zeros(total, np.int32)),
        "topic": named(layout.names, np.repeat(topic, count)[there]),
        "partition": np.repeat(layout.partition[rows], count)[there].astype(np.int32),
        "hour": pa.array(seconds * 1_000_000).cast(pa.timestamp("us", tz="UTC")),
        "leader": column([hour.leader for hour in day]).astype(np.int32),
        "replicas": lists(np.repeat(layout.replicas[rows], count, axis=0)[there]),
        "minutes": np.full(total, 60, np.int32),
        "gap_minutes": np.zeros(total, np.int32),
        "resets": reset.astype(np.int32),
        "leader_changes": column(moved).astype(np.int32),
        "messages_in": messages,
        "bytes_in": messages * record_bytes,
        "bytes_out": messages * record_bytes * groups,
        "bytes_out_source": named(["estimate"], np.zeros(total, np.int32)),
        "record_bytes": record_bytes,
        "size_bytes": column([hour.size + hour.kept for hour in day]).astype(np.int64),
        "size_growth_bytes": column([hour.kept for hour in day]),
        "source_in": named(["offsets"], np.zeros(total, np.int32)),
    }
    return table_of(FACTS, columns)
