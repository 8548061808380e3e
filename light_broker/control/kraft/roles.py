"""Roles of a broker's partitions between two images of the metadata: what it leads, follows, stops and deletes. Pure.

Source: TopicsDelta.localChanges and ReplicaManager.applyDelta of Kafka.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from kafka_metadata.directory_ids import UNASSIGNED_DIRECTORY
from kafka_metadata.image import MetadataImage, TopicImage
from kafka_metadata.records import PartitionRecord
from kafka_wire.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Role:
    """A partition that the broker leads or follows."""

    partition: TopicPartition
    topic_id: UUID
    leads: bool
    is_new: bool
    """Whether no directory of the broker can have a log of it yet."""


@dataclass(frozen=True, slots=True)
class RoleChanges:
    """What changes, in this order: logs of a deleted topic are gone before one of the same name gets its logs."""

    deleted: tuple[TopicPartition, ...]
    """Partitions that this broker has no replica of any more."""
    taken: tuple[Role, ...]
    """Partitions with another state, those that it leads first."""


def role_changes(before: MetadataImage, after: MetadataImage, broker_id: int) -> RoleChanges:
    """Return the changes between two images."""
    if before.topics is after.topics:
        return RoleChanges((), ())
    deleted = [
        partition
        for topic_id, topic in before.topics.items()
        if after.topics.get(topic_id) is not topic
        for partition in _lost(topic, after.topics.get(topic_id), broker_id)
    ]
    taken = [
        role
        for topic_id, topic in after.topics.items()
        if before.topics.get(topic_id) is not topic
        for role in _taken(before.topics.get(topic_id), topic, broker_id)
    ]
    return RoleChanges(tuple(deleted), tuple(sorted(taken, key=lambda role: not role.leads)))


def _lost(before: TopicImage, after: TopicImage | None, broker_id: int) -> Iterator[TopicPartition]:
    for number, record in before.partitions.items():
        kept = None if after is None else after.partitions.get(number)
        if broker_id in record.replicas and (kept is None or broker_id not in kept.replicas):
            yield TopicPartition(before.name, number)


def _taken(before: TopicImage | None, after: TopicImage, broker_id: int) -> Iterator[Role]:
    for number, record in after.partitions.items():
        known = None if before is None else before.partitions.get(number)
        if broker_id in record.replicas and record != known:
            partition = TopicPartition(after.name, number)
            yield Role(partition, after.topic_id, record.leader == broker_id, _is_new(record, broker_id))


def _is_new(record: PartitionRecord, broker_id: int) -> bool:
    return directory_of(record, broker_id) == UNASSIGNED_DIRECTORY


def directory_of(record: PartitionRecord, broker_id: int) -> UUID | None:
    """Return the directory that the metadata has for a broker's replica; None where it has no directories."""
    by_replica = dict(zip(record.replicas, record.directories, strict=False))
    return by_replica.get(broker_id)


def stray_logs(
    image: MetadataImage, logs: Iterable[tuple[TopicPartition, UUID | None]], broker_id: int
) -> list[TopicPartition]:
    """Return the logs that no assignment explains: of a topic that was deleted or moved away while the broker was stopped.

    `logs` are those in the broker's directories, with the ids of their topics. Source: LogManager.isStrayKraftReplica.
    """
    return [partition for partition, topic_id in logs if _is_stray(image, partition, topic_id, broker_id)]


def _is_stray(image: MetadataImage, partition: TopicPartition, topic_id: UUID | None, broker_id: int) -> bool:
    topic = image.topic(partition.topic)
    if topic is None or topic_id not in {None, topic.topic_id}:
        return True
    record = topic.partitions.get(partition.partition)
    return record is None or broker_id not in record.replicas
