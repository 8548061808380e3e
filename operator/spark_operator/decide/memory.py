"""Memory in Spark's units, and the memory overhead of a driver's container.

Spark asks for an executor's memory itself, by the same share; a driver's pod is made here, so its overhead is reckoned as Spark does it in cluster mode
(spark-kubernetes, BasicDriverFeatureStep): a share of the heap, more for languages with a process of their own, and a least amount.
"""

from __future__ import annotations

import re
from decimal import Decimal
from math import ceil

from spark_operator.resources.application import ApplicationType, PodSpec

UNITS_KIB = {"k": 1, "m": 1024, "g": 1024**2, "t": 1024**3}
DEFAULT_UNIT = "m"
"""Unit of a number without a suffix in Spark (spark.driver.memory)."""

LEAST_OVERHEAD_MIB = 384
JVM_SHARE, OTHER_SHARE = "0.1", "0.4"
"""spark.kubernetes.memoryOverheadFactor: its default, and what it is for Python and R."""

FACTOR = re.compile(r"\d{1,3}(\.\d{1,6})?")
MEMORY = re.compile(r"(\d{1,9})([kmgt]?)b?")


def mebibytes(text: str) -> int:
    """Return an amount of memory in MiB, rounded up; ValueError when it is none.

    >>> mebibytes("1g"), mebibytes("512M"), mebibytes("700"), mebibytes("1k")
    (1024, 512, 700, 1)
    """
    found = MEMORY.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError(f"{text!r} is not an amount of memory such as 512m or 2g")
    return -(-int(found[1]) * UNITS_KIB[found[2] or DEFAULT_UNIT] // 1024)


def container_mebibytes(pod: PodSpec, kind: ApplicationType, factor: str | None = None) -> int:
    """Return the memory of a driver's container: heap and overhead, which is `factor` of the heap where the user gives one.

    >>> container_mebibytes(PodSpec(memory="512m"), ApplicationType.PYTHON)
    896
    >>> container_mebibytes(PodSpec(memory="2g"), ApplicationType.PYTHON)
    2868
    """
    heap = mebibytes(pod.memory)
    if pod.memory_overhead is not None:
        return heap + mebibytes(pod.memory_overhead)
    share = read_factor(factor or overhead_share(kind))
    return heap + max(LEAST_OVERHEAD_MIB, ceil(heap * share))


def read_factor(text: str) -> Decimal:
    """Return an overhead factor; ValueError when it is none."""
    if FACTOR.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a memory overhead factor, a fraction of the heap such as 0.4")
    return Decimal(text)


def overhead_share(kind: ApplicationType) -> str:
    """Return the default memory overhead as a share of the heap: Python and R run processes next to the JVM."""
    return JVM_SHARE if kind in {ApplicationType.JAVA, ApplicationType.SCALA} else OTHER_SHARE
