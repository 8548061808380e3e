"""Disks that fail: their log directory goes offline, and the others are served."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest

from kafka_log.errors import LogWriteError, RefusedAppendError
from kafka_log.format.names import CLEAN_SHUTDOWN
from kafka_wire import ErrorCode
from kafka_wire.file_slice import SliceUnreadable
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.log_jobs import LogManagerSettings
from light_broker.shell.logs.directory import LogDirectory
from light_broker.shell.logs.errors import NoLogDirectoryError, OfflineLogError
from light_broker.shell.logs.manager import LogManager
from tests.kafka_log.batches import fast_folder
from tests.light_broker.log_managers import ORDERS, TOPIC_ID, Managed, append
from tests.waiting import until

PARTITIONS = [TopicPartition("orders", number) for number in range(4)]


@pytest.fixture
def managed() -> Iterator[Managed]:
    """Two empty log directories."""
    with fast_folder() as folder:
        yield Managed([folder / "a", folder / "b"])


def failing(number: int) -> Any:
    """Return a function that fails with an error of the operating system."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return fail


async def with_logs(logs: LogManager) -> tuple[LogDirectory, LogDirectory]:
    """Create two logs in each directory; return that of `orders-0`, and the other one."""
    for some_partition in PARTITIONS:
        await logs.create(some_partition, TOPIC_ID)
    failed = logs.directory(ORDERS)
    assert failed is not None
    return failed, next(directory for directory in logs.directories if directory is not failed)


def check_that_one_is_offline(managed: Managed, logs: LogManager, failed: LogDirectory, other: LogDirectory) -> None:
    """Its partitions are reported once, and those of the other one are served."""
    gone, served = [
        sorted(path.name for path in log_directory.path.glob("orders-*")) for log_directory in (failed, other)
    ]
    assert [(failure.path, sorted(map(str, failure.partitions))) for failure in managed.failures] == [
        (failed.path, gone)
    ]
    assert managed.failures[0].directory_id == failed.directory_id
    assert (
        sorted(str(some_partition) for some_partition in PARTITIONS if logs.offline_reason(some_partition) is not None)
        == gone
    )
    assert (
        sorted(str(some_partition) for some_partition in PARTITIONS if logs.log(some_partition) is not None) == served
    )
    for some_partition in PARTITIONS:
        if logs.offline_reason(some_partition) is None:
            append(logs, some_partition)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS])
