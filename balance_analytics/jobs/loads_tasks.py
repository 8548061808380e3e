"""Tasks of the stage `loads`, in Python workers. They do not import Spark's session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.accumulators import Accumulator, AccumulatorParam

from balance_analytics.jobs.day_matrices import DayMatrices, Ends, Window, by_bucket, ends_of_file, matrices_of_file
from balance_analytics.jobs.window_loads import Gone, task_loads
from balance_analytics.study.partition_hours import BrokerSums

COMPRESSION = "lz4"


class Packed(NamedTuple):
    """The loads of one task as it sends them: `data` is a table of PARTITION_LOADS as an Arrow stream."""

    data: bytes
    gone: list[Gone]
    clusters: set[str]

    def table(self) -> Any:
        """Return the table."""
        with pa.ipc.open_stream(self.data) as stream:
            return stream.read_all()


class SumsParam(AccumulatorParam[BrokerSums]):
    """Sums of brokers, added up on the driver."""

    def zero(self, value: BrokerSums) -> BrokerSums:  # noqa: ARG002 - as Spark calls it
        """Return no sums."""
        return BrokerSums.none()

    def addInPlace(self, value1: BrokerSums, value2: BrokerSums) -> BrokerSums:  # noqa: N802 - Spark's name
        """Return the sums of both."""
        return value1.plus(value2)


def ends_of_files(min_minutes: int, file: tuple[str, bytes]) -> Ends:
    """Return the first and the last hour that counts of a file, by cluster."""
    return ends_of_file(min_minutes, *file)


def facts_by_bucket(
    window: Window, cluster_id: str | None, buckets: int, file: tuple[str, bytes]
) -> Iterator[tuple[int, DayMatrices]]:
    """Yield the rows of a file by bucket of partitions."""
    for rows in matrices_of_file(window, cluster_id, *file):
        yield from by_bucket(rows, buckets)


def bucket_of(bucket: int) -> int:
    """Return the task of a bucket: each has its own."""
    return bucket


def packed_loads(
    window: Window, sums: Accumulator[BrokerSums], found: Iterable[tuple[int, DayMatrices]]
) -> Iterator[Packed]:
    """Yield the loads of the partitions of a bucket, and add what their brokers carry to `sums`."""
    computed = task_loads(window, [rows for _, rows in found])
    if not computed.loads:
        return
    sums.add(computed.sums)
    table = pa.concat_tables(computed.loads)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=COMPRESSION)) as stream:
        stream.write_table(table)
    yield Packed(sink.getvalue().to_pybytes(), computed.gone, computed.clusters)
