"""Names of partitions' folders in a log directory.

    orders-0                     log of partition 0 of the topic orders
    orders-0.<32 digits>-delete  log that is being deleted
    orders-0.<32 digits>-stray   log that no assignment explained; it stays
    orders-0.<32 digits>-future  copy of a log that Kafka was moving from another directory

Source: Kafka's LocalLog.
"""

import re
from dataclasses import dataclass
from enum import Enum

from kafka_wire.topic_partition import TopicPartition

MAX_NAME_BYTES = 255
"""Limit of file systems. A topic's name is cut where a suffix leaves no room for it."""

_NAME = re.compile(
    r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>[0-9]{1,10})(?:\.[^\s.]+(?P<kind>-delete|-stray|-future))?"
)


class FolderKind(Enum):
    """Purpose of a partition's folder; the value is the end of its name."""

    LOG = ""
    DELETED = "-delete"
    STRAY = "-stray"
    FUTURE = "-future"


@dataclass(frozen=True, slots=True)
class PartitionFolder:
    """A partition's folder by its name."""

    partition: TopicPartition
    kind: FolderKind = FolderKind.LOG


def removed_folder_name(partition: TopicPartition, kind: FolderKind, unique_id: str) -> str:
    """Return the name of a folder that is no log any more; `unique_id` has 32 digits, as the topic may be created again.

    >>> removed_folder_name(TopicPartition("orders", 0), FolderKind.DELETED, "0a")
    'orders-0.0a-delete'
    """
    topic, number = partition
    end = f"-{number}.{unique_id}{kind.value}"
    return topic[: MAX_NAME_BYTES - len(end)] + end


def folder_of(name: str) -> PartitionFolder | None:
    """Return what a folder's name denotes, None for a folder that is not a partition's.

    >>> folder_of("orders-0")
    PartitionFolder(partition=TopicPartition(topic='orders', partition=0), kind=<FolderKind.LOG: ''>)
    >>> folder_of("orders-0.0a-stray").kind
    <FolderKind.STRAY: '-stray'>
    >>> folder_of("lost+found") is None
    True
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return PartitionFolder(TopicPartition(found["topic"], int(found["partition"])), FolderKind(found["kind"] or ""))
