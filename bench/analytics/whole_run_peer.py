"""The peer of `bench/analytics/whole_run.py`: hourly facts of a new day from samples, and loads of two weeks, by polars.

A program with arguments: a file that lists the files of stored facts, a folder for new facts, the start of the new day (hours of Unix
time), the number of partitions, and, unless nothing is new, globs of the files of samples of the new day and of the day before. It reads
the same files as the analytics and computes the same facts and the figures of `bench.analytics.two_weeks_peer`. It writes the facts, and prints its
seconds and some sums as JSON. It plans no moves, draws no report, expects each sample once, and does not handle missing or corrupt files.
"""

import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import polars as pl

from bench.analytics.two_weeks_peer import HOURLY, PARTITIONS_AT_ONCE, loads, stored_hours

DAYS_AT_ONCE = 20_000
"""Partitions whose samples of a day are held at once: 29 million rows, some 5 GB while they are sorted."""

NEAR_MS = 150_000
LARGEST_RF = 3


def write_hours(samples: pl.LazyFrame, parts: int, folder: Path) -> None:
    """Write facts, a row for a partition and hour; a file for each part of the topics."""
    for part in range(parts):
        chosen = samples if parts == 1 else samples.filter(pl.col("topic").hash() % parts == part)
        _hours(chosen).collect(engine="streaming").write_parquet(folder / f"hours-{part}.parquet", compression="zstd")


def _hours(samples: pl.LazyFrame) -> pl.LazyFrame:
    place = [pl.col("replicas").list.get(at, null_on_oob=True) == pl.col("leader") for at in range(LARGEST_RF)]
    sizes = [pl.col("size_bytes").list.get(at, null_on_oob=True) for at in range(LARGEST_RF)]
    leader_size = pl.coalesce(*(pl.when(is_it).then(size) for is_it, size in zip(place, sizes, strict=True)))
    counters = ("sampled_at_ms", "start_offset", "end_offset", "leader", "committed_offset_sum", "committed_groups")
    rows = samples.select("topic", "partition", "round_ms", "replicas", *counters, leader_size=leader_size)
    ordered = rows.sort("topic", "partition", "sampled_at_ms")
    same = (pl.col("topic") == pl.col("topic").shift()) & (pl.col("partition") == pl.col("partition").shift())
    since = {name: pl.when(same).then(pl.col(name) - pl.col(name).shift()) for name in (*counters, "leader_size")}
    changed = ordered.with_columns(**{f"d_{name}": change for name, change in since.items()})
    near = pl.col("d_sampled_at_ms").is_between(1, NEAR_MS)
    reset = ((pl.col("d_end_offset") < 0) | (pl.col("d_start_offset") < 0)).fill_null(value=False)
    valid = near & ~reset
    marked = changed.with_columns(
        at=(pl.col("round_ms") - 30_000) // 3_600_000,
        reset=reset,
        elapsed=pl.when(valid & pl.col("d_end_offset").is_not_null()).then("d_sampled_at_ms"),
        messages=pl.when(valid).then("d_end_offset"),
        committed=pl.when(valid & (pl.col("d_committed_groups") == 0)).then("d_committed_offset_sum"),
        growth=pl.when(valid & (pl.col("d_leader") == 0)).then("d_leader_size"),
        held=pl.col("end_offset") - pl.col("start_offset"),
    )
    sized = pl.col("leader_size").is_not_null() & (pl.col("held") > 0)
    record_bytes = pl.col("leader_size").filter(sized).sum() / pl.col("held").filter(sized).sum()
    of_hour = marked.group_by("topic", "partition", "at").agg(
        pl.col("leader").filter(pl.col("leader") >= 0).mode().first(),
        pl.col("replicas").last(),
        (pl.col("elapsed").sum() / 60_000).round().cast(pl.Int32).alias("minutes"),
        pl.col("reset").sum().alias("resets"),
        (pl.col("d_leader") != 0).sum().alias("leader_changes"),
        pl.col("messages").sum().cast(pl.Float64).alias("messages_in"),
        (pl.col("messages").sum() * record_bytes).alias("bytes_in"),
        (pl.col("committed").sum() * record_bytes).alias("bytes_out"),
        record_bytes.alias("record_bytes"),
        pl.col("leader_size").drop_nulls().last().alias("size_bytes"),
        pl.col("growth").sum().alias("size_growth_bytes"),
    )
    return of_hour.sort("topic", "partition", "at")


def main(stored: Sequence[str], folder: Path, midnight: int, partitions: int, *samples: str) -> dict[str, float]:
    """Compute and write; return seconds, sums and the most memory."""
    began_s = time.perf_counter()
    hours = stored_hours(stored)
    found: dict[str, float] = {}
    if samples:
        day, before = (pl.scan_parquet(files, hive_partitioning=False) for files in samples)
        last_hour = before.filter(pl.col("round_ms") >= (midnight - 1) * 3_600_000)
        write_hours(pl.concat([last_hour, day]), math.ceil(partitions / DAYS_AT_ONCE), folder)
        new = pl.scan_parquet(str(folder / "*.parquet")).filter(pl.col("at") >= midnight)
        found["messages"] = float(new.select(pl.col("messages_in").sum()).collect(engine="streaming").item())
        hours = pl.concat([hours, new.select("topic", "partition", *HOURLY, "at")], how="vertical_relaxed")
    found |= asdict(loads(hours, math.ceil(partitions / PARTITIONS_AT_ONCE)))
    return {"seconds": time.perf_counter() - began_s, **found}


if __name__ == "__main__":
    listed, folder, midnight, partitions, *samples = sys.argv[1:]
    stored = Path(listed).read_text(encoding="utf-8").splitlines()
    sys.stdout.write(json.dumps(main(stored, Path(folder), int(midnight), int(partitions), *samples)) + "\n")
