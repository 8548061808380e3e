"""Image of a cluster's metadata: the state that its records make. Source: MetadataImage and its parts in Kafka.

An entry of the image is the record that a snapshot has for it (`records`), so that nothing of it is lost, tagged fields of later versions
included. An image never changes: `replay` returns the next one, which shares with it what is the same.
"""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_metadata.metadata_versions import ELR_VERSION, METADATA_VERSION
from kafka_metadata.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    QuotaEntityPart,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    UserScramCredentialRecord,
)


class ConfigResource(NamedTuple):
    """Resource of configs. `type` is a number of ResourceType, or one that is unknown here. The default of all brokers has the name ''."""

    type: int
    name: str


QuotaEntity = frozenset[tuple[str, str | None]]
"""Entity of client quotas: its types and names. A name of None is the default of the type."""


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic and its partitions by number."""

    record: TopicRecord
    partitions: Mapping[int, PartitionRecord] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.record.name

    @property
    def topic_id(self) -> uuid.UUID:
        """The topic's id."""
        return self.record.topic_id


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """All metadata of a cluster. Mappings have the order in which their entries came."""

    features: Mapping[str, FeatureLevelRecord] = field(default_factory=dict)
    """Finalized levels by name, metadata.version included; kraft.version is not metadata, but the quorum's."""
    brokers: Mapping[int, RegisterBrokerRecord] = field(default_factory=dict)
    controllers: Mapping[int, RegisterControllerRecord] = field(default_factory=dict)
    topics: Mapping[uuid.UUID, TopicImage] = field(default_factory=dict)
    topic_ids: Mapping[str, uuid.UUID] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, ConfigRecord]] = field(default_factory=dict)
    client_quotas: Mapping[QuotaEntity, Mapping[str, ClientQuotaRecord]] = field(default_factory=dict)
    producer_ids: ProducerIdsRecord | None = None
    """The first free producer id; the broker of its last block is not kept (-1)."""
    acls: Mapping[uuid.UUID, AccessControlEntryRecord] = field(default_factory=dict)
    scram_credentials: Mapping[tuple[int, str], UserScramCredentialRecord] = field(default_factory=dict)
    """By mechanism and user."""
    delegation_tokens: Mapping[str, DelegationTokenRecord] = field(default_factory=dict)
    zk_migration_state: int | None = None
    """Last state of a migration from ZooKeeper in the log; snapshots do not have it, as in Kafka 4."""

    @property
    def metadata_version(self) -> int | None:
        """Level of metadata.version; None before the first record of it."""
        level = self.features.get(METADATA_VERSION)
        return None if level is None else level.feature_level

    @property
    def is_elr_enabled(self) -> bool:
        """Whether the cluster has eligible leader replicas (KIP-966)."""
        return ELR_VERSION in self.features

    def topic(self, name: str) -> TopicImage | None:
        """Return a topic by name."""
        topic_id = self.topic_ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def config_values(self, resource_type: int, name: str) -> dict[str, str]:
        """Return the configs of a resource."""
        found = self.configs.get(ConfigResource(resource_type, name), {})
        return {key: record.value for key, record in found.items() if record.value is not None}


def quota_entity(parts: Iterable[QuotaEntityPart]) -> QuotaEntity:
    """Return the entity of a quota record."""
    return frozenset((part.entity_type, part.entity_name) for part in parts)
