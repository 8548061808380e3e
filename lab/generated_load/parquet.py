"""Parquet files in the schemas of the analytics, from columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from balance_analytics.jobs.arrow_types import ARROW_TYPES
from balance_analytics.model.column import Column


def day_folder(root: Path, seconds: int) -> Path:
    """Return the folder of the day of a time; it is created if missing."""
    folder = root / f"date={dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%d}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def lists(values: np.ndarray, kept: np.ndarray | None = None) -> Any:
    """Return rows of a matrix as lists; `kept` (bool, same shape) leaves entries out of them."""
    counts = np.full(len(values), values.shape[1]) if kept is None else kept.sum(axis=1)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    flat = values.reshape(-1) if kept is None else values[kept]
    return pa.ListArray.from_arrays(offsets, pa.array(flat))


def named(names: Sequence[str], numbers: np.ndarray) -> Any:
    """Return names by number as a dictionary array, in which each name is stored once."""
    return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), pa.array(list(names))).cast(pa.string())


def table_of(table: Sequence[Column], columns: Mapping[str, Any]) -> Any:
    """Return columns as a table of pyarrow."""
    arrays = [
        pa.array(columns[column.name]) if isinstance(columns[column.name], np.ndarray) else columns[column.name]
        for column in table
    ]
    cast = [array.cast(ARROW_TYPES[column.kind]) for array, column in zip(arrays, table, strict=True)]
    return pa.table(cast, names=[column.name for column in table])


def write(path: Path, rows: Any) -> None:
    """Write one file, and its folder if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, compression="zstd", compression_level=1)
