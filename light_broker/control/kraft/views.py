"""The broker's view of a metadata image. Topics that did not change since the last view are shared with it. Pure.

Source: KRaftMetadataCache, BrokerRegistration.hasOnlineDir and FeaturesPublisher of Kafka.
"""

from collections.abc import Mapping
from uuid import UUID

from kafka_metadata.directory_ids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from kafka_metadata.image import MetadataImage, TopicImage
from kafka_metadata.metadata_log import MetadataLog
from kafka_metadata.metadata_versions import KRAFT_VERSION
from kafka_metadata.records import PartitionRecord, RegisterBrokerRecord
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.topic_names import is_internal
from light_broker.control.usable_configs import usable_configs
from light_broker.core.metadata_view import (
    BrokerView,
    ConfigResource,
    Endpoint,
    FinalizedFeatures,
    MetadataView,
    PartitionView,
    TopicView,
)

_WITHOUT_DIRECTORY = {UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY}
"""Directories of replicas of which it is not known that they are offline."""
_KINDS = frozenset(ConfigResourceType)

Directories = Mapping[int, tuple[UUID, ...]]
"""Online log directories by broker."""


class Views:
    """The view of the image that was seen last."""

    def __init__(self, cluster_id: str, broker_id: int) -> None:
        self.view = MetadataView(cluster_id)
        self._broker_id = broker_id
        self._image = MetadataImage()
        self._directories: Directories = {}

    def follow(self, log: MetadataLog, kraft_version: int) -> MetadataView:
        """Return the view of an image."""
        before, image, view = self._image, log.image, self.view
        brokers = view.brokers
        directories = self._directories
        if image.brokers is not before.brokers:
            brokers = {number: _broker(record) for number, record in image.brokers.items()}
            directories = {number: record.log_dirs for number, record in image.brokers.items()}
        topics = view.topics
        if image.topics is not before.topics or directories != self._directories:
            topics = self._topics(image, directories)
        configs = view.configs if image.configs is before.configs else self._configs(image)
        self.view = MetadataView(
            view.cluster_id,
            # Clients send the controller's requests to any broker, which forwards them.
            controller_id=self._broker_id,
            brokers=brokers,
            topics=topics,
            topic_names_by_id=view.topic_names_by_id
            if topics is view.topics
            else {topic.id: name for name, topic in topics.items()},
            configs=configs,
            features=self._features(image, log.end_offset - 1, kraft_version),
        )
        self._image, self._directories = image, directories
        return self.view

    def _features(self, image: MetadataImage, offset: int, kraft_version: int) -> FinalizedFeatures:
        """Return the feature levels; their epoch is the offset up to which the log was applied when they changed last."""
        levels = {name: record.feature_level for name, record in image.features.items()}
        if kraft_version:
            levels[KRAFT_VERSION] = kraft_version
        before = self.view.features
        return before if levels == before.levels else FinalizedFeatures(offset, levels)

    def _topics(self, image: MetadataImage, directories: Directories) -> dict[str, TopicView]:
        known, same_directories = self.view.topics, directories == self._directories
        topics = {}
        for topic_id, topic in image.topics.items():
            if same_directories and self._image.topics.get(topic_id) is topic:
                topics[topic.name] = known[topic.name]
            else:
                topics[topic.name] = _topic(topic, directories, known.get(topic.name))
        return topics

    def _configs(self, image: MetadataImage) -> dict[ConfigResource, Mapping[str, str]]:
        """Return the dynamic configs that this broker can use. Only those that changed are checked, and logged where they are not used."""
        found: dict[ConfigResource, Mapping[str, str]] = {}
        for key, records in image.configs.items():
            if key.type not in _KINDS:
                continue
            resource = ConfigResource(ConfigResourceType(key.type), key.name)
            if self._image.configs.get(key) is records:
                found[resource] = self.view.configs[resource]
            else:
                given = {name: record.value for name, record in records.items() if record.value is not None}
                found[resource] = usable_configs(resource, given)
        return found


def _topic(topic: TopicImage, directories: Directories, known: TopicView | None) -> TopicView:
    """Return a topic; the known one if it is the same."""
    numbers = range(max(topic.partitions, default=-1) + 1)
    partitions = tuple(_partition(topic.partitions[number], directories) for number in numbers)
    if known is not None and known.id == topic.topic_id and known.partitions == partitions:
        return known
    return TopicView(topic.name, topic.topic_id, partitions, is_internal(topic.name))


def _partition(record: PartitionRecord, directories: Directories) -> PartitionView:
    return PartitionView(
        record.replicas,
        record.isr,
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        elr=record.eligible_leader_replicas or (),
        last_known_elr=record.last_known_elr or (),
        offline_replicas=tuple(
            replica
            for replica, directory in zip(record.replicas, record.directories, strict=False)
            if not _is_online(directory, directories.get(replica, ()))
        ),
    )


def _is_online(directory: UUID, online: tuple[UUID, ...]) -> bool:
    """Whether a replica's directory may serve (DirectoryId.isOnline): brokers from before directories have none."""
    if directory in _WITHOUT_DIRECTORY or not online:
        return True
    return directory != LOST_DIRECTORY and directory in online


def _broker(record: RegisterBrokerRecord) -> BrokerView:
    endpoints = {endpoint.name: Endpoint(endpoint.host, endpoint.port) for endpoint in record.end_points}
    return BrokerView(
        record.broker_id,
        record.broker_epoch,
        record.rack,
        endpoints,
        is_fenced=record.fenced,
        is_shutting_down=record.in_controlled_shutdown,
    )
