"""What partitions carry, in arrays for the planner, out of an Arrow table of the loads (`model/loads.py`).

Which load counts: bytes in, the p95 of the hours of the window (95 of 100 hours are at or below it: one burst moves nothing, a
busy hour of every day does); bytes out, the mean of the hours in which it is known; disk, the size at the window's end. A partition
whose size or rate is not known keeps its place: no number is invented for it. A million partitions are 82 MB of Arrow and as much
in the arrays; no object is made for a partition. Leaves out reading files and planning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from balance_analytics.model.arrow_columns import ids, numbered, numbers, padded
from controller_core.model.columns import BoolArray, IntArray
from move_planner import request as core

MAX_PARTITIONS = 2_000_000
"""Of one proposal: several times the largest known clusters; each takes some 200 bytes here."""

NEEDED = ("topic", "partition", "leader", "replicas", "bytes_in_p95", "bytes_out_mean", "size_bytes")
"""Columns of the table that are read."""

NEVER_NULL = ("topic", "partition", "leader", "replicas")
"""Columns without which a row is no partition."""


class LoadsError(ValueError):
    """The table does not contain partitions' loads; the text names what is wrong."""


@dataclass(frozen=True, slots=True, eq=False)
class PartitionLoads:
    """Partitions in rows, ordered by topic and number. Rates are bytes/s, sizes bytes of one copy; 0 where nothing is known.

    `topic` numbers `topics`, which are sorted. `replicas` is padded with -1 (`controller_core.model.columns`); `known` tells where
    size and rate are. `bytes_out` is None when no partition's is known.
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
    """Read a pyarrow table; LoadsError when a column is missing or has nulls, or a partition occurs twice."""
    missing = [name for name in NEEDED if name not in table.column_names]
    if missing:
        raise LoadsError(
            f"the partitions' loads have no column {', '.join(missing)}: give the table of loads/partition"
        )
    if len(table) > MAX_PARTITIONS:
        raise LoadsError(f"{len(table)} partitions are more than a proposal can have, {MAX_PARTITIONS}")
    with_nulls = [name for name in NEVER_NULL if table[name].null_count]
    if with_nulls:
        raise LoadsError(f"the partitions' loads have no value in {', '.join(with_nulls)} of some rows")
    topics, topic = numbered(table["topic"])
    partition = ids(table["partition"])
    order = np.lexsort((partition, topic))
    topic, partition = topic[order], partition[order]
    twice = np.flatnonzero((topic[1:] == topic[:-1]) & (partition[1:] == partition[:-1]))
    if len(twice):
        name = f"{topics[topic[twice[0]]]}-{partition[twice[0]]}"
        raise LoadsError(f"{name} is there twice: give the loads of one cluster and one window")
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
