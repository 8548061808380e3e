"""Compaction in the background."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from kafka_log.files.data_folder import read_cleaned_offsets
from kafka_log.files.partition_settings import PartitionSettings
from kafka_log.format.cleaning_schedule import CleaningSettings
from kafka_log.format.retention import RetentionSettings
from kafka_wire.records import decode_batches
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.log_jobs import LogManagerSettings
from light_broker.shell.logs import cleaner
from light_broker.shell.logs.cleaner import Throttle, ThrottledTask, clean_throttled
from light_broker.shell.logs.manager import LogManager
from tests.kafka_log.batches import fast_folder
from tests.light_broker.log_managers import ORDERS, SMALL, TOPIC_ID, Managed, append
from tests.waiting import until

COMPACTED = replace(
    SMALL,
    append=replace(SMALL.append, is_compacted=True),
    retention=RetentionSettings(deletes=False),
    file_delete_delay_ms=0,
)
USERS = TopicPartition("users", 0)


@pytest.fixture
def managed() -> Iterator[Managed]:
    """One empty log directory, and two compacted topics."""
    with fast_folder() as folder:
        yield Managed([folder / "a"], topics={"orders": COMPACTED, "users": COMPACTED})


@pytest.fixture
async def logs(managed: Managed) -> AsyncIterator[LogManager]:
    """An open log manager."""
    async with managed.opened() as opened:
        yield opened


@pytest.fixture
def in_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compact in a thread, which starts faster than a child process."""

    async def run(function: object, argument: ThrottledTask, *, what: str) -> object:
        assert (function, what.startswith("the compaction of ")) == (clean_throttled, True)
        return await asyncio.to_thread(clean_throttled, argument)

    monkeypatch.setattr(cleaner, "run_in_child", run)


async def fill(managed: Managed, logs: LogManager, partition: TopicPartition, count: int) -> None:
    """Append records with three keys in turn to a new log, and replicate them."""
    await logs.create(partition, TOPIC_ID)
    keys = {number: f"key-{number % 3}" for number in range(count)}
    managed.high_watermarks[partition] = append(logs, partition, count, keys=keys)


def keys_of(logs: LogManager, partition: TopicPartition) -> dict[int, bytes | None]:
    """Return the keys of a log by offset."""
    opened = logs.log(partition)
    assert opened is not None
    return {
        record.offset: record.key
        for segment in opened.log.segments
        for batch in decode_batches(segment.read(0, segment.size_bytes))
        for record in batch.records
    }


async def test_a_log_is_compacted_in_a_child_process(managed: Managed, logs: LogManager) -> None:
    """The last record of each key stays; the checkpoint has the offset up to which the log is compacted."""
    await fill(managed, logs, ORDERS, 20)
    opened = logs.log(ORDERS)
    assert opened is not None
    active = opened.log.active_base_offset

    assert await logs.cleaner.clean_dirtiest_log()
    assert sorted(keys_of(logs, ORDERS)) == [*range(active - 3, 20)]
    assert read_cleaned_offsets(managed.directories[0]) == {ORDERS: active}
    assert not await logs.cleaner.clean_dirtiest_log()


@pytest.mark.usefixtures("in_thread")
async def test_the_dirtiest_log_is_compacted_first(managed: Managed, logs: LogManager) -> None:
    """LogCleanerManager.grabFilthiestCompactedLog: by the part of its bytes that is dirty."""
    await fill(managed, logs, ORDERS, 20)
    await logs.cleaner.clean_dirtiest_log()
    managed.high_watermarks[ORDERS] = append(logs, ORDERS, 12, keys=dict.fromkeys(range(12), "key-0"))
    await fill(managed, logs, USERS, 20)
    before = keys_of(logs, ORDERS)

    assert await logs.cleaner.clean_dirtiest_log()
    assert keys_of(logs, ORDERS) == before
    assert len(keys_of(logs, USERS)) < 12
    assert await logs.cleaner.clean_dirtiest_log()
    assert len(keys_of(logs, ORDERS)) < len(before)


@pytest.mark.usefixtures("in_thread")
async def test_nothing_is_compacted_above_the_high_watermark_or_of_other_topics(
    managed: Managed, logs: LogManager
) -> None:
    """LogCleanerManager.cleanableOffsets."""
    other = TopicPartition("other", 0)
    for topic_partition in (ORDERS, other):
        await fill(managed, logs, topic_partition, 20)
    managed.high_watermarks[ORDERS] = 0

    assert not await logs.cleaner.clean_dirtiest_log()


@pytest.mark.usefixtures("in_thread")
async def test_a_log_that_cannot_be_compacted_does_not_stop_the_others(
    managed: Managed, logs: LogManager, caplog: pytest.LogCaptureFixture
) -> None:
    """LogCleanerManager.markPartitionUncleanable, until a restart."""
    for topic_partition in (ORDERS, USERS):
        await fill(managed, logs, topic_partition, 20)
    first = logs.log(ORDERS).log.segments[0].path
    first.write_bytes(first.read_bytes()[:-1] + b"?")

    assert [await logs.cleaner.clean_dirtiest_log() for _ in range(3)] == [True, True, False]
    assert list(logs.cleaner.uncleanable) == [ORDERS]
    assert len(keys_of(logs, USERS)) < 12
    assert logs.directories[0].is_online()
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "Failed to compact log; it is left out until the broker is restarted"
    ]


