"""The peer of `two_weeks`: the same figures by polars. A program with two arguments: a folder of facts and its number of partitions.

The files have a row for a partition and day, with arrays of its hours. It prints its seconds as JSON. A 95th percentile needs all rates of
a partition at once: more partitions than fit into memory are read in several passes over the files. It does not handle corrupt files or
report missing data; it only computes the figures.
"""

import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

PARTITIONS_AT_ONCE = 250_000
"""Two weeks of their hours are 84 million rows; all of a million at once are more than most machines have memory for."""


HOURLY = ("leader", "replicas", "size_bytes", "minutes", "bytes_in")


@dataclass(frozen=True, slots=True)
class Loads:
    """Numbers of rows, and two sums over all partitions, in bytes/s, to compare with those of another program."""

    partitions: int
    broker_hours: int
    mean: float
    p95: float


def stored_hours(files: Sequence[str]) -> pl.LazyFrame:
    """Return a row for a partition and hour: `topic`, `partition`, HOURLY and `at` (hours of Unix time)."""
    # Programs differ in the unit and zone of `day`, which polars does not convert while it reads several files at once.
    days = [pl.scan_parquet(file, hive_partitioning=False).with_columns(pl.col("day").dt.epoch("s")) for file in files]
    rows = (
        pl.concat(days)
        .select("topic", "partition", "day", *HOURLY, of_day=pl.int_ranges(0, pl.col("minutes").list.len()))
        .explode("of_day", *HOURLY)
        .filter(pl.col("minutes").is_not_null())
    )
    return rows.select("topic", "partition", *HOURLY, at=pl.col("day") // 3600 + pl.col("of_day"))


def loads(rows: pl.LazyFrame, parts: int) -> Loads:
    """Compute partitions' loads, and brokers by hour, from rows of `stored_hours`."""
    rate = pl.col("bytes_in") / (pl.col("minutes") * 60)
    rates = rows.select("topic", "partition", "leader", "replicas", "size_bytes", "at", rate=rate)
    led = rates.group_by("leader", "at").agg(pl.col("rate").sum(), pl.len().alias("leaders"))
    held = (
        rates.select("at", "size_bytes", "replicas")
        .explode("replicas")
        .group_by("replicas", "at")
        .agg(pl.col("size_bytes").sum())
    )
    if parts == 1:
        found = pl.collect_all([_by_partition(rates), led, held], engine="streaming")
        return _sums([found[0]], len(found[1]))
    chosen = (rates.filter(pl.col("topic").hash() % parts == part) for part in range(parts))
    partitions = [_by_partition(some).collect(engine="streaming") for some in chosen]
    return _sums(partitions, len(pl.collect_all([led, held], engine="streaming")[0]))


def _sums(parts: list[pl.DataFrame], broker_hours: int) -> Loads:
    mean, p95 = (sum(float(part[name].sum()) for part in parts) for name in ("mean", "p95"))
    return Loads(sum(map(len, parts)), broker_hours, mean, p95)


def _by_partition(rates: pl.LazyFrame) -> pl.LazyFrame:
    rate, at = pl.col("rate"), pl.col("at")
    return rates.group_by("topic", "partition").agg(
        rate.mean().alias("mean"),
        rate.quantile(0.95, "higher").alias("p95"),
        rate.max().alias("peak"),
        at.sort_by(rate, descending=True).first().alias("peak_hour"),
        (pl.cov(rate, at) / at.var() * 24).alias("trend"),
        pl.col("size_bytes").sort_by(at).last().alias("size_bytes"),
        pl.col("replicas").last(),
    )


if __name__ == "__main__":
    began_s = time.perf_counter()
    files = sorted(Path(sys.argv[1]).rglob("*.parquet"))
    found = loads(stored_hours([str(file) for file in files]), math.ceil(int(sys.argv[2]) / PARTITIONS_AT_ONCE))
    took_s = time.perf_counter() - began_s
    rows = {"partitions": found.partitions, "broker_hours": found.broker_hours}
    sys.stdout.write(json.dumps({"seconds": took_s, **rows}) + "\n")
