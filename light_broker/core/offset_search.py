"""Special timestamps of ListOffsets. Source: Kafka's ListOffsetsRequest and ReplicaManager.timestampMinSupportedVersion."""

from collections.abc import Mapping
from enum import IntEnum


class SpecialTimestamp(IntEnum):
    """A negative timestamp, which has a meaning of its own. The last three differ from the others only with tiered storage."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


_FIRST_VERSIONS: Mapping[int, int] = {
    SpecialTimestamp.LATEST: 1,
    SpecialTimestamp.EARLIEST: 1,
    SpecialTimestamp.MAX_TIMESTAMP: 7,
    SpecialTimestamp.EARLIEST_LOCAL: 8,
    SpecialTimestamp.LATEST_TIERED: 9,
    SpecialTimestamp.EARLIEST_PENDING_UPLOAD: 11,
}


def is_known_timestamp(timestamp_ms: int, version: int) -> bool:
    """Return whether a version of ListOffsets knows a timestamp.

    >>> is_known_timestamp(1_700_000_000_000, 1), is_known_timestamp(-3, 6), is_known_timestamp(-3, 7), is_known_timestamp(-7, 11)
    (True, False, True, False)
    """
    return timestamp_ms >= 0 or version >= _FIRST_VERSIONS.get(timestamp_ms, version + 1)
