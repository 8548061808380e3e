"""The next image while records are applied: each part is copied when it first changes."""

import uuid
from collections.abc import Mapping
from typing import Generic, TypeVar

from kafka_metadata.failures import MetadataError
from kafka_metadata.image import MetadataImage, TopicImage
from kafka_metadata.records import PartitionRecord, TopicRecord

K = TypeVar("K")
V = TypeVar("V")


class Part(Generic[K, V]):
    """A mapping of the image, copied when it first changes."""

    def __init__(self, base: Mapping[K, V]) -> None:
        self._values = base
        self._copy: dict[K, V] | None = None

    def get(self, key: K) -> V | None:
        """Return a value, None if there is none."""
        return self._values.get(key)

    def values(self) -> Mapping[K, V]:
        """Return the mapping so far."""
        return self._values

    def changed(self) -> dict[K, V]:
        """Return the copy, which may be changed."""
        if self._copy is None:
            self._values = self._copy = dict(self._values)
        return self._copy


class Topics:
    """Topics of the draft. Partitions of a topic are copied once, however many of them change."""

    def __init__(self, image: MetadataImage) -> None:
        self._topics = Part(image.topics)
        self._ids = Part(image.topic_ids)
        self._partitions: dict[uuid.UUID, dict[int, PartitionRecord]] = {}

    def add(self, record: TopicRecord) -> None:
        """Add a topic without partitions."""
        # The image of a new topic has the partitions that follow: of a snapshot's hundred thousand, none is made a second time.
        partitions = self._partitions[record.topic_id] = {}
        self._topics.changed()[record.topic_id] = TopicImage(record, partitions)
        self._ids.changed()[record.name] = record.topic_id

    def remove(self, topic_id: uuid.UUID) -> str:
        """Remove a topic; return its name. Raises MetadataError."""
        topic = self._topics.get(topic_id)
        if topic is None:
            raise MetadataError(f"there is no topic with the id {topic_id}")
        del self._topics.changed()[topic_id]
        self._partitions.pop(topic_id, None)
        if self._ids.get(topic.name) == topic_id:
            del self._ids.changed()[topic.name]
        return topic.name

    def partitions(self, topic_id: uuid.UUID) -> dict[int, PartitionRecord]:
        """Return the partitions of a topic, which may be changed. Raises MetadataError."""
        found = self._partitions.get(topic_id)
        if found is None:
            topic = self._topics.get(topic_id)
            if topic is None:
                raise MetadataError(f"there is no topic with the id {topic_id}")
            found = self._partitions[topic_id] = dict(topic.partitions)
        return found

    def id_of(self, name: str) -> uuid.UUID:
        """Return the id of a topic. Raises MetadataError."""
        topic_id = self._ids.get(name)
        if topic_id is None:
            raise MetadataError(f"there is no topic {name!r}")
        return topic_id

    def all_ids(self) -> list[uuid.UUID]:
        """Return the ids of all topics."""
        return list(self._topics.values())

    def result(self) -> tuple[Mapping[uuid.UUID, TopicImage], Mapping[str, uuid.UUID]]:
        """Return the topics by id, and the ids by name."""
        for topic_id, partitions in self._partitions.items():
            topic = self._topics.values()[topic_id]
            if topic.partitions is not partitions:
                self._topics.changed()[topic_id] = TopicImage(topic.record, partitions)
        return self._topics.values(), self._ids.values()


class Draft:
    """The next image."""

    def __init__(self, image: MetadataImage) -> None:
        self.features = Part(image.features)
        self.brokers = Part(image.brokers)
        self.controllers = Part(image.controllers)
        self.topics = Topics(image)
        self.configs = Part(image.configs)
        self.client_quotas = Part(image.client_quotas)
        self.producer_ids = image.producer_ids
        self.acls = Part(image.acls)
        self.scram_credentials = Part(image.scram_credentials)
        self.delegation_tokens = Part(image.delegation_tokens)
        self.zk_migration_state = image.zk_migration_state

    def result(self) -> MetadataImage:
        """Return the image. The draft must not be changed afterwards."""
        topics, topic_ids = self.topics.result()
        return MetadataImage(
            features=self.features.values(),
            brokers=self.brokers.values(),
            controllers=self.controllers.values(),
            topics=topics,
            topic_ids=topic_ids,
            configs=self.configs.values(),
            client_quotas=self.client_quotas.values(),
            producer_ids=self.producer_ids,
            acls=self.acls.values(),
            scram_credentials=self.scram_credentials.values(),
            delegation_tokens=self.delegation_tokens.values(),
            zk_migration_state=self.zk_migration_state,
        )
