"""A load as samples per minute, as the sampler would write them to Parquet: one file for each hour.

Samples are missing in the gaps of the spec. A partition whose leader failed has no leader and no figures in two samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from balance_analytics.model.sample_rows import SAMPLE_ROWS
from lab.generated_load.layout import Array, Layout
from lab.generated_load.parquet import day_folder, lists, named, table_of, write
from lab.generated_load.state import Hour, hours

LEADERLESS_SAMPLES = 2
LAG = 50
"""Lag of consumer groups, in messages."""


def write_samples(layout: Layout, folder: Path) -> None:
    """Write all hours. The sample at an hour's end is the first of the next file; the last file contains it too."""
    for seconds, columns in samples(layout):
        write(day_folder(folder, seconds) / f"samples-{seconds}.parquet", table_of(SAMPLE_ROWS, columns))


def samples(layout: Layout, first_hour: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the columns of the samples of each hour from the hour `first_hour` on, with the hour's start."""
    spec = layout.spec
    before = layout.leaders(0)
    for hour in hours(layout):
        begin = hour.hour * 60
        minutes = [
            minute
            for minute in range(61 if hour.hour == spec.hours - 1 else 60)
            if not any(first <= begin + minute <= last for first, last in layout.gaps)
        ]
        if minutes and hour.hour >= first_hour:
            yield spec.start_s + 3600 * hour.hour, _columns(layout, hour, np.array(minutes), before)
        before = hour.leader


def _columns(layout: Layout, hour: Hour, minutes: Array, before: Array) -> dict[str, Any]:
    """Return an hour's samples in the order of time."""
    spec = layout.spec
    alive = np.flatnonzero(layout.there(hour.hour))
    samples, width = len(minutes), len(alive)
    part = _part_done(spec.seed, hour.hour)[minutes][:, None]
    end = np.floor(hour.end[alive] + hour.messages[alive] * part)
    size = np.floor(hour.size[alive] + hour.kept[alive] * part)
    start = np.maximum(0, end - np.floor(size / layout.t_record_bytes[layout.topic[alive]]))
    down = layout.down(hour.hour)
    replicas = layout.replicas[alive]
    in_sync = ~np.isin(replicas, down)
    fallen = np.isin(before[alive], down) & (hour.leader[alive] != before[alive])
    unknown = fallen[None, :] & (np.arange(samples)[:, None] < LEADERLESS_SAMPLES)
    groups = layout.t_groups[layout.topic[alive]]
    round_ms = np.repeat((spec.start_s + 3600 * hour.hour + 60 * minutes) * 1000, width)
    late = np.random.default_rng([spec.seed, 2, hour.hour]).integers(200, 1500, samples)

    def known(values: Array) -> Any:
        return pa.array(values.reshape(-1).astype(np.int64), mask=unknown.reshape(-1))

    def repeated(values: Array) -> Array:
        return np.tile(values, (samples, *([1] * (values.ndim - 1))))

    sizes = pa.array(np.repeat(size.reshape(-1).astype(np.int64), 3), mask=~repeated(in_sync).reshape(-1))
    return {
        "cluster_id": named([spec.cluster_id], np.zeros(samples * width, np.int32)),
        "topic": named(layout.names, repeated(layout.topic[alive])),
        "partition": repeated(layout.partition[alive]).astype(np.int32),
        "sampled_at_ms": round_ms + np.repeat(late, width),
        "round_ms": round_ms,
        "leader": np.where(unknown, -1, hour.leader[alive][None, :]).reshape(-1).astype(np.int32),
        "leader_epoch": np.full(samples * width, hour.hour, np.int32),
        "replicas": lists(repeated(replicas)),
        "isr": lists(repeated(replicas), repeated(in_sync)),
        "start_offset": known(start),
        "end_offset": known(end),
        "size_bytes": pa.ListArray.from_arrays(np.arange(samples * width + 1, dtype=np.int32) * 3, sizes),
        "committed_offset_sum": known(np.maximum(0, end - LAG) * groups[None, :]),
        "committed_groups": repeated(groups).astype(np.int32),
    }


def _part_done(seed: int, hour: int) -> Array:
    """Return which part of an hour's messages has come by each of its minutes, 0 to 60 (float64, 61)."""
    weights = np.random.default_rng([seed, 3, hour]).uniform(0.5, 1.5, 60)
    return np.concatenate(([0.0], np.cumsum(weights) / weights.sum()))
