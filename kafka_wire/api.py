"""Kafka's api keys, and the two tables of what Steward serves as a controller and calls towards brokers.

A test holds the keys to the schema tables. Left out: what a request does; that is its handler's business.
"""

from enum import IntEnum

from kafka_wire.schema import Versions


class ApiKey(IntEnum):
    """Which request a frame carries (int16 at its very start)."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92

    @property
    def message(self) -> str:
        """The stem of the message names: `LeaderAndIsr` of `LeaderAndIsrRequest` and `LeaderAndIsrResponse`."""
        return "".join(word.capitalize() for word in self.name.split("_"))


# What the controller answers itself in ZooKeeper mode, with the versions of Kafka 3.9.2. Everything else is relayed.
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

# What the controller asks of brokers. The lowest versions are those of inter.broker.protocol.version 2.6 (seen on the wire).
CALLED: dict[ApiKey, Versions] = {
    ApiKey.API_VERSIONS: Versions(0, 4),
    ApiKey.LEADER_AND_ISR: Versions(4, 7),
    ApiKey.STOP_REPLICA: Versions(3, 4),
    ApiKey.UPDATE_METADATA: Versions(6, 8),
    ApiKey.DESCRIBE_CONFIGS: Versions(1, 4),
    ApiKey.DESCRIBE_LOG_DIRS: Versions(1, 4),
}
