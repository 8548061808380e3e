"""Python functions over Arrow batches, in Spark's tasks.

`DataFrame.mapInArrow` does the same. In PySpark 4.3 it refuses to start without pandas, which it does not use and the image does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from balance_analytics.model.column import Column, ddl

Batches = Iterator[Any]
"""Of `pyarrow.RecordBatch`."""


def map_batches(frame: DataFrame, function: Callable[[Batches], Batches], columns: Sequence[Column]) -> DataFrame:
    """Return what `function` makes of the batches of each task: batches with `columns`, of any number of rows."""
    udf = UserDefinedFunction(function, ddl(columns), evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    called = udf(*(frame[name] for name in frame.columns))
    mapped = frame._jdf.mapInArrow(called._jc, False, None)  # noqa: SLF001 - as mapInArrow, see above
    return DataFrame(mapped, frame.sparkSession)


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
