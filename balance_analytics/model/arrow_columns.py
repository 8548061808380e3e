"""Columns of an Arrow table as numpy arrays: ids, numbers with nulls, numbered names, lists of brokers.

No Python object is created for a row. This module does not import pyarrow: callers that have a table have imported it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from controller_core.model import NO_BROKER, IntArray


def ids(column: Any) -> IntArray:
    """Return a column without nulls as int32."""
    found: IntArray = column.to_numpy().astype(np.int32, copy=False)
    return found


def numbers(column: Any) -> npt.NDArray[np.float64]:
    """Return a column as float64, NaN where it is null."""
    found: npt.NDArray[np.float64] = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return found


def numbered(column: Any) -> tuple[tuple[str, ...], IntArray]:
    """Return the distinct names of a column without nulls, sorted, and for each row the number of its name."""
    encoded = column.combine_chunks().dictionary_encode()
    names = encoded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), dtype=np.int32)
    rank[order] = np.arange(len(names), dtype=np.int32)
    return tuple(names[at] for at in order), rank[encoded.indices.to_numpy()]


def padded(column: Any) -> IntArray:
    """Return lists of broker ids padded with -1: int32 of shape (rows, longest), at least one wide. A null is an empty list."""
    lists = column.combine_chunks()
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    width = max(int(lengths.max(initial=0)), 1)
    found = np.full((len(lists), width), NO_BROKER, dtype=np.int32)
    found[np.arange(width) < lengths[:, np.newaxis]] = lists.flatten().to_numpy(zero_copy_only=False)
    return found
