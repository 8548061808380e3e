"""Start and end offsets: each leader is asked for its partitions, so many at a time (ListOffsets).

A leader that has gone quiet is not asked again in the same look: its partitions stay unknown, with the reason.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from balance_analytics.model.samples import Longs
from balance_analytics.sampling.asking import AskedBroker, AskFailed
from balance_analytics.sampling.layout import Layout
from balance_analytics.sampling.left_out import LeftOut, Reason, What, reason_of
from kafka_wire.api import ApiKey
from kafka_wire.errors import ErrorCode
from kafka_wire.offset_columns import EARLIEST, LATEST, OffsetColumns, decode_list_offsets, encode_list_offsets

PARTITIONS_PER_REQUEST = 10_000
"""An answer of 270 kB: a broker's request handler is busy with it for some ten milliseconds, not for a second."""
FIRST_VERSION = 6
"""Of ListOffsets: the first flexible one, of Kafka 2.5 (2020)."""


async def ask_offsets(
    broker: AskedBroker, rows: Longs, layout: Layout, left_out: LeftOut, *, deadline: float, now_ms: Callable[[], int]
) -> None:
    """Fill the offsets of the rows (in order) that a broker leads."""
    for begin in range(0, len(rows), PARTITIONS_PER_REQUEST):
        chunk = rows[begin : begin + PARTITIONS_PER_REQUEST]
        try:
            ends = await _ask(broker, chunk, layout, LATEST, deadline)
            seen = _fill(layout.end_offset, ends, layout, chunk)
            layout.asked_at_ms[seen] = now_ms()
            starts = await _ask(broker, chunk, layout, EARLIEST, deadline)
        except AskFailed as why:
            left_out.add(What.OFFSETS, why.reason, len(rows) - begin, str(why))
            return
        _fill(layout.start_offset, starts, layout, chunk)
        missing = chunk[(layout.end_offset[chunk] < 0) | (layout.start_offset[chunk] < 0)]
        for reason, count, words in _reasons(broker, (ends, starts), missing, layout):
            left_out.add(What.OFFSETS, reason, count, words)


async def _ask(broker: AskedBroker, rows: Longs, layout: Layout, timestamp: int, deadline: float) -> OffsetColumns:
    topics, counts = layout.topics_of(rows)
    return await broker.ask(
        ApiKey.LIST_OFFSETS,
        lambda version: encode_list_offsets(version, topics, counts, layout.partition[rows], timestamp),
        decode_list_offsets,
        deadline=deadline,
        lowest=FIRST_VERSION,
    )


def _fill(column: Longs, found: OffsetColumns, layout: Layout, asked: Longs) -> Longs:
    """Put the offsets that came into their rows, which are returned; nothing that was not asked for is taken."""
    rows = layout.rows.find(found.topics, found.topic_rows, found.partition_index)
    good = (rows >= 0) & (found.error_code == ErrorCode.NONE) & (found.offset >= 0)
    good[good] = np.isin(rows[good], asked, assume_unique=False)
    column[rows[good]] = found.offset[good]
    filled: Longs = rows[good]
    return filled


def _reasons(
    broker: AskedBroker, answers: tuple[OffsetColumns, ...], missing: Longs, layout: Layout
) -> Iterator[tuple[Reason, int, str]]:
    """Say why rows are missing: by their own errors, and ABSENT where the broker did not name them."""
    if not len(missing):
        return
    code_of = np.full(len(layout), ErrorCode.NONE, np.int32)
    for found in answers:
        rows = layout.rows.find(found.topics, found.topic_rows, found.partition_index)
        failed = (rows >= 0) & (found.error_code != ErrorCode.NONE)
        code_of[rows[failed]] = found.error_code[failed]
    for code, count in Counter(code_of[missing].tolist()).items():
        if code == ErrorCode.NONE:
            yield Reason.ABSENT, count, f"{broker.name} told no offset of {count} partitions that it leads"
        else:
            yield reason_of(code), count, f"{broker.name}, {count} partitions: {ErrorCode.of(code).name}"


def no_leader(layout: Layout, left_out: LeftOut) -> None:
    """Count the partitions that nobody can be asked about."""
    count = int((layout.leader < 0).sum())
    left_out.add(What.OFFSETS, Reason.NO_LEADER, count, f"{count} partitions have no leader")
