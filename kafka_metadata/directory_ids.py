"""Ids of log directories with a special meaning. Source: DirectoryId of Kafka (KIP-858)."""

from collections.abc import Iterable
from uuid import UUID

MIGRATING_DIRECTORY = UUID(int=0)
"""Directory of a replica that is older than directory assignments, metadata.version 3.7-IV2 (`DirectoryId.MIGRATING`)."""
UNASSIGNED_DIRECTORY = UUID(int=1)
"""Directory of a replica whose broker has not reported one yet (`DirectoryId.UNASSIGNED`)."""
LOST_DIRECTORY = UUID(int=2)
"""Directory of a replica whose broker has lost it (`DirectoryId.LOST`)."""
LAST_RESERVED_DIRECTORY = UUID(int=99)
"""Kafka reserves the first hundred ids of directories (`DirectoryId.reserved`)."""

_SIGN = 1 << 63


def is_reserved(directory: UUID) -> bool:
    """Whether a directory's id has a special meaning, so that no real directory has it.

    >>> is_reserved(LOST_DIRECTORY), is_reserved(UUID(int=100))
    (True, False)
    """
    return directory <= LAST_RESERVED_DIRECTORY


def sorted_directories(directories: Iterable[UUID]) -> tuple[UUID, ...]:
    """Return directory ids in Kafka's order, which compares the two halves as signed numbers (Uuid.compareTo).

    >>> [id.int >> 127 for id in sorted_directories([UUID(int=0), UUID(int=1 << 127)])]
    [1, 0]
    """
    return tuple(sorted(directories, key=lambda uuid: ((uuid.int >> 64) ^ _SIGN, (uuid.int & (2 * _SIGN - 1)) ^ _SIGN)))
