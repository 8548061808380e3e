"""Tables as readers see them, the files that the newest manifest names, and what was read for them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from balance_analytics.model.manifest import FOLDER, Manifest, ManifestError, decode, newest_first

FACT_ORDER = ("topic", "partition", "hour")


def newest(root: Path) -> Manifest:
    """The newest manifest of a table that can be read."""
    for name in newest_first(path.name for path in (root / FOLDER).iterdir()):
        with suppress(ManifestError):
            return decode(name, (root / FOLDER / name).read_text())
    raise AssertionError(f"no manifest below {root}")


def rows(root: Path, part: str | None = None, order: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The rows of a table's days, or of one of its parts, sorted by columns."""
    manifest = newest(root)
    parts = manifest.days() if part is None else [part]
    files = [file for name in parts for file in manifest.parts[name]]
    found = [row for file in files for row in pq.ParquetFile(root / file.path).read().to_pylist()]
    return sorted(found, key=lambda row: [row[name] for name in order])


def records_read(spark: SparkSession) -> int:
    """Return how many records tasks have read so far, by Spark's own counters."""
    context, jvm = spark.sparkContext, spark._jvm
    assert jvm is not None
    scala = context._jsc.sc()  # type: ignore[union-attr]
    scala.listenerBus().waitUntilEmpty()
    nothing = jvm.java.util.ArrayList()
    quantiles = context._gateway.new_array(context._gateway.jvm.double, 0)  # type: ignore[union-attr]
    listed = scala.statusStore().stageList(nothing, False, False, quantiles, nothing)
    return sum(int(listed.apply(at).inputRecords()) for at in range(listed.size()))