async def test_an_append_that_fails_takes_the_directory_offline(
    managed: Managed, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A broken, a full and a read-only disk (LogDirFailureChannel); KAFKA_STORAGE_ERROR until a restart."""
    async with managed.opened() as logs:
        failed, other = await with_logs(logs)
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwritev", failing(number))
            with pytest.raises(LogWriteError) as raised:
                append(logs, ORDERS)
        assert logs.report_failure(ORDERS, raised.value)
        assert logs.report_failure(ORDERS, raised.value)

        check_that_one_is_offline(managed, logs, failed, other)
        with pytest.raises(OfflineLogError, match=os.strerror(number)):
            await logs.create(ORDERS, TOPIC_ID)
        with pytest.raises(OfflineLogError):
            await logs.delete(ORDERS)
    assert [(path / CLEAN_SHUTDOWN).exists() for path in (failed.path, other.path)] == [False, True]


async def test_a_refused_batch_is_no_failure_of_the_disk(managed: Managed) -> None:
    """A client's mistake."""
    async with managed.opened() as logs:
        await with_logs(logs)

        assert not logs.report_failure(ORDERS, RefusedAppendError(ErrorCode.INVALID_RECORD, "no key"))
        assert managed.failures == []


async def test_a_failed_fsync_takes_the_directory_offline(managed: Managed, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never repeated: the kernel may have dropped the pages. All callers that wait for it get the error."""
    async with managed.opened() as logs:
        failed, other = await with_logs(logs)
        append(logs, ORDERS)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", failing(errno.EIO))
            found = await asyncio.gather(logs.flush(ORDERS), logs.flush(ORDERS), return_exceptions=True)

        assert [type(error) for error in found] == [OfflineLogError] * 2
        check_that_one_is_offline(managed, logs, failed, other)


async def test_a_cold_read_that_fails_takes_the_directory_offline(
    managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A consumer reads on a thread of the disk what is not cached; its connection is closed (FileRecords.writeTo)."""
    async with managed.opened() as logs:
        failed, other = await with_logs(logs)
        append(logs, ORDERS, 2)
        opened = logs.log(ORDERS)
        assert opened is not None
        part = opened.log.locate(0, 1_000).slice_for(partial(logs.read_slice, ORDERS))
        assert part.run is not None
        read = partial(part.file.read_blocking, part.length, part.offset)
        assert await part.run(read) == part.file.read_blocking(part.length, part.offset)
        with monkeypatch.context() as patched:
            patched.setattr(os, "pread", failing(errno.EIO))
            with pytest.raises(SliceUnreadable, match=os.strerror(errno.EIO)):
                await part.run(read)

        check_that_one_is_offline(managed, logs, failed, other)
        with pytest.raises(SliceUnreadable):
            await part.run(read)


async def test_a_read_of_what_is_truncated_in_the_meantime_is_no_failure_of_the_disk(managed: Managed) -> None:
    """The rest of the response cannot be sent; the file of a deleted segment is read to its end (FileRecords.writeTo)."""
    async with managed.opened() as logs:
        opened = await logs.create(ORDERS, TOPIC_ID)
        append(logs, ORDERS, 20)
        run = partial(logs.read_slice, ORDERS)
        cut, deleted = opened.log.locate(0, 100_000).slice_for(run), opened.log.locate(19, 1_000).slice_for(run)
        opened.truncate_to(1)

        with pytest.raises(SliceUnreadable, match="the file was truncated"):
            await run(partial(cut.file.read_blocking, 100, cut.offset + cut.length))
        assert len(await run(partial(deleted.file.read_blocking, deleted.length, deleted.offset))) == deleted.length
        assert managed.failures == []


async def test_a_log_is_created_on_another_disk_when_the_first_one_fails(
    managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LogManager.getOrCreateLog tries the next directory."""
    async with managed.opened() as logs:
        original = Path.mkdir

        def mkdir(path: Path, *arguments: Any, **named: Any) -> None:
            if path.parent == managed.directories[0]:
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))
            original(path, *arguments, **named)

        monkeypatch.setattr(Path, "mkdir", mkdir)
        await logs.create(ORDERS, TOPIC_ID)

        assert [failure.path for failure in managed.failures] == [managed.directories[0]]
        assert logs.directory(ORDERS) is logs.directories[1]


async def test_a_log_that_may_be_on_a_disk_that_is_not_mounted_is_not_created_again(managed: Managed) -> None:
    """Its leader would lose the records; a new partition cannot be there (LogManager.getOrCreateLog, isNew)."""
    managed.directories[0].write_text("")
    async with managed.opened() as logs:
        with pytest.raises(OfflineLogError, match=r"may be in .*, which is offline: Failed to create folder"):
            await logs.create(ORDERS, TOPIC_ID)
        assert await logs.create(ORDERS, TOPIC_ID, is_new=True) is not None


async def test_a_partition_without_a_log_on_the_failed_disk_is_created_on_another_one(managed: Managed) -> None:
    """The logs of a directory that failed later are known."""
    async with managed.opened() as logs:
        await with_logs(logs)
        logs.report_failure(ORDERS, OSError(errno.EIO, "broken"))

        assert await logs.create(TopicPartition("other", 0), TOPIC_ID) is not None


async def test_a_directory_that_cannot_be_used_at_the_start_is_offline(managed: Managed) -> None:
    """A file in its place, as a disk that is not mounted may leave it."""
    managed.directories[0].write_text("")

    async with managed.opened() as logs:
        await logs.create(ORDERS, TOPIC_ID, is_new=True)
        assert [failure.path for failure in managed.failures] == [managed.directories[0]]
        assert logs.directory(ORDERS) is logs.directories[1]


async def test_a_log_that_the_disk_cannot_read_takes_its_directory_offline_at_the_start(
    managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unlike one whose content is wrong."""
    async with managed.killed() as logs:
        failed, other = await with_logs(logs)
        for some_partition in PARTITIONS:
            append(logs, some_partition)
    original = os.pread
    names = {(failed.path / "orders-0" / "00000000000000000000.log").stat().st_ino}

    def pread(descriptor: int, size: int, offset: int) -> bytes:
        if os.fstat(descriptor).st_ino in names:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return original(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", pread)
    async with managed.opened() as logs:
        assert [failure.path for failure in managed.failures] == [failed.path]
        assert logs.offline_reason(ORDERS) is not None
        assert len(managed.failures[0].partitions) == 2
        assert {some_partition for some_partition, _, _ in logs.online_logs()} == {
            some_partition for some_partition in PARTITIONS if (other.path / str(some_partition)).is_dir()
        }


async def test_a_checkpoint_that_cannot_be_written_takes_the_directory_offline(
    managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a disk that nothing is appended to is noticed within seconds."""
    managed.settings = LogManagerSettings(high_watermark_interval_ms=1)
    async with managed.opened() as logs:
        failed, other = await with_logs(logs)
        running = asyncio.ensure_future(logs.run())
        original = Path.replace

        def replace(path: Path, target: Path) -> Path:
            if path.parent == failed.path:
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))
            return original(path, target)

        monkeypatch.setattr(Path, "replace", replace)
        await until(lambda: not failed.is_online())
        check_that_one_is_offline(managed, logs, failed, other)
        assert not running.done()
        running.cancel()
        await asyncio.wait([running])


async def test_without_any_directory_the_process_ends(managed: Managed) -> None:
    """LogManager.handleLogDirFailure halts; the error names each disk and what to do."""
    logs = managed.new()
    await logs.open_all()
    running = asyncio.ensure_future(logs.run())
    await asyncio.sleep(0)
    for number, directory in enumerate(logs.directories):
        logs.fail(directory, OSError(errno.EIO, f"broken {number}"))

    with pytest.raises(NoLogDirectoryError, match=r"Check the disks and restart the broker\. .*broken 0; .*broken 1"):
        await running
    await logs.close()
    for path in managed.directories:
        assert not (path / CLEAN_SHUTDOWN).exists()


async def test_a_broker_without_a_usable_directory_does_not_start(managed: Managed) -> None:
    """As at any other time."""
    for path in managed.directories:
        path.write_text("")

    with pytest.raises(NoLogDirectoryError, match="All log directories have failed"):
        await managed.new().open_all()
