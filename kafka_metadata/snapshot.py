"""Records of a snapshot, in the order of Kafka's images. Source: MetadataImage.write and the parts of it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

from kafka_metadata.directory_ids import MIGRATING_DIRECTORY
from kafka_metadata.failures import MetadataError
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_versions import DIRECTORIES_SINCE, METADATA_VERSION, version_name
from kafka_metadata.record_codec import encode_record
from kafka_metadata.records import FeatureLevelRecord, MetadataRecord, PartitionRecord


def snapshot_values(image: MetadataImage) -> Iterator[bytes]:
    """Yield the values of a snapshot's records. Raises MetadataError if the image has no metadata version, or it cannot hold all."""
    if image.metadata_version is None:
        raise MetadataError("A snapshot cannot be written: there is no metadata.version.")
    for record in snapshot_records(image):
        yield encode_record(record, image.metadata_version)


def snapshot_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Yield the records of a snapshot: metadata.version first, because the reader needs it for the others."""
    return _records(image, _partition)


def image_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Yield the same records for a reader of this process, which takes partitions as the image has them."""
    return _records(image, _partition_in_memory)


def _records(
    image: MetadataImage, convert: Callable[[PartitionRecord, MetadataImage], PartitionRecord]
) -> Iterator[MetadataRecord]:
    yield from _features(image)
    yield from image.brokers.values()
    yield from image.controllers.values()
    for topic in image.topics.values():
        yield topic.record
        for partition in topic.partitions.values():
            yield convert(partition, image)
    yield from chain.from_iterable(configs.values() for configs in image.configs.values())
    yield from chain.from_iterable(quotas.values() for quotas in image.client_quotas.values())
    if image.producer_ids is not None and image.producer_ids.next_producer_id >= 0:
        yield image.producer_ids
    yield from image.acls.values()
    yield from image.scram_credentials.values()
    yield from image.delegation_tokens.values()


def _features(image: MetadataImage) -> Iterator[FeatureLevelRecord]:
    if METADATA_VERSION in image.features:
        yield image.features[METADATA_VERSION]
    yield from (record for name, record in image.features.items() if name != METADATA_VERSION)


def _partition(partition: PartitionRecord, image: MetadataImage) -> PartitionRecord:
    """Return the record of a partition: without empty lists, lists of a feature that is off, and directories of a later version."""
    version = image.metadata_version or 0
    directories = partition.directories
    if version < DIRECTORIES_SINCE:
        if any(directory != MIGRATING_DIRECTORY for directory in directories):
            raise MetadataError(
                f"A snapshot cannot be written: metadata.version {version_name(version)} has no directories of replicas."
            )
        directories = ()
    elr = partition.eligible_leader_replicas if image.is_elr_enabled else None
    last_known_elr = partition.last_known_elr if image.is_elr_enabled else None
    # A snapshot has a million of them: `dataclasses.replace` would take a fourth of the time.
    return PartitionRecord(
        partition.partition_id,
        partition.topic_id,
        partition.replicas,
        partition.isr,
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        partition.removing_replicas,
        partition.adding_replicas,
        partition.leader_recovery_state,
        directories,
        elr or None,
        last_known_elr or None,
        unknown_tags=partition.unknown_tags,
    )


def _partition_in_memory(partition: PartitionRecord, image: MetadataImage) -> PartitionRecord:
    """Return a partition without lists of a feature that is off."""
    if image.is_elr_enabled or not (partition.eligible_leader_replicas or partition.last_known_elr):
        return partition
    return replace(partition, eligible_leader_replicas=(), last_known_elr=())
