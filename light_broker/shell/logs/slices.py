"""The logs of a broker a few at a time, so that an inspection of all of them does not block the event loop."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from kafka_log.files.partition_log import PartitionLog
from kafka_wire.topic_partition import TopicPartition
from light_broker.shell.logs.directory import LogDirectory

LOGS_PER_SLICE = 50
"""Logs that are inspected before the event loop serves others."""

ManagedLog = tuple[TopicPartition, LogDirectory, PartitionLog]


async def slices(logs: Sequence[ManagedLog]) -> AsyncIterator[list[ManagedLog]]:
    """Yield those of the logs that are still present, with a pause after each slice."""
    for start in range(0, len(logs), LOGS_PER_SLICE):
        yield [log for log in logs[start : start + LOGS_PER_SLICE] if is_present(*log)]
        await asyncio.sleep(0)


def is_present(partition: TopicPartition, directory: LogDirectory, opened: PartitionLog) -> bool:
    """Return whether a log was not deleted, and its directory did not fail."""
    return directory.is_online() and directory.logs.get(partition) is opened
