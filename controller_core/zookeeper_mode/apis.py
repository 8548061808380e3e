"""APIs of the controller in ZooKeeper mode: those that it serves, and those that it calls on brokers."""

from kafka_wire import ApiKey, schema

SERVED: dict[ApiKey, schema.Versions] = {
    ApiKey.API_VERSIONS: schema.Versions(0, 4),
    ApiKey.METADATA: schema.Versions(0, 12),
    ApiKey.DESCRIBE_CLUSTER: schema.Versions(0, 1),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: schema.Versions(0, 0),
    ApiKey.CREATE_TOPICS: schema.Versions(0, 7),
    ApiKey.DELETE_TOPICS: schema.Versions(0, 6),
    ApiKey.DESCRIBE_ACLS: schema.Versions(0, 3),
    ApiKey.CREATE_ACLS: schema.Versions(0, 3),
    ApiKey.DELETE_ACLS: schema.Versions(0, 3),
    ApiKey.CREATE_PARTITIONS: schema.Versions(0, 3),
    ApiKey.ELECT_LEADERS: schema.Versions(0, 2),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: schema.Versions(0, 0),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: schema.Versions(0, 0),
    ApiKey.DESCRIBE_CONFIGS: schema.Versions(0, 4),
    ApiKey.ALTER_CONFIGS: schema.Versions(0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: schema.Versions(0, 1),
    ApiKey.LIST_GROUPS: schema.Versions(0, 5),
    ApiKey.LIST_TRANSACTIONS: schema.Versions(0, 1),
    ApiKey.DESCRIBE_LOG_DIRS: schema.Versions(0, 4),
    ApiKey.ALTER_REPLICA_LOG_DIRS: schema.Versions(0, 2),
    ApiKey.DESCRIBE_PRODUCERS: schema.Versions(0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: schema.Versions(0, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: schema.Versions(0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: schema.Versions(0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: schema.Versions(0, 0),
    ApiKey.UPDATE_FEATURES: schema.Versions(0, 1),
    ApiKey.CONTROLLED_SHUTDOWN: schema.Versions(0, 3),
    ApiKey.ALTER_PARTITION: schema.Versions(0, 3),
    ApiKey.ALLOCATE_PRODUCER_IDS: schema.Versions(0, 0),
    ApiKey.UNREGISTER_BROKER: schema.Versions(0, 0),
}
"""APIs that the controller serves, with the versions of Kafka 3.9.2. All others are relayed to a broker."""

NOT_ADVERTISED = frozenset({ApiKey.DESCRIBE_TOPIC_PARTITIONS})
"""Served APIs that ApiVersions does not list. Brokers in ZooKeeper mode do not serve this one (KIP-966). If it were listed, a client
would describe a topic differently depending on the node that it asks: without eligible leader replicas (by Metadata), or with an empty
list of them."""

CALLED: dict[ApiKey, schema.Versions] = {
    ApiKey.API_VERSIONS: schema.Versions(0, 4),
    ApiKey.LEADER_AND_ISR: schema.Versions(4, 7),
    ApiKey.STOP_REPLICA: schema.Versions(3, 4),
    ApiKey.UPDATE_METADATA: schema.Versions(6, 8),
    ApiKey.DESCRIBE_CONFIGS: schema.Versions(1, 4),
    ApiKey.DESCRIBE_LOG_DIRS: schema.Versions(1, 4),
}
"""APIs that the controller calls on brokers. The lowest versions are those of inter.broker.protocol.version 2.6, as observed."""
