"""Parquet in and out: a table with a known schema, days in folders, files that cannot be read left out by name.

Corrupt files are found after a read has failed: then all files are read twice, their footers only and all of their columns. A file
with different numbers of rows is read by itself, and left out if that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import RDD
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as sf

from balance_analytics.jobs.arrow_types import ARROW_TYPES
from balance_analytics.jobs.problems import (
    AnalyticsError,
    CorruptFile,
    LeftOuts,
    MissingFile,
    corrupt_message,
    errors_about,
)
from balance_analytics.jobs.storage import LISTING_THREADS, exists
from balance_analytics.model.column import Column, ddl
from balance_analytics.model.column import names as names_of
from balance_analytics.model.sample_rows import DATE

Found = TypeVar("Found")

VERSION_FOLDER = "/v="
"""In the path of a file that belongs to a run (`model/manifest.py`)."""

MAX_CORRUPT_NAMED = 20
"""Limit of names in the result, which has their number too."""


@dataclass
class Table:
    """Files under `path` that hold `columns`, by day or not; `without` are files found corrupt."""

    spark: SparkSession
    path: str
    columns: Sequence[Column]
    what: str
    by_day: bool = False
    files: Sequence[str] | None = None
    """Below `path`: those that a manifest names. None: all that are there."""
    without: set[str] = field(default_factory=set)

    def read(self) -> DataFrame:
        """Return the rows. Raises `AnalyticsError` if there are none, or they cannot be reached."""
        with errors_about(self.path, self.what):
            return self._frame()

    def exists(self) -> bool:
        """Return whether there are files. Raises `AnalyticsError` when the store cannot be reached."""
        with errors_about(self.path, self.what):
            return bool(self.files) if self.files is not None else exists(self.spark, self.path)

    def names(self) -> list[str]:
        """Return the paths of the files that a manifest names, without those found corrupt."""
        bad = [_spelled(name) for name in self.without]
        return [
            f"{self.path}/{file}" for file in self.files or () if not any(name.endswith(f"/{file}") for name in bad)
        ]

    def _frame(self) -> DataFrame:
        reader = self.spark.read.schema(self._schema())
        if not self.without:
            return self._all(reader)
        good = [name for name in self._all(reader).inputFiles() if name not in self.without]
        if not good:
            raise AnalyticsError(f"none of the files with {self.what} at {self.path} can be read: write them again")
        return self._of(reader, good)

    def _schema(self) -> str:
        return ddl(self.columns) + (f", `{DATE}` date" if self.by_day else "")

    def _all(self, reader: DataFrameReader, *more: SparkColumn) -> DataFrame:
        """Return the rows of all files, with columns `more` of Spark's, such as the file's name."""
        if self.files is None:
            return reader.parquet(self.path).select("*", *more)
        return self._of(reader, [f"{self.path}/{file}" for file in self.files], *more)

    def _of(self, reader: DataFrameReader, names: Sequence[str], *more: SparkColumn) -> DataFrame:
        """Return the rows of some files: with a run's folder above the day's, or without, which are two layouts to Spark."""
        runs = [name for name in names if VERSION_FOLDER in name]
        others = [name for name in names if VERSION_FOLDER not in name]
        frames = [reader.option("basePath", self.path).parquet(*some) for some in (runs, others) if some]
        if not frames:
            return self.spark.createDataFrame([], self._schema())
        columns = [*names_of(self.columns), *([DATE] if self.by_day else [])]
        return reduce(DataFrame.unionAll, (frame.select(*columns, *more) for frame in frames))

    def find_corrupt(self, left_out: LeftOuts) -> bool:
        """Find files that cannot be read, leave them out from now on, and return whether there were any."""
        reader = self.spark.read.schema(self._schema()).option("ignoreCorruptFiles", True)
        frame = self._all(reader, sf.col("_metadata.file_path").alias("file"))
        seen = frame.groupBy("file").agg(sf.count("*").alias("rows"))
        whole = frame.groupBy("file").agg(sf.count("*").alias("whole"), sf.max(sf.xxhash64(*names_of(self.columns))))
        rows = seen.join(whole, "file", "left").where("rows = whole").select("file").collect()
        good = {_spelled(row.file) for row in rows}
        there = self._all(self.spark.read.schema(self._schema())).inputFiles()
        new = {name for name in there if _spelled(name) not in good and self._is_corrupt(name)} - self.without
        self.without |= new
        note_corrupt(sorted(new), left_out)
        return bool(new)

    def _is_corrupt(self, name: str) -> bool:
        """Return whether a file cannot be read, alone and now. Raises `AnalyticsError` when the store refuses it.

        Spark leaves out a file for any error while it reads many; the samples of one that the store refused would be lost.
        """
        try:
            with errors_about(self.path, self.what):
                rows = self._of(self.spark.read.schema(self._schema()), [name])
                rows.agg(sf.max(sf.xxhash64(*names_of(self.columns)))).collect()
        except MissingFile:
            raise
        except CorruptFile:
            return True
        return False


def note_corrupt(names: Sequence[str], left_out: LeftOuts) -> None:
    """Note files that cannot be read."""
    for name in names[:MAX_CORRUPT_NAMED]:
        left_out.add(f"{name}: the file is corrupt or empty", 1, "delete it; its content is a gap")
    left_out.add("more corrupt files", max(0, len(names) - MAX_CORRUPT_NAMED), "delete them; their content is a gap")


def _spelled(name: str) -> str:
    """Return a file's name in one spelling: Spark writes the same one with one slash or three, and with or without escapes.

    >>> _spelled("file:/facts/a%20b") == _spelled("file:///facts/a b")
    True
    """
    parts = urlsplit(name)
    return f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}"


def without_corrupt(table: Table, left_out: LeftOuts, work: Callable[[], Found]) -> Found:
    """Do `work`, which reads `table`; when a file cannot be read, find all such files and do it once more without them.

    The sampler deletes files of samples when it has compacted them: the second time, the compacted file is listed instead.
    """
    try:
        with errors_about(table.path, table.what):
            return work()
    except MissingFile:
        pass
    except CorruptFile:
        with errors_about(table.path, table.what):
            if not table.find_corrupt(left_out):
                raise
    with errors_about(table.path, table.what):
        return work()


def whole_files(spark: SparkSession, paths: Sequence[str], tasks: int | None = None) -> RDD[tuple[str, bytes]]:
    """Return files with their paths, read in tasks, from any storage; in about `tasks` tasks. Raises `AnalyticsError`."""
    if commas := [path for path in paths if "," in path]:
        raise AnalyticsError(f"paths with a comma cannot be read: move {commas[0]} to a folder without one")
    hadoop = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - Python has no other way to it
    hadoop.setIfUnset("mapreduce.input.fileinputformat.list-status.num-threads", str(LISTING_THREADS))
    return spark.sparkContext.binaryFiles(",".join(paths), tasks)


def contents(tables: Sequence[Table]) -> list[list[bytes]]:
    """Return all files of each table at the driver, in order; one job, from any storage. The files are those that manifests name."""
    paths = [path for table in tables for path in table.names()]
    if not paths:
        return [[] for _ in tables]
    read = whole_files(tables[0].spark, paths).collect()
    found = sorted((_spelled(path), data) for path, data in read)
    return [
        [data for path, data in found if any(path.endswith(f"/{file}") for file in table.files or ())]
        for table in tables
    ]


def row_count(table: Table, content: Sequence[bytes]) -> int:
    """Return the number of rows of a table's files, from their footers. Raises `CorruptFile`."""
    with _unreadable(table):
        return sum(pq.read_metadata(pa.BufferReader(data)).num_rows for data in content)


def arrow_table(table: Table, content: Sequence[bytes], columns: Sequence[str] | None = None) -> Any:
    """Return the rows of a table's files, with some columns or all. Raises `CorruptFile`."""
    wanted = list(columns or names_of(table.columns))
    empty = pa.schema([(column.name, ARROW_TYPES[column.kind]) for column in table.columns if column.name in wanted])
    with _unreadable(table):
        found = [
            pq.read_table(pa.BufferReader(data), columns=wanted, coerce_int96_timestamp_unit="us") for data in content
        ]
    return pa.concat_tables(found) if found else empty.empty_table()


@contextmanager
def _unreadable(table: Table) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise CorruptFile(corrupt_message(table.what, str(error))) from error
