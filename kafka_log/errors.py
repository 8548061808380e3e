"""Errors of a log and of the files next to it."""

from collections.abc import Sequence

from kafka_wire import ErrorCode


class LogError(Exception):
    """A log, or a file next to it, that cannot be read or written as requested."""


class LogWriteError(LogError):
    """A failed write, such as on a full disk. The log has the content that it had before, and the write may be repeated."""


class FlushFailedError(LogError):
    """A failed fsync. It must not be repeated: the kernel may drop the pages that it failed to write and report success next time.

    The process has to exit; after a restart, recovery reads what the disk has.
    """


class CorruptLogError(LogError):
    """Damage that a crash during a write does not explain, so that opening the log might lose records that were acknowledged."""


class UnsupportedFormatError(LogError):
    """A log with messages of a format that is not supported. It is left as it is, and the partition is offline."""


class InvalidAppendError(LogError):
    """Batches that may not be appended: malformed, out of order, too large, or with a wrong checksum or epoch."""


class RefusedAppendError(InvalidAppendError):
    """Batches that a leader refuses, with the error code of the protocol.

    `record_errors` has the index in its batch, and the reason, of each record that is at fault.
    """

    def __init__(self, error_code: ErrorCode, message: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.record_errors = tuple(record_errors)


class OffsetOutOfRangeError(LogError):
    """An offset below the log's start or above its end."""


class UnreadableFileError(LogError):
    """A small file of state (checkpoint, properties, quorum-state) that cannot be parsed, or has an unsupported version."""


class ClosedSegmentError(LogError):
    """A segment that its log removed while another thread read it, by a truncation or a deletion: what was read is gone."""


class FolderLockedError(LogError):
    """A data folder that another process uses."""
