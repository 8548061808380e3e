"""Memory that the driver needs for a study or a plan, compared with what it has, before the work begins.

A container that uses more than its limit is killed without a word; this fails before, and names the value to set. The amounts are
measured: Python of the stages `study` and `moves`, and the heap that Arrow columns pass through. The chart computes its defaults from the
same figures, with a margin (`charts/steward/templates/analytics/_schedule.tpl`).
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from balance_analytics.jobs.problems import AnalyticsError
from kafka_node.memory_limit import memory_limit_bytes

MIB = 2**20

PYTHON_BASE_BYTES = 150 * MIB
PYTHON_PARTITION_BYTES = 450
"""Peak of the process: 190 MB for 100,000 partitions, 600 MB for a million, of which the planner takes two thirds."""

HEAP_BASE_BYTES = 256 * MIB
HEAP_PARTITION_BYTES = 200
"""A heap of 512 MiB passed a million partitions, together with the executors in the same JVM."""

JVM_OTHER_BYTES = 200 * MIB
"""Classes, threads and buffers of the JVM outside of its heap."""

FAILING_SHARE = 0.7
"""With less than this share of what is needed a run is refused; between this and all of it a warning is enough, as a heap is seldom full."""


class Shortage(NamedTuple):
    """Too little memory: whether a run is refused, and a message that names the value to set."""

    refused: bool
    message: str


def shortage(partitions: int, limit_bytes: int | None, heap_bytes: int) -> Shortage | None:
    """Compare what `partitions` need with the container's limit (None: there is none) and the driver's maximum heap.

    >>> shortage(10_000, 1288 * MIB, 770 * MIB) is None
    True
    >>> shortage(1_000_000, 1434 * MIB, 1024 * MIB).message
    '1000000 partitions need 580 MiB for Python on the driver, and its container leaves 210 MiB: set analytics.schedule.partitions \
of the chart to 1000000, or memoryOverhead of the driver to 780m'
    """
    needed_heap = HEAP_BASE_BYTES + HEAP_PARTITION_BYTES * partitions
    if heap_bytes < needed_heap:
        message = (
            f"{partitions} partitions need a heap of {_mib(needed_heap)} MiB on the driver, and it has {_mib(heap_bytes)} MiB: set"
            f" analytics.schedule.partitions of the chart to {partitions}, or memory of the driver to {_mib(needed_heap)}m"
        )
        return Shortage(heap_bytes < FAILING_SHARE * needed_heap, message)
    if limit_bytes is None:
        return None
    needed = PYTHON_BASE_BYTES + PYTHON_PARTITION_BYTES * partitions
    left = limit_bytes - heap_bytes - JVM_OTHER_BYTES
    if left >= needed:
        return None
    message = (
        f"{partitions} partitions need {_mib(needed)} MiB for Python on the driver, and its container leaves {max(0, _mib(left))} MiB:"
        f" set analytics.schedule.partitions of the chart to {partitions}, or memoryOverhead of the driver to"
        f" {_mib(needed + JVM_OTHER_BYTES)}m"
    )
    return Shortage(left < FAILING_SHARE * needed, message)


def require_memory(spark: SparkSession, partitions: int) -> None:
    """Raise `AnalyticsError` if the driver's memory does not suffice for loads of so many partitions; warn if it is near."""
    jvm: Any = spark._jvm  # noqa: SLF001 - Python has no other way to the heap's size
    found = shortage(partitions, memory_limit_bytes(), int(jvm.java.lang.Runtime.getRuntime().maxMemory()))
    if found is None:
        return
    if found.refused:
        raise AnalyticsError(f"the driver has too little memory: {found.message}")
    sys.stderr.write(f"balance analytics: the driver has little memory: {found.message}\n")


def _mib(size_bytes: int) -> int:
    return -(-size_bytes // MIB)
