"""Parquet in and out: a table with a known schema, days in folders, files that cannot be read left out by name.

A corrupt file is found when a read fails, not before: then all files are read one against the other, twice - their footers alone, and
all of their columns - and those that do not say the same both times are left out. Leaves out what the tables mean.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from balance_analytics.jobs.troubles import AnalyticsError, CorruptFile, LeftOuts, told_of
from balance_analytics.model.column import Column, ddl, names
from balance_analytics.model.sample_rows import DATE

Found = TypeVar("Found")

MAX_CORRUPT_NAMED = 20
"""Names in the result; the count says how many there are."""


@dataclass
class Table:
    """Files under `path` that hold `columns`, by day or not; `without` are files found corrupt."""

    spark: SparkSession
    path: str
    columns: Sequence[Column]
    what: str
    by_day: bool = False
    without: set[str] = field(default_factory=set)

    def read(self, since: dt.date | None = None) -> DataFrame:
        """Return the rows, from the day `since` on. Raises `AnalyticsError` when there is nothing or no way to it."""
        with told_of(self.path, self.what):
            frame = self._frame()
            if since is not None and self.by_day:
                frame = frame.where(sf.col(DATE) >= sf.lit(since))
        return frame

    def exists(self) -> bool:
        """Say whether anything is there. Raises `AnalyticsError` when the store cannot be reached."""
        with told_of(self.path, self.what):
            return exists(self.spark, self.path)

    def _frame(self) -> DataFrame:
        schema = ddl(self.columns) + (f", `{DATE}` date" if self.by_day else "")
        reader = self.spark.read.schema(schema)
        if not self.without:
            return reader.parquet(self.path)
        good = [name for name in reader.parquet(self.path).inputFiles() if name not in self.without]
        if not good:
            raise AnalyticsError(f"none of the files with {self.what} at {self.path} can be read: write them anew")
        return reader.option("basePath", self.path).parquet(*good)

    def find_corrupt(self, left_out: LeftOuts) -> bool:
        """Look for files that cannot be read, leave them out from now on, and say whether there were any."""
        reader = self.spark.read.schema(ddl(self.columns)).option("ignoreCorruptFiles", True)
        frame = reader.parquet(self.path).withColumn("file", sf.col("_metadata.file_path"))
        seen = frame.groupBy("file").agg(sf.count("*").alias("rows"))
        whole = frame.groupBy("file").agg(sf.count("*").alias("whole"), sf.max(sf.xxhash64(*names(self.columns))))
        rows = seen.join(whole, "file", "left").where("rows = whole").select("file").collect()
        good = {_spelled(row.file) for row in rows}
        there = self.spark.read.schema(ddl(self.columns)).parquet(self.path).inputFiles()
        new = {name for name in there if _spelled(name) not in good} - self.without
        self.without |= new
        for name in sorted(new)[:MAX_CORRUPT_NAMED]:
            left_out.add(f"{name}: the file is corrupt or empty", 1, "delete it; what it held is a gap")
        left_out.add("more corrupt files", max(0, len(new) - MAX_CORRUPT_NAMED), "delete them; what they held are gaps")
        return bool(new)


def _spelled(name: str) -> str:
    """Return a file's name in one spelling: Spark writes the same one with one slash or three, and with or without escapes.

    >>> _spelled("file:/facts/a%20b") == _spelled("file:///facts/a b")
    True
    """
    parts = urlsplit(name)
    return f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}"


def without_corrupt(table: Table, left_out: LeftOuts, work: Callable[[], Found]) -> Found:
    """Do `work`, which reads `table`; when a file cannot be read, find all such files and do it once more without them."""
    try:
        with told_of(table.path, table.what):
            return work()
    except CorruptFile:
        with told_of(table.path, table.what):
            if not table.find_corrupt(left_out):
                raise
    with told_of(table.path, table.what):
        return work()


def write(frame: DataFrame, path: str, what: str) -> None:
    """Write a table whole: what was there is replaced."""
    with told_of(path, what):
        # `overwriteMode` is dynamic for the session; a table without days has no partition to keep.
        frame.write.mode("overwrite").parquet(path)


def write_days(frame: DataFrame, path: str, what: str) -> None:
    """Write the days that the rows are of (column `date`); other days stay as they are."""
    with told_of(path, what):
        frame.write.mode("overwrite").partitionBy(DATE).parquet(path)


def exists(spark: SparkSession, path: str) -> bool:
    """Say whether a file or folder is there."""
    place, system = _place(spark, path)
    return bool(system.exists(place))


def write_text(spark: SparkSession, path: str, text: str) -> None:
    """Write a file whole or not at all."""
    write_bytes(spark, path, text.encode())


def write_bytes(spark: SparkSession, path: str, data: bytes) -> None:
    """Write a file whole or not at all: first beside it, then in its place."""
    place, system = _place(spark, path)
    beside, _ = _place(spark, f"{path}.new")
    stream = system.create(beside, True)
    stream.write(bytearray(data))
    stream.close()
    system.delete(place, False)
    system.rename(beside, place)


def read_text(spark: SparkSession, path: str) -> str:
    """Return a file that a stage has written; by no job of Spark, which costs a second for a few bytes."""
    place, system = _place(spark, path)
    jvm = spark._jvm  # noqa: SLF001 - see `_place`
    assert jvm is not None
    stream = system.open(place)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def remove(spark: SparkSession, path: str) -> None:
    """Have no file there."""
    place, system = _place(spark, path)
    system.delete(place, False)


def _place(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return a path and its file system, Hadoop's: Python has no other way to them."""
    jvm, context = spark._jvm, spark._jsc  # noqa: SLF001 - see above
    assert jvm is not None
    place = jvm.org.apache.hadoop.fs.Path(path)
    return place, place.getFileSystem(context.hadoopConfiguration())
