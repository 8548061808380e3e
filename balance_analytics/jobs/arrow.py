"""Python functions over Arrow batches, in Spark's tasks.

`DataFrame.mapInArrow` does the same. From PySpark 4.0 to 4.3 it refuses to start without pandas, which it does not use and the image does not
have; so this calls what it calls, tested with 4.3. `hourly` and `day_rows` need it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from balance_analytics.jobs.day_batches import Batches
from balance_analytics.model.column import Column, ddl


def map_batches(frame: DataFrame, function: Callable[[Batches], Batches], columns: Sequence[Column]) -> DataFrame:
    """Return what `function` makes of the batches of each task: batches with `columns`, of any number of rows."""
    udf = UserDefinedFunction(function, ddl(columns), evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    called = udf(*(frame[name] for name in frame.columns))
    mapped = frame._jdf.mapInArrow(called._jc, False, None)  # noqa: SLF001 - as mapInArrow, see above
    return DataFrame(mapped, frame.sparkSession)
