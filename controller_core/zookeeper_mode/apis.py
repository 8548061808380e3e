"""APIs of the controller in ZooKeeper mode: those that it serves, and those that it calls on brokers."""

from kafka_wire import ApiKey
from kafka_wire.schema import Versions

SERVED: dict[ApiKey, Versions] = {
    ApiKey.API_VERSIONS: Versions(0, 4),
    ApiKey.METADATA: Versions(0, 12),
    ApiKey.DESCRIBE_CLUSTER: Versions(0, 1),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Versions(0, 0),
    ApiKey.CREATE_TOPICS: Versions(0, 7),
    ApiKey.DELETE_TOPICS: Versions(0, 6),
    ApiKey.DESCRIBE_ACLS: Versions(0, 3),
    ApiKey.CREATE_ACLS: Versions(0, 3),
    ApiKey.DELETE_ACLS: Versions(0, 3),
    ApiKey.CREATE_PARTITIONS: Versions(0, 3),
    ApiKey.ELECT_LEADERS: Versions(0, 2),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Versions(0, 0),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Versions(0, 0),
    ApiKey.DESCRIBE_CONFIGS: Versions(0, 4),
    ApiKey.ALTER_CONFIGS: Versions(0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Versions(0, 1),
    ApiKey.LIST_GROUPS: Versions(0, 5),
    ApiKey.LIST_TRANSACTIONS: Versions(0, 1),
    ApiKey.DESCRIBE_LOG_DIRS: Versions(0, 4),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Versions(0, 2),
    ApiKey.DESCRIBE_PRODUCERS: Versions(0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Versions(0, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: Versions(0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Versions(0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Versions(0, 0),
    ApiKey.UPDATE_FEATURES: Versions(0, 1),
    ApiKey.CONTROLLED_SHUTDOWN: Versions(0, 3),
    ApiKey.ALTER_PARTITION: Versions(0, 3),
    ApiKey.ALLOCATE_PRODUCER_IDS: Versions(0, 0),
    ApiKey.UNREGISTER_BROKER: Versions(0, 0),
}
"""APIs that the controller serves, with the versions of Kafka 3.9.2. All others are relayed to a broker."""

NOT_ADVERTISED = frozenset({ApiKey.DESCRIBE_TOPIC_PARTITIONS})
"""Served APIs that ApiVersions does not list. Brokers in ZooKeeper mode do not serve this one (KIP-966). If it were listed, a client
would describe a topic differently depending on the node that it asks: without eligible leader replicas (by Metadata), or with an empty
list of them."""

CALLED: dict[ApiKey, Versions] = {
    ApiKey.API_VERSIONS: Versions(0, 4),
    ApiKey.LEADER_AND_ISR: Versions(4, 7),
    ApiKey.STOP_REPLICA: Versions(3, 4),
    ApiKey.UPDATE_METADATA: Versions(6, 8),
    ApiKey.DESCRIBE_CONFIGS: Versions(1, 4),
    ApiKey.DESCRIBE_LOG_DIRS: Versions(1, 4),
}
"""APIs that the controller calls on brokers. The lowest versions are those of inter.broker.protocol.version 2.6, as observed."""
