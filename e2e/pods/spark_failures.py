"""A small Spark application that fails as requested: `spark_failures.py driver-memory | executor-memory | executor-disk`.

One task causes the failure on its first attempt and succeeds when Spark repeats it, so the application completes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession

MEBIBYTE = 1 << 20

TOO_MUCH_MEBIBYTES = 4096
"""Of memory: several times what any container here may have."""

ON_DISK_MEBIBYTES = 64
"""Several times what the volume may hold."""

SCRATCH, MEMORY = Path("/scratch/filling"), Path("/memory/filling")

EVICTED_WITHIN_S = 300
"""The kubelet checks volumes every ten seconds, and evicts a pod some time later."""


def take_memory() -> None:
    """Allocate memory until this process is killed."""
    taken = [bytearray(b"x" * MEBIBYTE) for _ in range(TOO_MUCH_MEBIBYTES)]
    sys.exit(f"{len(taken)} MiB were to be had")


def fill_memory() -> None:
    """Fill a volume in memory, which counts as the container's, until its largest process is killed: the executor itself."""
    with MEMORY.open("wb") as file:
        for _ in range(TOO_MUCH_MEBIBYTES):
            file.write(b"x" * MEBIBYTE)
    sys.exit("there was room for it all")


def fill_disk() -> None:
    """Write more than the volume may hold, and wait until the pod is evicted."""
    import time  # noqa: PLC0415 - the function goes to the executor by value

    SCRATCH.write_bytes(bytes(ON_DISK_MEBIBYTES * MEBIBYTE))
    time.sleep(EVICTED_WITHIN_S)
    sys.exit("no pod was evicted")


def once(harm: Callable[[], None]) -> Callable[[Iterable[int]], Iterable[int]]:
    """Return a task that causes the failure on its first attempt."""

    def task(numbers: Iterable[int]) -> Iterable[int]:
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0 and context.partitionId() == 0:
            harm()
        return numbers

    return task


if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    failure = sys.argv[1]
    if failure == "driver-memory":
        take_memory()
    harm = {"executor-memory": fill_memory, "executor-disk": fill_disk}[failure]
    total = sum(spark.sparkContext.parallelize(range(100), 2).mapPartitions(once(harm)).collect())
    print(f"the sum is {total}")
    spark.stop()