@pytest.mark.usefixtures("in_thread")
@pytest.mark.parametrize("part", ["find_dirty_part", "prepare_cleaning", "run_in_child"])
async def test_a_defect_in_the_compaction_of_one_log_does_not_end_the_cleaner(
    managed: Managed, logs: LogManager, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """LogCleaner.CleanerThread.tryCleanFilthiestLog, LogCleanerManager.grabFilthiestCompactedLog."""
    await fill(managed, logs, ORDERS, 20)

    def fail(*_: object, **__: object) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(cleaner, part, fail)

    assert await logs.cleaner.clean_dirtiest_log() is (part == "run_in_child")
    assert logs.cleaner.uncleanable == {ORDERS: "'a defect'"}
    assert logs.directories[0].is_online()


@pytest.mark.usefixtures("in_thread")
async def test_a_topic_that_is_created_again_may_be_compacted(managed: Managed, logs: LogManager) -> None:
    """LogCleanerManager.maintainUncleanablePartitions."""
    await fill(managed, logs, ORDERS, 20)
    first = logs.log(ORDERS).log.segments[0].path
    first.write_bytes(first.read_bytes()[:-1] + b"?")
    await logs.cleaner.clean_dirtiest_log()

    await logs.delete(ORDERS)

    assert logs.cleaner.uncleanable == {}


@pytest.mark.parametrize("change", ["truncate", "delete", "fail"])
async def test_a_log_that_changes_otherwise_ends_its_compaction(
    managed: Managed, logs: LogManager, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """LogCleaner.abortCleaning: the child is killed, and nothing of the round stays."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def run(function: object, argument: ThrottledTask, *, what: str) -> object:
        clean_throttled(argument)
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return (function, what)

    monkeypatch.setattr(cleaner, "run_in_child", run)
    await fill(managed, logs, ORDERS, 20)
    opened = logs.log(ORDERS)
    assert opened is not None
    directory = logs.directories[0]
    directory.stored.cleaned[ORDERS] = 3
    cleaning = asyncio.ensure_future(logs.cleaner.clean_dirtiest_log())
    await begun.wait()
    assert logs.cleaner.is_cleaning(ORDERS)

    if change == "truncate":
        opened.truncate_to(2)
        await logs.settle()
        assert read_cleaned_offsets(managed.directories[0]) == {ORDERS: 2}
    elif change == "delete":
        await logs.delete(ORDERS)
    else:
        logs.report_failure(ORDERS, OSError(5, "Input/output error"))
    assert await cleaning
    assert ended.is_set()
    assert not logs.cleaner.is_cleaning(ORDERS)
    assert ORDERS not in logs.cleaner.uncleanable
    if change == "truncate":
        assert [path.name for path in (managed.directories[0] / "orders-0").iterdir() if ".cleaned" in path.name] == []


async def test_a_log_that_is_compacted_loses_no_segments_otherwise(
    managed: Managed, logs: LogManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """compact,delete: the cleaner deletes old segments when no round is in progress."""
    managed.topics["orders"] = replace(COMPACTED, retention=RetentionSettings(retention_bytes=0))
    await fill(managed, logs, ORDERS, 20)
    opened, directory, deleted = logs.log(ORDERS), logs.directories[0], []
    assert opened is not None

    async def run(_: object, argument: ThrottledTask, *, what: str) -> object:  # noqa: ARG001 - the signature of run_in_child
        deleted.append(logs.delete_old_segments(ORDERS, directory, opened, 20))
        return clean_throttled(argument)

    monkeypatch.setattr(cleaner, "run_in_child", run)
    await logs.cleaner.clean_dirtiest_log()

    assert deleted == [0]
    assert logs.delete_old_segments(ORDERS, directory, opened, 20) > 0
    assert (opened.start_offset, opened.end_offset) == (20, 20)


@pytest.mark.usefixtures("in_thread")
async def test_the_cleaner_runs_until_it_is_stopped(managed: Managed) -> None:
    """log.cleaner.threads, log.cleaner.backoff.ms; both can be changed while it runs."""
    managed.settings = LogManagerSettings(cleaner_threads=0)
    async with managed.opened() as logs:
        await fill(managed, logs, ORDERS, 20)
        running = asyncio.ensure_future(logs.run())
        await asyncio.sleep(0)
        assert len(keys_of(logs, ORDERS)) == 20

        logs.reconfigure_all(LogManagerSettings(cleaner_threads=2, cleaner_backoff_ms=1))
        await until(lambda: len(keys_of(logs, ORDERS)) < 20)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()


def test_reads_and_writes_of_a_round_are_throttled() -> None:
    """log.cleaner.io.max.bytes.per.second: the wait makes up for what was too fast."""
    now, waits = [0.0], []
    throttle = Throttle(100, clock=lambda: now[0], sleep=waits.append)
    throttle(50)
    now[0] = 1.0
    throttle(150)
    throttle(0)

    assert waits == [0.5, 1.0, 1.0]


def cleaning(**settings: float) -> PartitionSettings:
    """Return settings of a compacted topic."""
    return replace(COMPACTED, cleaning=CleaningSettings(**settings))


@pytest.mark.usefixtures("in_thread")
async def test_changed_settings_of_a_topic_decide_what_is_compacted(managed: Managed, logs: LogManager) -> None:
    """min.compaction.lag.ms, then max.compaction.lag.ms, which counts more than min.cleanable.dirty.ratio."""
    await fill(managed, logs, ORDERS, 20)
    managed.now_ms += 500

    found = []
    for settings in (
        cleaning(min_compaction_lag_ms=1_000),
        cleaning(min_cleanable_ratio=1.0),
        cleaning(min_cleanable_ratio=1.0, max_compaction_lag_ms=501),
        cleaning(min_cleanable_ratio=1.0, max_compaction_lag_ms=499),
    ):
        managed.topics["orders"] = settings
        logs.reconfigure("orders")
        found.append(await logs.cleaner.clean_dirtiest_log())
    assert found == [False, False, False, True]
