"""The peer of `bench/analytics.py`: the same figures by polars. A program with two arguments: a folder of facts and its number of partitions.

The files have a row for a partition and day, with arrays of its hours. It prints its seconds as JSON. A 95th percentile needs all rates of
a partition at once: more partitions than fit into memory are read in several passes over the files. It does not handle corrupt files or
report missing data; it only computes the figures.
"""

import json
import math
import resource
import sys
import time
from pathlib import Path

import polars as pl

PARTITIONS_AT_ONCE = 250_000
"""Two weeks of their hours are 84 million rows; all of a million at once are more than most machines have memory for."""


def loads(facts: Path, parts: int) -> tuple[int, int]:
    """Compute partitions' loads, and brokers by hour; returns the number of rows of both."""
    hourly = ("leader", "replicas", "size_bytes", "minutes", "bytes_in")
    day = pl.scan_parquet(str(facts / "**" / "*.parquet"), hive_partitioning=False)
    rows = (
        day.select("topic", "partition", "day", *hourly, of_day=pl.int_ranges(0, pl.col("minutes").list.len()))
        .explode("of_day", *hourly)
        .filter(pl.col("minutes").is_not_null())
    )
    rates = rows.select(
        "topic",
        "partition",
        "leader",
        "replicas",
        "size_bytes",
        at=pl.col("day").dt.epoch("s") // 3600 + pl.col("of_day"),
        rate=pl.col("bytes_in") / (pl.col("minutes") * 60),
    )
    led = rates.group_by("leader", "at").agg(pl.col("rate").sum(), pl.len().alias("leaders"))
    held = (
        rates.select("at", "size_bytes", "replicas")
        .explode("replicas")
        .group_by("replicas", "at")
        .agg(pl.col("size_bytes").sum())
    )
    if parts == 1:
        found = pl.collect_all([_by_partition(rates), led, held], engine="streaming")
        return len(found[0]), len(found[1])
    chosen = (rates.filter(pl.col("topic").hash() % parts == part) for part in range(parts))
    partitions = sum(len(_by_partition(some).collect(engine="streaming")) for some in chosen)
    return partitions, len(pl.collect_all([led, held], engine="streaming")[0])


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
    rows = loads(Path(sys.argv[1]), math.ceil(int(sys.argv[2]) / PARTITIONS_AT_ONCE))
    took_s = time.perf_counter() - began_s
    highest_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    report = {"seconds": took_s, "partitions": rows[0], "broker_hours": rows[1], "highest_mb": highest_mb}
    sys.stdout.write(json.dumps(report) + "\n")
