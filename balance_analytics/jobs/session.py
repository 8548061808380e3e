"""The Spark session of a run: with the settings of spark-submit; without it (`python -m`) Spark runs in this process, on two cores."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

APP_NAME = "steward-balance-analytics"

ALWAYS = {
    # All hours start in UTC.
    "spark.sql.session.timeZone": "UTC",
    # A day that is written again replaces that day only.
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    # A value that cannot be cast ends the run; it does not become null.
    "spark.sql.ansi.enabled": "true",
    # Lists of a task's partitions are held by key; below this many keys no sort is needed. 200,000 x 24 hours: some 150 MB.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "200000",
    # Batches for Python are limited by rows (10,000 of a day: some 20 MB). A limit in bytes makes Spark measure a batch with each row that it
    # adds, which takes longer than all else where columns are arrays; this value is the one that switches it off.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}
"""Set on every session: the results depend on the first three."""

THREADS = 2
"""Tasks at once in this process."""


def collector(cores: int | None) -> str:
    """Return the JVM's option for a collector: parallel on several cores, with a thread for each task, serial on one.

    >>> collector(1), collector(8)
    ('-XX:+UseSerialGC', '-XX:+UseParallelGC -XX:ParallelGCThreads=2')
    """
    return "-XX:+UseSerialGC" if (cores or 1) == 1 else f"-XX:+UseParallelGC -XX:ParallelGCThreads={THREADS}"


IN_PROCESS = {
    "spark.master": f"local[{THREADS}]",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": collector(os.cpu_count()),
    "spark.sql.shuffle.partitions": "8",
}
"""Without spark-submit: on a laptop, in a test."""

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""In the environment of a program that spark-submit started; its settings are then in the JVM already."""


def session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return the session of this process, or create it; `settings` replace those of `IN_PROCESS`."""
    if SUBMITTED not in os.environ:
        # Tasks run Python functions (`arrow`) in the interpreter of this process: another one may lack this package.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(APP_NAME)
    for name, value in ({} if SUBMITTED in os.environ else {**IN_PROCESS, **(settings or {})}).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for name, value in ALWAYS.items():
        spark.conf.set(name, value)
    return spark
