"""What partitions carry, in arrays for the planner, out of the columns of `<out>/loads/partition`.

Which load counts: bytes in, the p95 of the hours of the window (95 of 100 hours are at or below it: one burst moves nothing, a
busy hour of every day does); bytes out, the mean of the hours in which it is known; disk, the size at the window's end. A partition
whose size or rate is not known keeps its place: no number is invented for it. Leaves out reading files and planning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from controller_core.model.columns import BoolArray, IntArray, pad
from move_planner import request as core

MAX_PARTITIONS = 2_000_000
"""Of one proposal: several times the largest known clusters; each takes some 200 bytes here."""

NEEDED = ("topic", "partition", "leader", "replicas", "bytes_in_p95", "bytes_out_mean", "size_bytes")
"""Columns of the table that are read."""

Columns = Mapping[str, Sequence[Any]]
"""Columns by name, all of one length, None where nothing is known: what pyarrow's `Table.to_pydict` returns."""


class LoadsError(ValueError):
    """The columns are no partitions' loads; says what is wrong."""


@dataclass(frozen=True, slots=True, eq=False)
class PartitionLoads:
    """Partitions in rows, ordered by topic and number. Rates are bytes/s, sizes bytes of one copy; 0 where nothing is known.

    `replicas` is padded with -1 (`controller_core.model.columns`); `known` tells where size and rate are. `bytes_out` is None when
    no partition's is known.
    """

    topics: tuple[str, ...]
    partition: IntArray
    replicas: IntArray
    leader: IntArray
    bytes_in: core.LoadArray
    bytes_out: core.LoadArray | None
    size_bytes: core.LoadArray
    known: BoolArray


def loads_of(columns: Columns) -> PartitionLoads:
    """Read columns; LoadsError when one lacks, or they differ in length, or name a partition twice."""
    lacking = [name for name in NEEDED if name not in columns]
    if lacking:
        raise LoadsError(
            f"the partitions' loads have no column {', '.join(lacking)}: give the table of loads/partition"
        )
    count = len(columns["topic"])
    if any(len(columns[name]) != count for name in NEEDED):
        raise LoadsError("the columns of the partitions' loads differ in length")
    if count > MAX_PARTITIONS:
        raise LoadsError(f"{count} partitions are more than a proposal can have, {MAX_PARTITIONS}")
    order = sorted(range(count), key=lambda row: (columns["topic"][row], columns["partition"][row]))
    topics = tuple(str(columns["topic"][row]) for row in order)
    partition = np.array([columns["partition"][row] for row in order], dtype=np.int32)
    for row in range(1, count):
        if topics[row] == topics[row - 1] and partition[row] == partition[row - 1]:
            raise LoadsError(
                f"{topics[row]}-{partition[row]} is there twice: give the loads of one cluster and one window"
            )
    rate, size = (_numbers(columns[name], order) for name in ("bytes_in_p95", "size_bytes"))
    out = _numbers(columns["bytes_out_mean"], order)
    return PartitionLoads(
        topics=topics,
        partition=partition,
        replicas=pad([columns["replicas"][row] for row in order]),
        leader=np.array([columns["leader"][row] for row in order], dtype=np.int32),
        bytes_in=_whole(rate),
        bytes_out=None if np.isnan(out).all() else _whole(out),
        size_bytes=_whole(size),
        known=~np.isnan(rate) & ~np.isnan(size),
    )


def _numbers(column: Sequence[Any], order: Sequence[int]) -> npt.NDArray[np.float64]:
    return np.array([np.nan if column[row] is None else column[row] for row in order], dtype=np.float64)


def _whole(numbers: npt.NDArray[np.float64]) -> core.LoadArray:
    return np.rint(np.maximum(np.nan_to_num(numbers, nan=0.0, posinf=0.0), 0.0)).astype(np.int64)
