"""Snapshots of the metadata, which each controller writes for itself, in slices between other work.

An image never changes, so that its snapshot needs no copy. Source: SnapshotGenerator of Kafka.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol

from controller_core.quorum.batches import Position
from controller_core.shell.kraft.controller import KRaftController
from controller_core.shell.quorum.settings import MetadataLogSettings
from kafka_log.errors import LogError
from kafka_metadata.failures import MetadataError
from kafka_metadata.metadata_log import MetadataLog
from kafka_metadata.snapshot import snapshot_values

log = logging.getLogger(__name__)


class SnapshotNode(Protocol):
    """The node of the quorum, as snapshots use it."""

    @property
    def now_ms(self) -> int:
        """A time that advances evenly."""

    async def write_snapshot(self, end: Position, values: Iterable[bytes], last_timestamp_ms: int) -> int | None:
        """Write a snapshot of the committed records before an offset; return its size in bytes, None if none is needed."""


class Snapshots:
    """Decides when to write a snapshot, and writes one at a time."""

    def __init__(self, node: SnapshotNode, controller: KRaftController, settings: MetadataLogSettings) -> None:
        self._node = node
        self._controller = controller
        self._settings = settings
        self._new_bytes = 0
        self._last_ms = node.now_ms
        self._writing: asyncio.Task[None] | None = None
        controller.on_advanced.append(self._advanced)

    async def close(self) -> None:
        """Stop writing; an unfinished snapshot leaves nothing."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)

    def _advanced(self, size_bytes: int) -> None:
        self._new_bytes += size_bytes
        reason = self._reason()
        committed = self._controller.committed
        is_whole = committed.transaction is None and committed.image.metadata_version is not None
        if reason is not None and is_whole and (self._writing is None or self._writing.done()):
            self._new_bytes, self._last_ms = 0, self._node.now_ms
            self._writing = asyncio.create_task(self._write(committed, reason), name="snapshot")

    def _reason(self) -> str | None:
        """Return why a snapshot is due; None if it is not."""
        if self._new_bytes >= self._settings.max_record_bytes_between_snapshots:
            return "size of the log since the last snapshot"
        interval_ms = self._settings.max_snapshot_interval_ms
        return "time since the last snapshot" if 0 < interval_ms <= self._node.now_ms - self._last_ms else None

    async def _write(self, committed: MetadataLog, reason: str) -> None:
        end = Position(committed.end_offset, committed.epoch)
        extra = {"end_offset": end.offset, "reason": reason}
        try:
            values = snapshot_values(committed.image)
            size_bytes = await self._node.write_snapshot(end, values, committed.last_timestamp_ms)
        except (LogError, OSError, MetadataError) as error:
            log.error("Failed to write a snapshot; trying again later", extra={**extra, "error": str(error)})
            return
        if size_bytes is not None:
            self._controller.metrics.loader.snapshot_written(size_bytes, self._node.now_ms)
            log.info("Wrote a snapshot", extra={**extra, "bytes": size_bytes})
