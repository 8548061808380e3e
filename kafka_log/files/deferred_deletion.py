"""Segments that were taken out of a log: renamed to `.deleted`, and deleted after a delay.

A read that began before may still use the open file in the meantime (file.delete.delay.ms). After a crash, opening the log deletes what has
this suffix. Source: Kafka's LocalLog.deleteSegmentFiles.
"""

import logging
from collections import deque
from pathlib import Path

from kafka_log.errors import LogWriteError
from kafka_log.files.segment import Segment
from kafka_log.format.names import DELETED_SUFFIX, PRODUCERS_SUFFIX, SEGMENT_SUFFIXES, segment_name

log = logging.getLogger(__name__)

DEFAULT_DELAY_MS = 60_000
"""Default of file.delete.delay.ms."""


class DeferredDeletion:
    """Segments of one log that wait for their deletion."""

    def __init__(self, folder: Path, delay_ms: int = DEFAULT_DELAY_MS) -> None:
        self._folder = folder
        self.delay_ms = delay_ms
        """file.delete.delay.ms"""
        self._waiting: deque[tuple[int, Segment]] = deque()

    def add(self, segments: list[Segment], now_ms: int, *, replaced_offset: int | None = None) -> None:
        """Rename the segments' files, without the producer snapshot of a segment that is replaced by another one.

        Raises LogWriteError; files with their old names then stay, and the log must be opened again.
        """
        self._waiting += ((now_ms + self.delay_ms, segment) for segment in segments)
        try:
            for segment in segments:
                for path in self._paths(segment):
                    is_kept = path.suffix == PRODUCERS_SUFFIX and segment.base_offset == replaced_offset
                    if path.exists() and not is_kept:
                        path.rename(path.with_name(path.name + DELETED_SUFFIX))
        except OSError as error:
            raise LogWriteError(f"Failed to rename files in {self._folder}: {error.strerror}") from error

    def is_due(self, now_ms: int) -> bool:
        """Return whether the delay of a segment is over."""
        return bool(self._waiting) and self._waiting[0][0] <= now_ms

    def run(self, now_ms: int) -> int:
        """Delete the segments whose delay is over; return how many."""
        deleted = 0
        while self._waiting and self._waiting[0][0] <= now_ms:
            _, segment = self._waiting.popleft()
            segment.close()
            for path in self._paths(segment):
                self._delete(path.with_name(path.name + DELETED_SUFFIX))
            deleted += 1
        return deleted

    def close(self) -> None:
        """Close the files; opening the log again deletes them."""
        for _, segment in self._waiting:
            segment.close()
        self._waiting.clear()

    def _paths(self, segment: Segment) -> list[Path]:
        # The log is first: opening the log deletes the other files of a segment without it.
        return [self._folder / segment_name(segment.base_offset, suffix) for suffix in SEGMENT_SUFFIXES]

    def _delete(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("Failed to delete file of a segment", extra={"path": str(path), "error": str(error)})
