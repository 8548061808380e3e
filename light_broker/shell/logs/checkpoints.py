"""Checkpoint files of one log directory. The offsets are those of the moment in which a write begins.

Writes of one file never overlap, and callers that wait for it at the same time share one. Source: Kafka's LogManager, LogCleanerManager and
ReplicaManager.checkpointHighWatermarks.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from kafka_log.files.data_folder import (
    write_cleaned_offsets,
    write_high_watermarks,
    write_log_start_offsets,
    write_recovery_points,
)
from kafka_wire.topic_partition import TopicPartition
from light_broker.shell.logs.coalesced import Coalesced
from light_broker.shell.logs.directory import LogDirectory

Offsets = dict[TopicPartition, int]


class LogCheckpoints:
    """Writers of the files; each raises LogWriteError and FlushFailedError."""

    def __init__(self, directory: LogDirectory, high_watermarks: Callable[[], Mapping[TopicPartition, int]]) -> None:
        self._directory = directory
        self._known_high_watermarks = high_watermarks
        self.recovery_points = self._file(self._recovery_points, write_recovery_points)
        self.log_starts = self._file(self._log_starts, write_log_start_offsets)
        self.high_watermarks = self._file(self._high_watermarks, write_high_watermarks)
        self.cleaned = self._file(self._cleaned, write_cleaned_offsets)
        self.all = (self.recovery_points, self.log_starts, self.high_watermarks, self.cleaned)

    def _file(
        self, offsets: Callable[[], Offsets], write: Callable[[Path, Mapping[TopicPartition, int]], None]
    ) -> Coalesced:
        async def replace() -> None:
            current = offsets()
            await self._directory.run(lambda: write(self._directory.path, current))

        return Coalesced(replace)

    def _recovery_points(self) -> Offsets:
        return {partition: opened.log.flushed_offset for partition, opened in self._directory.logs.items()}

    def _log_starts(self) -> Offsets:
        """Return the starts of the logs that begin behind the start of their first segment."""
        found = {
            partition: opened.start_offset
            for partition, opened in self._directory.logs.items()
            if opened.start_offset > opened.log.segment_offsets[0]
        }
        return self._with_unreadable(self._directory.stored.log_starts, found)

    def _high_watermarks(self) -> Offsets:
        """Return the high watermarks; a log without a replica yet keeps that of the checkpoint."""
        known, stored = self._known_high_watermarks(), self._directory.stored.high_watermarks
        found = {partition: known.get(partition, stored.get(partition, 0)) for partition in self._directory.logs}
        return self._with_unreadable(stored, found)

    def _cleaned(self) -> Offsets:
        directory = self._directory
        current = directory.logs.keys() | directory.unreadable.keys()
        return {partition: at for partition, at in directory.stored.cleaned.items() if partition in current}

    def _with_unreadable(self, stored: Mapping[TopicPartition, int], found: Offsets) -> Offsets:
        """Keep the offsets of logs that cannot be opened: they may be repaired."""
        kept = {partition: stored[partition] for partition in self._directory.unreadable if partition in stored}
        return kept | found
