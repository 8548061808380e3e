"""Stage `study`: tables of loads to one result (`model/results.py`), written as JSON under `<out>/result.json`.

The tables are small: brokers x hours, and a row for each partition. The driver reads their files and decodes the columns that it needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from balance_analytics.jobs.files import arrow_table, contents, row_count
from balance_analytics.jobs.loads import loads_below
from balance_analytics.jobs.memory import require_memory
from balance_analytics.jobs.problems import AnalyticsError, LeftOuts, errors_about
from balance_analytics.jobs.storage import write_text
from balance_analytics.model.arrow_columns import numbered, numbers, padded
from balance_analytics.model.loads import BROKER_HOURS, BROKER_HOURS_PART, PARTITION_LOADS, PARTITIONS_PART
from balance_analytics.model.results import RESULT_NAME, LeftOut, Result
from balance_analytics.model.results_json import to_json
from balance_analytics.study.answer import study
from balance_analytics.study.columns import BrokerColumns, BrokerFacts, PartitionColumns, Question
from balance_analytics.study.key_skew import KeySketch

HOUR_S = 3600
US_PER_S = 1_000_000

NEEDED = (
    "cluster_id",
    "topic",
    "partition",
    "leader",
    "replicas",
    "bytes_in_mean",
    "bytes_in_p95",
    "bytes_out_mean",
    *("hours", "hours_out", "hours_in_rated", "hours_out_rated"),
)
"""Columns of the partitions' loads that are read."""


def run(
    spark: SparkSession, out: str, facts: BrokerFacts, sketches: Mapping[str, KeySketch], left_out: Sequence[LeftOut]
) -> Result:
    """Study the loads under `out`, write the result there and return it. Raises `AnalyticsError`."""
    published = loads_below(spark, out)
    lost = LeftOuts()
    newest = published.newest(lost)
    hours = published.table(newest, BROKER_HOURS, BROKER_HOURS_PART)
    loads = published.table(newest, PARTITION_LOADS, PARTITIONS_PART)
    if not newest.sequence:
        raise AnalyticsError(f"there are no loads yet under {out}: run the stage `loads` first")
    with errors_about(out, "loads"):
        of_loads, of_hours = contents([loads, hours])
        require_memory(spark, row_count(loads, of_loads))
        brokers = _brokers(arrow_table(hours, of_hours), sorted({*facts.racks, *facts.capacities}))
        table = arrow_table(loads, of_loads, NEEDED)
        del of_loads
        cluster_id, partitions, out_known = _partitions(table)
        rated = _rated(table)
        del table
        if not len(partitions.partition) or not len(brokers.hours):
            raise AnalyticsError(
                f"the loads under {out} have no partitions: check that the facts have partitions with leaders"
            )
        question = Question(cluster_id, partitions, brokers, facts, out_known, sketches, *rated)
        result = study(question, (*left_out, *lost.all()))
        write_text(spark, f"{out}/{RESULT_NAME}", to_json(result))
    return result


def _partitions(table: Any) -> tuple[str, PartitionColumns, bool]:
    """Return the cluster, the loads in the order of topic and partition, and whether bytes out are known."""
    topics, topic = numbered(table["topic"])
    partition = _ints(table, "partition")
    order = np.lexsort((partition, topic))
    clusters = table["cluster_id"].unique().to_pylist()
    columns = PartitionColumns(
        topics=topics,
        topic=topic.astype(np.int64)[order],
        partition=partition[order],
        leader=_ints(table, "leader")[order],
        replicas=padded(table["replicas"]).astype(np.int64)[order],
        bytes_in_mean=numbers(table["bytes_in_mean"])[order],
        bytes_in_p95=numbers(table["bytes_in_p95"])[order],
    )
    out_known = bool(np.isfinite(numbers(table["bytes_out_mean"])).any())
    return (clusters[0] if clusters else ""), columns, out_known


def _rated(table: Any) -> tuple[float, float]:
    """Return which part of partitions' hours have Prometheus' rates, of bytes in and of bytes out."""
    columns = (("hours_in_rated", "hours"), ("hours_out_rated", "hours_out"))
    sums = ([int(_ints(table, name).sum()) for name in pair] for pair in columns)
    found = [rated / hours if hours else 0.0 for rated, hours in sums]
    return found[0], found[1]


def _brokers(table: Any, named: list[int]) -> BrokerColumns:
    """Return the table as brokers x hours; brokers that are `named` and have no replicas have rows of zeros."""
    broker = _ints(table, "broker")
    at_s = table["hour"].cast(pa.int64()).to_numpy() // US_PER_S
    ids = np.union1d(broker, np.array(named, dtype=np.int64))
    first = int(at_s.min()) if len(at_s) else 0
    column = (at_s - first) // HOUR_S
    width = int(column.max()) + 1 if len(column) else 0
    row = np.searchsorted(ids, broker)

    def wide(name: str) -> Any:
        values = np.zeros((len(ids), width))
        values[row, column] = numbers(table[name])
        return values

    return BrokerColumns(
        brokers=ids,
        hours=first + HOUR_S * np.arange(width, dtype=np.int64),
        led=wide("leaders").astype(np.int64),
        bytes_in=wide("bytes_in"),
        bytes_out=wide("bytes_out"),
        messages_in=wide("messages_in"),
        copies=wide("copies").astype(np.int64),
        disk_bytes=wide("size_bytes"),
    )


def _ints(table: Any, name: str) -> Any:
    return table[name].to_numpy().astype(np.int64)
