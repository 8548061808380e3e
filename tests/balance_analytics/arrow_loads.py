"""Loads of partitions as the Arrow table that Spark returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from balance_analytics.model.column import Kind
from balance_analytics.model.loads import PARTITION_LOADS

TYPES = {
    Kind.STRING: pa.string(),
    Kind.INT32: pa.int32(),
    Kind.INT64: pa.int64(),
    Kind.FLOAT64: pa.float64(),
    Kind.INT32_LIST: pa.list_(pa.field("element", pa.int32())),
}
FIRST_CHUNK_ROWS = 7


def loads_table(columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return columns by name as a table with the types of the loads, in two chunks; None is null."""
    types = {column.name: TYPES.get(column.kind) for column in PARTITION_LOADS}
    whole = pa.table({name: pa.array(column, types[name]) for name, column in columns.items()})
    return pa.concat_tables([whole.slice(0, FIRST_CHUNK_ROWS), whole.slice(FIRST_CHUNK_ROWS)])
