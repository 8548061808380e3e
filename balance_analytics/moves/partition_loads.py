"""Loads of partitions as arrays for the planner, from an Arrow table (`model/loads.py`).

The planner uses for bytes in the p95 of the hours in the window (a single burst has no effect, a busy hour of every day has one), for
bytes out the mean of the hours in which they are known, for disk the size at the end of the window. Partitions of unknown size or rate
are not moved. A million partitions need 82 MB in Arrow and as much in the arrays; no object is created for a partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from balance_analytics.model.arrow_columns import ids, numbered, numbers, padded
from controller_core.model import BoolArray, IntArray
from move_planner import request as core

MAX_PARTITIONS = 2_000_000
"""Limit of a proposal: several times the largest known clusters; each partition needs about 200 bytes here."""

NEEDED = ("topic", "partition", "leader", "replicas", "bytes_in_p95", "bytes_out_mean", "size_bytes")
"""Columns of the table that are read."""

NEVER_NULL = ("topic", "partition", "leader", "replicas")
"""Columns that must have a value in each row."""


class LoadsError(ValueError):
    """The table does not contain valid loads of partitions; the message has the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class PartitionLoads:
    """Partitions in rows, ordered by topic and number. Rates are bytes/s, sizes bytes of one replica; 0 if unknown.

    `topic` contains indexes of `topics`, which are sorted. `replicas` is padded with -1 (`controller_core.model.columns`); `known` is
    true if size and rate are known. `bytes_out` is None if it is unknown for all partitions.
    """

    topics: tuple[str, ...]
    topic: IntArray
    partition: IntArray
    replicas: IntArray
    leader: IntArray
    bytes_in: core.LoadArray
    bytes_out: core.LoadArray | None
    size_bytes: core.LoadArray
    known: BoolArray

    def __len__(self) -> int:
        return len(self.partition)

    def topic_of(self, row: int) -> str:
        """Return the name of a row's topic."""
        return self.topics[int(self.topic[row])]


def loads_of(table: Any) -> PartitionLoads:
    """Convert a pyarrow table. Raises LoadsError if a column is missing or has nulls, or a partition occurs twice."""
    missing = [name for name in NEEDED if name not in table.column_names]
    if missing:
        raise LoadsError(
            f"the loads of partitions have no column {', '.join(missing)}: use the table of loads/partition"
        )
    if len(table) > MAX_PARTITIONS:
        raise LoadsError(f"{len(table)} partitions; the limit of a proposal is {MAX_PARTITIONS}")
    with_nulls = [name for name in NEVER_NULL if table[name].null_count]
    if with_nulls:
        raise LoadsError(f"the loads of partitions have rows with no value in {', '.join(with_nulls)}")
    topics, topic = numbered(table["topic"])
    partition = ids(table["partition"])
    order = np.lexsort((partition, topic))
    topic, partition = topic[order], partition[order]
    twice = np.flatnonzero((topic[1:] == topic[:-1]) & (partition[1:] == partition[:-1]))
    if len(twice):
        name = f"{topics[topic[twice[0]]]}-{partition[twice[0]]}"
        raise LoadsError(f"{name} occurs twice: use the loads of one cluster and one window")
    rate, size = (numbers(table[name])[order] for name in ("bytes_in_p95", "size_bytes"))
    out = numbers(table["bytes_out_mean"])[order]
    return PartitionLoads(
        topics=topics,
        topic=topic,
        partition=partition,
        replicas=padded(table["replicas"])[order],
        leader=ids(table["leader"])[order],
        bytes_in=_whole(rate),
        bytes_out=None if np.isnan(out).all() else _whole(out),
        size_bytes=_whole(size),
        known=~np.isnan(rate) & ~np.isnan(size),
    )


def _whole(column: npt.NDArray[np.float64]) -> core.LoadArray:
    return np.rint(np.maximum(np.nan_to_num(column, nan=0.0, posinf=0.0), 0.0)).astype(np.int64)
