"""Published tables: the rows in files of the newest manifest, and the number of records that Spark has read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from balance_analytics.model.facts import HOURLY, HOURS, is_of_days
from balance_analytics.model.manifest import FOLDER, Manifest, ManifestError, decode, newest_first

FACT_ORDER = ("topic", "partition", "hour")


def newest(root: Path) -> Manifest:
    """Return the newest manifest of a table that can be read."""
    for name in newest_first(path.name for path in (root / FOLDER).iterdir()):
        with suppress(ManifestError):
            return decode(name, (root / FOLDER / name).read_text())
    raise AssertionError(f"no manifest below {root}")


def rows(root: Path, part: str | None = None, order: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the rows of a table's days, or of one part, sorted by columns; facts by hour, in both layouts of files."""
    manifest = newest(root)
    parts = manifest.days() if part is None else [part]
    found = []
    for file in [file for name in parts for file in manifest.parts[name]]:
        stored = pq.ParquetFile(root / file.path).read().to_pylist()
        found += unpacked(stored) if is_of_days(file.path) else stored
    return sorted(found, key=lambda row: [row[name] for name in order])


def unpacked(days: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of FACTS in rows of DAY_FACTS: a simple implementation of `day_rows.by_hour`."""
    for day in days:
        for at in range(HOURS):
            if day["minutes"][at] is not None:
                named = {name: day[name] for name in ("cluster_id", "topic", "partition")}
                of_hour = {column.name: day[column.name][at] for column in HOURLY}
                yield {**named, "hour": day["day"] + timedelta(hours=at), **of_hour}


def records_read(spark: SparkSession) -> int:
    """Return how many records tasks have read so far, by Spark's own counters."""
    context, jvm = spark.sparkContext, spark._jvm
    assert jvm is not None
    scala = context._jsc.sc()
    scala.listenerBus().waitUntilEmpty()
    nothing = jvm.java.util.ArrayList()
    quantiles = context._gateway.new_array(context._gateway.jvm.double, 0)
    listed = scala.statusStore().stageList(nothing, False, False, quantiles, nothing)
    return sum(int(listed.apply(at).inputRecords()) for at in range(listed.size()))
