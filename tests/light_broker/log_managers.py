"""Log managers on folders of a test."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kafka_log.files.partition_settings import PartitionSettings, broker_log_settings
from kafka_wire.records import Record, encode_batch
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.log_jobs import LogManagerSettings
from light_broker.shell.logs.directory import FailedDirectory
from light_broker.shell.logs.manager import LogManager
from tests.kafka_log.judge import NOW_MS

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
NODE_ID = 1
TOPIC_ID = uuid.UUID(int=0x1234567890)
ORDERS = TopicPartition("orders", 0)
SMALL = PartitionSettings(log=broker_log_settings(segment_bytes=1_000, index_interval_bytes=100))


@dataclass
class Managed:
    """A log manager with what surrounds it: a clock, high watermarks, and the settings of topics."""

    directories: list[Path]
    settings: LogManagerSettings = field(default_factory=LogManagerSettings)
    topics: dict[str, PartitionSettings] = field(default_factory=dict)
    high_watermarks: dict[TopicPartition, int] = field(default_factory=dict)
    failures: list[FailedDirectory] = field(default_factory=list)
    node_id: int = NODE_ID
    cluster_id: str = CLUSTER_ID
    now_ms: int = NOW_MS

    def new(self) -> LogManager:
        """Return a manager that has opened nothing."""
        return LogManager(
            self.directories,
            self.settings,
            cluster_id=self.cluster_id,
            node_id=self.node_id,
            partition_settings=lambda topic: self.topics.get(topic, SMALL),
            on_failed_directory=self.failures.append,
            high_watermarks=lambda: self.high_watermarks,
            clock=lambda: self.now_ms / 1_000,
        )

    @contextlib.asynccontextmanager
    async def opened(self, *, broker_epoch: int = 7) -> AsyncIterator[LogManager]:
        """Yield an open manager, which is closed cleanly."""
        logs = self.new()
        await logs.open_all()
        try:
            yield logs
        finally:
            await logs.close(broker_epoch)

    @contextlib.asynccontextmanager
    async def killed(self) -> AsyncIterator[LogManager]:
        """Yield an open manager, whose files are only closed, as when its process is killed."""
        logs = self.new()
        await logs.open_all()
        try:
            yield logs
        finally:
            for directory in logs.directories:
                if directory.is_online():
                    directory.release()


def append(
    logs: LogManager,
    partition: TopicPartition,
    count: int = 1,
    *,
    keys: Mapping[int, str] | None = None,
    size_bytes: int = 100,
    timestamp_ms: int = NOW_MS,
) -> int:
    """Append batches of one record each; return the log's end."""
    opened = logs.log(partition)
    assert opened is not None
    for number in range(count):
        key = None if keys is None else keys[number].encode()
        opened.append_as_leader(encode_batch([Record(0, timestamp_ms, key, bytes(size_bytes))]), 0)
    return opened.end_offset
