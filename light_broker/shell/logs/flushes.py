"""Flushes of logs that go on while they are written to the disk. Callers during a flush share the next one."""

from kafka_log.files.partition_log import PartitionLog
from light_broker.shell.logs.coalesced import Coalesced
from light_broker.shell.logs.directory import LogDirectory


class LogFlushes:
    """The flushes of the current logs."""

    def __init__(self) -> None:
        self._shared: dict[PartitionLog, Coalesced] = {}

    async def flush(self, directory: LogDirectory, opened: PartitionLog) -> int:
        """Return the offset up to which a log is on the disk, at least its current end.

        Raises OfflineLogError, and FlushFailedError as the log.
        """

        async def flush() -> None:
            directory.check_online()
            pending = opened.begin_flush()
            await directory.run(pending.run)
            opened.complete(pending)

        await self._shared.setdefault(opened, Coalesced(flush)).run()
        return opened.log.flushed_offset

    def forget(self, opened: PartitionLog) -> None:
        """Note that a log is not used any more."""
        self._shared.pop(opened, None)
