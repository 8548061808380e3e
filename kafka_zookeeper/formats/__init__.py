"""Formats of znodes: one module for each kind of znode.

All public names are also available here, except those of `partition_columns`: it loads numpy, which a light broker does not need.

Decoding raises FormatError and no other exception, for any bytes. Encoding produces the bytes that Kafka 3.9.2 writes.
"""

from kafka_zookeeper.formats.acls import (
    AclEntry,
    AclResource,
    decode_acl_change,
    decode_acls,
    decode_extended_acl_change,
    encode_acl_change,
    encode_acls,
)
from kafka_zookeeper.formats.admin import (
    decode_preferred_replica_election,
    decode_reassignment,
    encode_preferred_replica_election,
    encode_reassignment,
)
from kafka_zookeeper.formats.brokers import (
    BrokerRegistration,
    Endpoint,
    VersionRange,
    decode_broker,
    encode_broker,
)
from kafka_zookeeper.formats.cluster_id import decode_cluster_id, encode_cluster_id
from kafka_zookeeper.formats.configs import (
    DEFAULT_ENTITY,
    EntityType,
    decode_config,
    decode_config_change,
    desanitize,
    encode_config,
    encode_config_change,
    sanitize,
)
from kafka_zookeeper.formats.controller import (
    NO_CONTROLLER,
    ControllerRegistration,
    controller_id,
    decode_controller,
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
)
from kafka_zookeeper.formats.documents import FormatError, TopicPartition
from kafka_zookeeper.formats.feature import FeatureStatus, FinalizedFeatures, decode_features, encode_features
from kafka_zookeeper.formats.notifications import (
    decode_isr_change,
    decode_log_dir_event,
    encode_isr_change,
    encode_log_dir_event,
)
from kafka_zookeeper.formats.partition_states import (
    RECOVERED,
    RECOVERING,
    PartitionState,
    decode_partition_state,
    encode_partition_state,
)
from kafka_zookeeper.formats.producer_ids import ProducerIdBlock, decode_producer_id_block, encode_producer_id_block
from kafka_zookeeper.formats.topics import (
    TopicAssignment,
    decode_topic,
    decode_topic_id,
    encode_topic,
    encode_topic_id,
)

__all__ = [
    "DEFAULT_ENTITY",
    "NO_CONTROLLER",
    "RECOVERED",
    "RECOVERING",
    "AclEntry",
    "AclResource",
    "BrokerRegistration",
    "ControllerRegistration",
    "Endpoint",
    "EntityType",
    "FeatureStatus",
    "FinalizedFeatures",
    "FormatError",
    "PartitionState",
    "ProducerIdBlock",
    "TopicAssignment",
    "TopicPartition",
    "VersionRange",
    "controller_id",
    "decode_acl_change",
    "decode_acls",
    "decode_broker",
    "decode_cluster_id",
    "decode_config",
    "decode_config_change",
    "decode_controller",
    "decode_controller_epoch",
    "decode_extended_acl_change",
    "decode_features",
    "decode_isr_change",
    "decode_log_dir_event",
    "decode_partition_state",
    "decode_preferred_replica_election",
    "decode_producer_id_block",
    "decode_reassignment",
    "decode_topic",
    "decode_topic_id",
    "desanitize",
    "encode_acl_change",
    "encode_acls",
    "encode_broker",
    "encode_cluster_id",
    "encode_config",
    "encode_config_change",
    "encode_controller",
    "encode_controller_epoch",
    "encode_features",
    "encode_isr_change",
    "encode_log_dir_event",
    "encode_partition_state",
    "encode_preferred_replica_election",
    "encode_producer_id_block",
    "encode_reassignment",
    "encode_topic",
    "encode_topic_id",
    "sanitize",
]
