"""Hourly rows of facts to rows of days, over Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from balance_analytics.model.column import Column, names
from balance_analytics.model.facts import DAY_KEY, HOURLY, HOURS

US_PER_HOUR = 3_600_000_000

Batches = Iterator[Any]
"""Of `pyarrow.RecordBatch`."""


def day_batches(batches: Iterable[Any], columns: Sequence[Column] = HOURLY) -> Batches:
    """Turn rows of FACTS, with their `day` and in the order of KEY, into rows of DAY_FACTS.

    Of HOURLY only `columns` are there.
    """
    for batch, starts in whole_groups(batches, DAY_KEY):
        count = len(starts)
        group = np.repeat(np.arange(count), np.diff([*starts, batch.num_rows]))
        since_day = pc.subtract(batch["hour"].cast(pa.int64()), batch["day"].cast(pa.int64())).to_numpy()
        source = np.full(count * HOURS, -1)
        source[group * HOURS + since_day // US_PER_HOUR] = np.arange(batch.num_rows)
        taken = pa.array(source, mask=source < 0)
        offsets = pa.array(np.arange(0, count * HOURS + 1, HOURS, dtype=np.int32))
        first = pa.array(starts)
        arrays = [batch[name].take(first) for name in DAY_KEY]
        arrays += [pa.ListArray.from_arrays(offsets, batch[column.name].take(taken)) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, names=[*DAY_KEY, *names(columns)])


def whole_groups(batches: Iterable[Any], keys: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Cut batches of sorted rows at the ends of groups: yield batches, and the row at which each of their groups starts (int64).

    A group is the rows with the same `keys`; it must fit into memory. Nothing is yielded for batches without rows.
    """
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        joined = _joined(held)
        starts = group_starts(joined, keys)
        if len(starts) > 1:
            last = int(starts[-1])
            yield joined.slice(0, last), starts[:-1]
            held = [joined.slice(last)]
        else:
            held = [joined] if joined.num_rows else []
    if held:
        yield held[0], group_starts(held[0], keys)


def _joined(batches: list[Any]) -> Any:
    if len(batches) == 1:
        return batches[0]
    found = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return found[0] if found else batches[0]


def group_starts(batch: Any, keys: Sequence[str]) -> Any:
    """Return the rows of a batch whose keys differ from those of the row before, in order, as int64."""
    if not batch.num_rows:
        return np.zeros(0, dtype=np.int64)
    differs = [pc.not_equal(batch[key].slice(1), batch[key].slice(0, batch.num_rows - 1)) for key in keys]
    changed = differs[0]
    for more in differs[1:]:
        changed = pc.or_(changed, more)
    after = pc.indices_nonzero(changed).to_numpy().astype(np.int64) + 1
    return np.concatenate([np.zeros(1, dtype=np.int64), after])
