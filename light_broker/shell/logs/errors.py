"""Errors of the log manager, and which errors of a log are those of its disk."""

from kafka_log.errors import CorruptLogError, FlushFailedError, LogWriteError, UnreadableFileError
from kafka_wire.file_slice import SliceUnreadable


class OfflineLogError(Exception):
    """A log in a directory that failed, or a log that cannot be opened: KAFKA_STORAGE_ERROR until the broker is restarted."""


class NoLogDirectoryError(Exception):
    """The last log directory failed. The process must end."""


class WrongFolderError(Exception):
    """A log directory of another cluster or node, or two that disagree. The process must not start."""


class WrongTopicIdError(Exception):
    """A log of another topic with the same name, which was deleted: INCONSISTENT_TOPIC_ID."""


def is_disk_error(error: BaseException) -> bool:
    """Return whether an error takes the whole log directory offline; another one concerns the content of one log.

    A failed read is a CorruptLogError, an UnreadableFileError or a SliceUnreadable with the OSError as its cause.
    """
    if isinstance(error, CorruptLogError | UnreadableFileError | SliceUnreadable):
        return isinstance(error.__cause__, OSError)
    return isinstance(error, LogWriteError | FlushFailedError | OSError)
