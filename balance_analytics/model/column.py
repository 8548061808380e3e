"""A column of a table, said once: Spark, pyarrow and the documentation all read it from here.

Leaves out the tables themselves (`sample_rows`, `facts`, `loads`) and every library's own types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a column holds; the values are Spark's own names of these types."""

    STRING = "string"
    INT32 = "int"
    INT64 = "bigint"
    FLOAT64 = "double"
    TIMESTAMP = "timestamp"
    """A point in time, in UTC, to the microsecond."""
    INT32_LIST = "array<int>"
    INT64_LIST = "array<bigint>"
    FLOAT64_LIST = "array<double>"
    STRING_LIST = "array<string>"
    INT32_LISTS = "array<array<int>>"


@dataclass(frozen=True, slots=True)
class Column:
    """`name` with its unit last, `kind`, and what it means; `nullable` where nothing may be known."""

    name: str
    kind: Kind
    about: str
    nullable: bool = False


def names(table: Sequence[Column]) -> list[str]:
    """Return the names of a table's columns, in order.

    >>> names((Column("hour", Kind.TIMESTAMP, "start of the hour"), Column("leader", Kind.INT32, "broker")))
    ['hour', 'leader']
    """
    return [column.name for column in table]


def ddl(table: Sequence[Column]) -> str:
    """Write a table's schema as Spark reads it.

    >>> ddl((Column("hour", Kind.TIMESTAMP, "start of the hour"), Column("leader", Kind.INT32, "broker")))
    '`hour` timestamp, `leader` int'
    """
    return ", ".join(f"`{column.name}` {column.kind.value}" for column in table)
