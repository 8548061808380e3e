"""Appends that are collected into batches for the linger time (Kafka's BatchAccumulatorTest)."""

import asyncio

import pytest

from controller_core.quorum.ready import AppendResult
from controller_core.shell.quorum.append_accumulator import BATCH_OVERHEAD, RECORD_OVERHEAD_MAX, AppendAccumulator
from controller_core.shell.quorum.wire_batches import data_payload
from kafka_wire import ErrorCode
from kafka_wire.net.failures import CloseConnection

EPOCH = 5
NEVER_MS = 3_600_000
TWO_OF_TEN = BATCH_OVERHEAD + 2 * (10 + RECORD_OVERHEAD_MAX)
"""Room for two records of ten bytes."""


class Log:
    """The batches that were appended; the next record gets offset 100."""

    def __init__(self, error: ErrorCode = ErrorCode.NONE) -> None:
        self.batches: list[tuple[int, list[bytes]]] = []
        self._error = error
        self._end_offset = 100

    async def append(self, epoch: int, values: list[bytes]) -> AppendResult:
        """Append a batch."""
        self.batches.append((epoch, values))
        if self._error is not ErrorCode.NONE:
            return AppendResult(self._error)
        offset, self._end_offset = self._end_offset, self._end_offset + len(values)
        return AppendResult(ErrorCode.NONE, offset)


def accumulator(log: Log, *, linger_ms: int, max_bytes: int = 1_000_000) -> AppendAccumulator:
    """Return an accumulator over a log."""
    return AppendAccumulator(log.append, linger_ms=linger_ms, max_bytes=max_bytes)


async def append_all(appends: AppendAccumulator, *several: tuple[int, list[bytes]]) -> list[AppendResult]:
    """Append at the same time."""
    return await asyncio.gather(*(appends.append(epoch, values) for epoch, values in several))


async def test_appends_within_the_linger_time_are_one_batch_and_each_knows_its_offset() -> None:
    """BatchAccumulatorTest.testLingerBeginsOnFirstWrite."""
    log = Log()
    found = await append_all(accumulator(log, linger_ms=10), (EPOCH, [b"a", b"b"]), (EPOCH, [b"c"]), (EPOCH, [b"d"]))

    assert log.batches == [(EPOCH, [b"a", b"b", b"c", b"d"])]
    assert found == [AppendResult(ErrorCode.NONE, offset) for offset in (100, 102, 103)]


async def test_without_a_linger_time_only_appends_of_the_same_time_are_one_batch() -> None:
    """controller.quorum.append.linger.ms = 0: a poll of KafkaRaftClient drains what was appended since the one before."""
    log = Log()
    appends = accumulator(log, linger_ms=0)
    await append_all(appends, (EPOCH, [b"a"]), (EPOCH, [b"b"]))
    await appends.append(EPOCH, [b"c"])
    await appends.append(EPOCH, [b"d"])

    assert log.batches == [(EPOCH, [b"a", b"b"]), (EPOCH, [b"c"]), (EPOCH, [b"d"])]


async def test_a_full_batch_is_written_before_the_linger_time_has_passed() -> None:
    """BatchAccumulatorTest.testMultipleBatchAccumulation: the records of one append are never divided."""
    log = Log()
    appends = accumulator(log, linger_ms=NEVER_MS, max_bytes=TWO_OF_TEN)
    waiting = [asyncio.create_task(appends.append(EPOCH, [bytes(10)] * count)) for count in (1, 2, 1)]
    found = await asyncio.gather(*waiting[:2])

    assert [len(values) for _, values in log.batches] == [1, 2]
    assert [append.base_offset for append in found] == [100, 101]
    assert not waiting[2].done()
    appends.drain()
    assert (await waiting[2]).base_offset == 103


async def test_an_append_above_the_limit_is_alone_in_its_batch_and_gets_its_error() -> None:
    """The node refuses it; appends of other callers are not refused with it."""
    log = Log(ErrorCode.RECORD_LIST_TOO_LARGE)
    appends = accumulator(log, linger_ms=NEVER_MS, max_bytes=TWO_OF_TEN)
    other = asyncio.create_task(appends.append(EPOCH, [b"a"]))
    await asyncio.sleep(0)
    refused = await appends.append(EPOCH, [bytes(10)] * 3)
    await other

    assert refused == AppendResult(ErrorCode.RECORD_LIST_TOO_LARGE)
    assert [len(values) for _, values in log.batches] == [1, 3]


async def test_records_of_two_epochs_are_not_in_one_batch() -> None:
    """The node refuses those of the earlier one."""
    log = Log()
    await append_all(accumulator(log, linger_ms=10), (EPOCH, [b"a"]), (EPOCH + 1, [b"b"]))

    assert log.batches == [(EPOCH, [b"a"]), (EPOCH + 1, [b"b"])]


async def test_all_callers_of_a_batch_get_its_error() -> None:
    """KafkaRaftClientTest.testAccumulatorClearedAfterBecomingFollower: here the node refuses them."""
    error = AppendResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    log = Log(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    assert await append_all(accumulator(log, linger_ms=1), (EPOCH, [b"a"]), (EPOCH, [b"b"])) == [error, error]


async def test_the_end_of_the_node_ends_the_appends_that_wait() -> None:
    """No caller waits forever."""

    async def fail(_epoch: int, _values: list[bytes]) -> AppendResult:
        raise CloseConnection("the node of the quorum does not run")

    appends = AppendAccumulator(fail, linger_ms=NEVER_MS, max_bytes=1000)
    waiting = asyncio.create_task(appends.append(EPOCH, [b"a"]))
    await asyncio.sleep(0)
    appends.drain()

    with pytest.raises(CloseConnection, match="does not run"):
        await waiting


def test_a_batch_is_at_most_as_large_as_it_was_counted() -> None:
    """So that collected appends are never refused because of each other."""
    for values in ([bytes(8 << 20)], [b""] * 70_000, [bytes(200)] * 20_000):
        counted = BATCH_OVERHEAD + sum(map(len, values)) + RECORD_OVERHEAD_MAX * len(values)

        assert len(data_payload(values, now_ms=1)) <= counted
