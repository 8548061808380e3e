"""Columns of files of facts, read one at a time: as rows of DAY_FACTS, whichever layout a file has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from balance_analytics.jobs.day_batches import day_batches
from balance_analytics.model.column import names
from balance_analytics.model.facts import HOURLY, KEY, is_of_days


class UnreadableFileError(Exception):
    """A file is not Parquet, or has not the columns of facts; the text begins with its path."""


class Columns(Protocol):
    """Columns of some rows of DAY_FACTS."""

    def get(self, name: str) -> Any:
        """Return a column as an Arrow array."""

    def may_hold(self, name: str, value: Any) -> bool:
        """Return whether an hour may have this value or, of numbers, a larger one; False saves reading the column."""


@dataclass(frozen=True, slots=True)
class BatchColumns:
    """Columns of an Arrow batch."""

    batch: Any

    def get(self, name: str) -> Any:
        """Return a column."""
        return self.batch[name]

    def may_hold(self, name: str, value: Any) -> bool:  # noqa: ARG002 - as Columns has it
        """Return True: only reading shows it."""
        return True


@dataclass(frozen=True, slots=True)
class GroupColumns:
    """Columns of a row group of a Parquet file; each is read when it is needed."""

    file: Any
    group: int

    def get(self, name: str) -> Any:
        """Return a column."""
        column = self.file.read_row_group(self.group, columns=[name], use_threads=False)[name]
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

    def may_hold(self, name: str, value: Any) -> bool:
        """Return whether it may be there, by the statistics of the column."""
        of_group = self.file.metadata.row_group(self.group)
        for at in range(of_group.num_columns):
            column = of_group.column(at)
            if column.path_in_schema.split(".")[0] == name:
                known = column.statistics
                if known is None or not known.has_min_max:
                    return True
                return bool(known.max >= value and (known.min <= value or not isinstance(value, str)))
        raise KeyError(f"there is no column {name}")


def opened(path: str, data: bytes, needed: Sequence[str] | None = None) -> Iterator[Columns]:
    """Yield the columns of each part of a file. Of hourly rows only those that are `needed` are there, None: all."""
    with reading(path):
        file = pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us")
    if is_of_days(path):
        for group in range(file.num_row_groups):
            yield GroupColumns(file, group)
        return
    with reading(path):
        # All hours of a partition are in one file, in order.
        hourly = [column for column in HOURLY if needed is None or column.name in needed]
        read = file.read(columns=[*KEY, *names(hourly)], use_threads=False)
        rows = read.append_column("day", pc.floor_temporal(read["hour"], unit="day")).combine_chunks()
        batches = list(day_batches(rows.to_batches(), hourly))
    yield from map(BatchColumns, batches)


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn what pyarrow raises about a file into an `UnreadableFileError`."""
    try:
        yield
    except (pa.ArrowException, OSError, LookupError, ValueError) as error:
        raise UnreadableFileError(f"{path}: {error}") from error
