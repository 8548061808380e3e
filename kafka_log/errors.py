"""Errors of a log and of the files next to it."""


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


class InvalidAppendError(LogError):
    """Batches that may not be appended: malformed, out of order, too large, or with a wrong checksum or epoch."""


class OffsetOutOfRangeError(LogError):
    """An offset below the log's start or above its end."""


class UnreadableFileError(LogError):
    """A small file of state (checkpoint, properties, quorum-state) that cannot be parsed, or has an unsupported version."""


class FolderLockedError(LogError):
    """A data folder that another process uses."""
