"""A flush that runs in another thread while the log goes on."""

import os
from collections.abc import Sequence
from pathlib import Path

from kafka_log.errors import FlushFailedError, LogWriteError
from kafka_log.files.durable import flush_file, flush_folder
from kafka_log.files.segment import Segment


class PendingFlush:
    """A flush of what a log has now. `run` writes it to the disk; then the owner calls `Log.complete`."""

    def __init__(self, active: Segment, end_offset: int, closed: Sequence[Segment] = ()) -> None:
        """Prepare the flush of the active segment, and of closed ones that were not flushed yet."""
        self.end_offset = end_offset
        """Lowered when the log is truncated in the meantime."""
        self.error: FlushFailedError | None = None
        self.done = False
        self.closed = tuple(closed)
        self._folder = active.path.parent
        # A segment may be deleted while another thread flushes it.
        self._descriptors = [(segment.duplicate_descriptor(), segment.path) for segment in (*closed, active)]

    def run(self) -> None:
        """Write to the disk. Raises FlushFailedError."""
        try:
            for descriptor, path in self._descriptors:
                flush_file(descriptor, path)
            for segment in self.closed:
                _flush_if_present(segment.offset_index.path)
                _flush_if_present(segment.time_index.path)
            if self.closed:
                # The entries of the segments that were created
                _flush_folder_if_present(self._folder)
        except FlushFailedError as error:
            self.error = error
            raise
        finally:
            for descriptor, _ in self._descriptors:
                os.close(descriptor)
            self.done = True


def _flush_if_present(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return  # the segment was deleted in the meantime, or the folder renamed
    except OSError as error:
        raise FlushFailedError(f"Failed to open {path} to flush it: {error.strerror}.") from error
    try:
        flush_file(descriptor, path)
    finally:
        os.close(descriptor)


def _flush_folder_if_present(folder: Path) -> None:
    try:
        flush_folder(folder)
    except LogWriteError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise FlushFailedError(str(error)) from error
