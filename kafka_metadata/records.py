"""Values of metadata records: a class for each of the 26 types of Kafka 4.3, by Kafka's names.

Names of the fields are those of Kafka's schemas (tested); arrays are tuples. A value has the fields of all versions;
`record_codec` chooses the version. The entries of an image are such values too: the records that a snapshot has for them.
"""

import uuid
from dataclasses import dataclass, field
from enum import IntEnum

from kafka_wire.unknown_tags import UnknownTags

Ids = tuple[int, ...]
Uuids = tuple[uuid.UUID, ...]

NO_LEADER_CHANGE = -2
"""Leader of a PartitionChangeRecord that keeps the leader and its epoch; any other leader raises the epoch (LeaderConstants)."""

NO_RECOVERY_CHANGE = -1
"""State of a PartitionChangeRecord that keeps the leader recovery state (LeaderRecoveryState.NO_CHANGE)."""

SECURITY_PROTOCOL_IDS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""SecurityProtocol.id by name."""


class LeaderRecoveryState(IntEnum):
    """Whether a partition's leader was elected uncleanly and has not recovered."""

    RECOVERED = 0
    RECOVERING = 1


class ResourceType(IntEnum):
    """Types of resources that have configs in the log (ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRecord:
    """A record. `unknown_tags` are tagged fields that this program does not know, kept as they were read."""

    unknown_tags: UnknownTags = ()


@dataclass(frozen=True, slots=True)
class EndPoint:
    """A listener of a broker or controller. `security_protocol` is SecurityProtocol.id."""

    name: str
    host: str
    port: int
    security_protocol: int


@dataclass(frozen=True, slots=True)
class SupportedFeature:
    """Levels of a feature that a node supports."""

    name: str
    min_supported_version: int
    max_supported_version: int


@dataclass(frozen=True, slots=True)
class QuotaEntityPart:
    """A part of the entity of a client quota; a name of None is the default entity of the type."""

    entity_type: str
    entity_name: str | None


@dataclass(frozen=True, slots=True)
class RegisterBrokerRecord(MetadataRecord):
    """Registration of a broker. `cordoned_log_dirs` of None: unknown."""

    broker_id: int
    incarnation_id: uuid.UUID
    broker_epoch: int
    end_points: tuple[EndPoint, ...]
    features: tuple[SupportedFeature, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: Uuids = ()
    cordoned_log_dirs: Uuids | None = None
    is_migrating_zk_broker: bool = False


@dataclass(frozen=True, slots=True)
class UnregisterBrokerRecord(MetadataRecord):
    """End of a registration."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class TopicRecord(MetadataRecord):
    """A new topic."""

    name: str
    topic_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class PartitionRecord(MetadataRecord):
    """Whole state of a partition."""

    partition_id: int
    topic_id: uuid.UUID
    replicas: Ids
    isr: Ids
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    removing_replicas: Ids = ()
    adding_replicas: Ids = ()
    leader_recovery_state: int = LeaderRecoveryState.RECOVERED
    directories: Uuids = ()
    eligible_leader_replicas: Ids | None = None
    last_known_elr: Ids | None = None


@dataclass(frozen=True, slots=True)
class PartitionChangeRecord(MetadataRecord):
    """Change of a partition; None and the constants of this module keep what was. Each change raises the partition epoch by 1."""

    partition_id: int
    topic_id: uuid.UUID
    isr: Ids | None = None
    leader: int = NO_LEADER_CHANGE
    replicas: Ids | None = None
    removing_replicas: Ids | None = None
    adding_replicas: Ids | None = None
    leader_recovery_state: int = NO_RECOVERY_CHANGE
    directories: Uuids | None = None
    eligible_leader_replicas: Ids | None = None
    last_known_elr: Ids | None = None


@dataclass(frozen=True, slots=True)
class ConfigRecord(MetadataRecord):
    """A config; a value of None removes it."""

    resource_type: int
    resource_name: str
    name: str
    value: str | None = field(repr=False)
    """Not printed: it may be a password."""


