"""Column definitions, shared by Spark, pyarrow and the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Type of a column; the values are Spark's names of these types."""

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
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class Column:
    """`name` with its unit last, `kind`, and its meaning; `nullable` if the value may be unknown."""

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
    """Return a table's schema in Spark's DDL.

    >>> ddl((Column("hour", Kind.TIMESTAMP, "start of the hour"), Column("leader", Kind.INT32, "broker")))
    '`hour` timestamp, `leader` int'
    """
    return ", ".join(f"`{column.name}` {column.kind.value}" for column in table)
