"""A flush that runs in another thread while the log goes on."""

import os

from kafka_log.errors import FlushFailedError
from kafka_log.files.durable import flush_file
from kafka_log.files.segment import Segment


class PendingFlush:
    """A flush of what a log has now. `run` writes it to the disk; then the owner calls `Log.complete`."""

    def __init__(self, segment: Segment, end_offset: int) -> None:
        self.end_offset = end_offset
        """Lowered when the log is truncated in the meantime."""
        self.error: FlushFailedError | None = None
        self.done = False
        self._path = segment.path
        # The segment may be deleted while another thread flushes it.
        self._descriptor = segment.duplicate_descriptor()

    def run(self) -> None:
        """Write to the disk. Raises FlushFailedError."""
        try:
            flush_file(self._descriptor, self._path)
        except FlushFailedError as error:
            self.error = error
            raise
        finally:
            os.close(self._descriptor)
            self.done = True
