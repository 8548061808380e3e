"""Start and end offsets, by ListOffsets requests to each leader for a limited number of partitions at a time.

After a failed request no other request is sent to the leader in the same sample: the offsets of its remaining partitions are missing.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from balance_analytics.model.samples import Longs
from balance_analytics.sampling.missing_data import DataKind, MissingData, Reason, reason_of, reason_of_failure
from balance_analytics.sampling.sample_builder import SampleBuilder
from kafka_wire import ApiKey, ErrorCode
from kafka_wire.columns.offsets import EARLIEST, LATEST, OffsetColumns, decode_list_offsets, encode_list_offsets
from kafka_wire.net.client import Node, RequestFailed
from kafka_wire.net.cluster import REQUEST_ATTEMPTS
from kafka_wire.net.connection import plain

PARTITIONS_PER_REQUEST = 10_000
"""A response of 270 kB keeps a request handler of the broker busy for some ten milliseconds; larger ones would delay other clients."""
VERSIONS = (6, 11)
"""Of ListOffsets: the first flexible one, of Kafka 2.5 (2020), and the last one of Kafka 4.3."""


async def read_offsets(
    broker: Node,
    rows: Longs,
    builder: SampleBuilder,
    missing_data: MissingData,
    *,
    deadline: float,
    now_ms: Callable[[], int],
) -> None:
    """Read the offsets of the partitions that a broker leads; `rows` are theirs, in order."""
    for begin in range(0, len(rows), PARTITIONS_PER_REQUEST):
        chunk = rows[begin : begin + PARTITIONS_PER_REQUEST]
        try:
            ends = await _list_offsets(broker, chunk, builder, LATEST, deadline)
            filled = _fill(builder.end_offset, ends, builder, chunk)
            builder.asked_at_ms[filled] = now_ms()
            starts = await _list_offsets(broker, chunk, builder, EARLIEST, deadline)
        except RequestFailed as error:
            missing_data.add(DataKind.OFFSETS, reason_of_failure(error), len(rows) - begin, str(error))
            return
        _fill(builder.start_offset, starts, builder, chunk)
        missing = chunk[(builder.end_offset[chunk] < 0) | (builder.start_offset[chunk] < 0)]
        for reason, count, message in _reasons(broker, (ends, starts), missing, builder):
            missing_data.add(DataKind.OFFSETS, reason, count, message)


async def _list_offsets(
    broker: Node, rows: Longs, builder: SampleBuilder, timestamp: int, deadline: float
) -> OffsetColumns:
    topics, counts = builder.topics_of(rows)

    async def encode(version: int) -> bytes:
        return encode_list_offsets(version, topics, counts, builder.partition[rows], timestamp)

    return await broker.request(
        ApiKey.LIST_OFFSETS,
        encode,
        plain(decode_list_offsets),
        deadline=deadline,
        versions=VERSIONS,
        attempts=REQUEST_ATTEMPTS,
    )


def _fill(column: Longs, found: OffsetColumns, builder: SampleBuilder, requested: Longs) -> Longs:
    """Write offsets into their rows and return these rows. Partitions that were not requested are ignored."""
    rows = builder.rows.find(found.topics, found.topic_rows, found.partition_index)
    good = (rows >= 0) & (found.error_code == ErrorCode.NONE) & (found.offset >= 0)
    good[good] = np.isin(rows[good], requested, assume_unique=False)
    column[rows[good]] = found.offset[good]
    filled: Longs = rows[good]
    return filled


def _reasons(
    broker: Node, responses: tuple[OffsetColumns, ...], missing: Longs, builder: SampleBuilder
) -> Iterator[tuple[Reason, int, str]]:
    """Yield reason, count and message of missing rows: by error code, or ABSENT for partitions that are not in the response."""
    if not len(missing):
        return
    code_of = np.full(len(builder), ErrorCode.NONE, np.int32)
    for found in responses:
        rows = builder.rows.find(found.topics, found.topic_rows, found.partition_index)
        failed = (rows >= 0) & (found.error_code != ErrorCode.NONE)
        code_of[rows[failed]] = found.error_code[failed]
    for code, count in Counter(code_of[missing].tolist()).items():
        if code == ErrorCode.NONE:
            yield Reason.ABSENT, count, f"{broker.name} did not return offsets of {count} partitions that it leads"
        else:
            yield reason_of(code), count, f"{broker.name}, {count} partitions: {ErrorCode.of(code).name}"


def count_leaderless(builder: SampleBuilder, missing_data: MissingData) -> None:
    """Count the partitions without a leader, whose offsets cannot be read."""
    count = int((builder.leader < 0).sum())
    missing_data.add(DataKind.OFFSETS, Reason.NO_LEADER, count, f"{count} partitions have no leader")
