"""Hourly rates to the figures of `model/loads.STATISTICS`, for any number of series at once.

The plain twin of one series is `study/series.py`. The busiest hour is found by the maximum of one number, which holds the rate and, in
its last bits, the hour counted backwards: so the first of equals wins, in the fast part of Spark's aggregation.
Sums of floating point numbers depend on their order in the last digits, and with it on how tasks happen to end; rates are
rounded to thousandths of a byte, so that two runs write the same. Leaves out how rates come about.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from balance_analytics.model.column import names
from balance_analytics.model.loads import STATISTICS
from balance_analytics.study.series import HOURS_PER_DAY, PERCENTILE

HOUR_BITS = 12
"""4096 hours: half a year; `--window-days` is limited to less."""

_LAST_HOUR = (1 << HOUR_BITS) - 1
HOUR_S = 3600
DIGITS = 3


def statistics(hours: DataFrame, keys: Sequence[str], start_s: int, *others: Column) -> DataFrame:
    """Return `keys`, STATISTICS and `others` (aggregates) of rows with `keys`, `at` (hours since `start_s`) and the rates.

    Rates are `rate` (bytes in), `rate_out`, `rate_messages`, `size` (bytes, of the series as a whole).
    """
    size_at = sf.when(sf.col("size").isNotNull(), sf.col("at"))
    peak = sf.shiftleft(sf.round("rate").cast("bigint"), HOUR_BITS) + (_LAST_HOUR - sf.col("at"))
    grouped = hours.groupBy(*keys).agg(
        sf.count("rate").cast("int").alias("hours"),
        sf.avg("rate").alias("bytes_in_mean"),
        sf.collect_list("rate").alias("rates"),
        sf.max("rate").alias("bytes_in_peak"),
        sf.max(peak).alias("peak"),
        (sf.regr_slope("rate", "at") * HOURS_PER_DAY).alias("bytes_in_trend"),
        sf.avg("rate_out").alias("bytes_out_mean"),
        sf.avg("rate_messages").alias("messages_in_mean"),
        sf.max_by("size", size_at).cast("bigint").alias("size_bytes"),
        (sf.regr_slope("size", "at") * HOURS_PER_DAY).alias("size_trend"),
        *others,
    )
    rank = sf.ceil(sf.lit(PERCENTILE) * sf.size("rates")).cast("int")
    peak_at = sf.lit(_LAST_HOUR) - sf.col("peak").bitwiseAND(_LAST_HOUR)
    done = grouped.withColumns(
        {
            "bytes_in_p95": sf.get(sf.sort_array("rates"), rank - 1),
            "bytes_in_peak_hour": sf.timestamp_seconds(peak_at * HOUR_S + start_s),
        }
    ).drop("rates", "peak")
    rounded = [column.name for column in STATISTICS if column.kind.value == "double"]
    kept = [name for name in done.columns if name not in {*keys, *names(STATISTICS)}]
    return done.withColumns({name: sf.round(name, DIGITS) for name in rounded}).select(*keys, *names(STATISTICS), *kept)