@dataclass(frozen=True, slots=True)
class FenceBrokerRecord(MetadataRecord):
    """Fencing of a broker, of old logs; BrokerRegistrationChangeRecord has replaced it."""

    id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class UnfenceBrokerRecord(MetadataRecord):
    """Unfencing of a broker, of old logs; BrokerRegistrationChangeRecord has replaced it."""

    id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class RemoveTopicRecord(MetadataRecord):
    """Removal of a topic, its partitions and its configs."""

    topic_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class DelegationTokenRecord(MetadataRecord):
    """A delegation token; the times are milliseconds since 1970."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int
    token_id: str


@dataclass(frozen=True, slots=True)
class UserScramCredentialRecord(MetadataRecord):
    """A SCRAM credential. `mechanism` is ScramMechanism.type_id."""

    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        """Return the user and mechanism without the keys, so that no log contains them."""
        return f"UserScramCredentialRecord(name={self.name!r}, mechanism={self.mechanism})"


@dataclass(frozen=True, slots=True)
class FeatureLevelRecord(MetadataRecord):
    """Finalized level of a feature; 0 removes it."""

    name: str
    feature_level: int


@dataclass(frozen=True, slots=True)
class ClientQuotaRecord(MetadataRecord):
    """A quota of an entity, or its removal."""

    entity: tuple[QuotaEntityPart, ...]
    key: str
    value: float
    remove: bool = False


@dataclass(frozen=True, slots=True)
class ProducerIdsRecord(MetadataRecord):
    """A block of producer ids for a broker, by the first id that is still free."""

    broker_id: int
    broker_epoch: int
    next_producer_id: int


class FencingChange(IntEnum):
    """Changes of `fenced` (BrokerRegistrationFencingChange)."""

    UNFENCE = -1
    NONE = 0
    FENCE = 1


@dataclass(frozen=True, slots=True)
class BrokerRegistrationChangeRecord(MetadataRecord):
    """Change of a registration. No `log_dirs`, and `cordoned_log_dirs` of None: unchanged. `in_controlled_shutdown` is 1 or unchanged."""

    broker_id: int
    broker_epoch: int
    fenced: int = FencingChange.NONE
    in_controlled_shutdown: int = 0
    log_dirs: Uuids = ()
    cordoned_log_dirs: Uuids | None = None


@dataclass(frozen=True, slots=True)
class AccessControlEntryRecord(MetadataRecord):
    """An ACL, with the numbers of kafka_node.authorization.acl."""

    id: uuid.UUID
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(frozen=True, slots=True)
class RemoveAccessControlEntryRecord(MetadataRecord):
    """Removal of an ACL."""

    id: uuid.UUID


@dataclass(frozen=True, slots=True)
class NoOpRecord(MetadataRecord):
    """A record that raises the log's end and changes nothing."""


@dataclass(frozen=True, slots=True)
class ZkMigrationStateRecord(MetadataRecord):
    """State of a migration from ZooKeeper, of old logs."""

    zk_migration_state: int


@dataclass(frozen=True, slots=True)
class RemoveUserScramCredentialRecord(MetadataRecord):
    """Removal of a SCRAM credential."""

    name: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class BeginTransactionRecord(MetadataRecord):
    """Begin of a metadata transaction (KIP-868)."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class EndTransactionRecord(MetadataRecord):
    """End of a transaction: its records count from here on."""


@dataclass(frozen=True, slots=True)
class AbortTransactionRecord(MetadataRecord):
    """End of a transaction whose records do not count."""

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RemoveDelegationTokenRecord(MetadataRecord):
    """Removal of a delegation token."""

    token_id: str


@dataclass(frozen=True, slots=True)
class RegisterControllerRecord(MetadataRecord):
    """Registration of a controller (KIP-919)."""

    controller_id: int
    incarnation_id: uuid.UUID
    zk_migration_ready: bool
    end_points: tuple[EndPoint, ...]
    features: tuple[SupportedFeature, ...]


@dataclass(frozen=True, slots=True)
class ClearElrRecord(MetadataRecord):
    """Removal of the eligible leader replicas of a topic, or of all topics if the name is empty."""

    topic_name: str = ""


RECORD_CLASSES: tuple[type[MetadataRecord], ...] = (
    RegisterBrokerRecord, UnregisterBrokerRecord, TopicRecord, PartitionRecord, ConfigRecord, PartitionChangeRecord, FenceBrokerRecord,
    UnfenceBrokerRecord, RemoveTopicRecord, DelegationTokenRecord, UserScramCredentialRecord, FeatureLevelRecord, ClientQuotaRecord,
    ProducerIdsRecord, BrokerRegistrationChangeRecord, AccessControlEntryRecord, RemoveAccessControlEntryRecord, NoOpRecord,
    ZkMigrationStateRecord, RemoveUserScramCredentialRecord, BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord,
    RemoveDelegationTokenRecord, RegisterControllerRecord, ClearElrRecord,
)  # fmt: skip
"""All types, in the order of their API keys."""
