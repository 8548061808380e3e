"""File names in a partition's folder.

    00000000000000000042.log | .index | .timeindex | .txnindex | .snapshot     segment from offset 42
    00000000000000000042-0000000007.checkpoint                                  snapshot of the records before offset 42, epoch 7

In the data folder above them: the lock, checkpoint files with an offset for each partition, and the mark of a clean shutdown.
Source: Kafka's LogFileUtils, Snapshots and LogManager.
"""

import re
from typing import NamedTuple

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
PRODUCERS_SUFFIX = ".snapshot"
SEGMENT_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, PRODUCERS_SUFFIX)

DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

CHECKPOINT_SUFFIX = ".checkpoint"
PARTIAL_CHECKPOINT_SUFFIX = f"{CHECKPOINT_SUFFIX}.part"
DELETED_CHECKPOINT_SUFFIX = f"{CHECKPOINT_SUFFIX}{DELETED_SUFFIX}"

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
QUORUM_STATE = "quorum-state"
META_PROPERTIES = "meta.properties"
LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
CLUSTER_METADATA_FOLDER = f"{CLUSTER_METADATA_TOPIC}-0"
"""Folder of the quorum's log in a data folder."""

_SEGMENT = re.compile(r"(\d{20})(\.\w+)")
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})(?:-[^.]*)?(\.checkpoint(?:\.part|\.deleted)?)")


class SnapshotId(NamedTuple):
    """End offset of a snapshot, exclusive, and the epoch of the last record in it.

    It names files, so it is ordered by offset first, as their names are. `Position` of the quorum has the same fields and is ordered by
    epoch first, as logs are compared in elections; the quorum also uses it for ends of logs, and it is not part of a file format.
    """

    offset: int
    epoch: int


BOOTSTRAP_SNAPSHOT = SnapshotId(0, 0)
"""Written by formatting; it is not sent to followers."""


def segment_name(base_offset: int, suffix: str = LOG_SUFFIX) -> str:
    """Return the name of a segment's file.

    >>> segment_name(42)
    '00000000000000000042.log'
    """
    return f"{base_offset:020d}{suffix}"


def segment_of(name: str) -> tuple[int, str] | None:
    """Return base offset and suffix from the name of a segment's file, None for any other file.

    >>> segment_of("00000000000000000042.index")
    (42, '.index')
    """
    found = _SEGMENT.fullmatch(name)
    return (int(found[1]), found[2]) if found and found[2] in SEGMENT_SUFFIXES else None


def snapshot_name(snapshot: SnapshotId, suffix: str = CHECKPOINT_SUFFIX) -> str:
    """Return the name of a snapshot's file.

    >>> snapshot_name(SnapshotId(42, 7))
    '00000000000000000042-0000000007.checkpoint'
    """
    return f"{snapshot.offset:020d}-{snapshot.epoch:010d}{suffix}"


def snapshot_of(name: str) -> tuple[SnapshotId, str] | None:
    """Return id and suffix from the name of a snapshot's file, None for any other file. A partial one has a random part."""
    found = _SNAPSHOT.fullmatch(name)
    return (SnapshotId(int(found[1]), int(found[2])), found[3]) if found else None
