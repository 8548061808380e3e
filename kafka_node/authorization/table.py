"""Operations that APIs need, as in Kafka's brokers, where Kafka refuses a request as a whole. Each process adds its own rows.

APIs of which Kafka refuses a part, such as one topic of several, have no row here: each process decides whether it judges them
element by element or refuses the whole request.

Source: KafkaApis of Kafka 3.9.2.
"""

from collections.abc import Mapping

from kafka_node.authorization.acl import Operation as Op
from kafka_node.authorization.acl import ResourceType as Of
from kafka_node.authorization.needs import Either, Need, Never, On, OnAny, Row, on_cluster
from kafka_wire import ApiKey, Body, ErrorCode

Table = Mapping[ApiKey, Row]

OPEN: Row = ()
"""No caller is refused: the API shows and changes nothing that ACLs protect."""
NEWER = Never(
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "its needs are defined by a newer Kafka version: send it to a broker"
)
"""Need of an API without a row."""

_GROUP_MEMBER: Row = (On(Op.READ, Of.GROUP, "group_id"),)


def _init_producer_id(_: int, body: Body) -> tuple[Need, ...]:
    if body["transactional_id"] is not None:
        return (On(Op.WRITE, Of.TRANSACTIONAL_ID, "transactional_id"),)
    return (Either((OnAny(Op.WRITE, Of.TOPIC), on_cluster(Op.IDEMPOTENT_WRITE))),)


WHOLE_REQUESTS: Table = {
    ApiKey.API_VERSIONS: OPEN,
    ApiKey.ELECT_LEADERS: (on_cluster(Op.ALTER),),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (on_cluster(Op.ALTER),),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (on_cluster(Op.DESCRIBE),),
    ApiKey.DESCRIBE_ACLS: (on_cluster(Op.DESCRIBE),),
    ApiKey.CREATE_ACLS: (on_cluster(Op.ALTER),),
    ApiKey.DELETE_ACLS: (on_cluster(Op.ALTER),),
    ApiKey.DESCRIBE_LOG_DIRS: (on_cluster(Op.DESCRIBE),),
    ApiKey.CONTROLLED_SHUTDOWN: (on_cluster(Op.CLUSTER_ACTION),),
    ApiKey.ALTER_PARTITION: (on_cluster(Op.CLUSTER_ACTION),),
    ApiKey.ALLOCATE_PRODUCER_IDS: (on_cluster(Op.CLUSTER_ACTION),),
    ApiKey.JOIN_GROUP: _GROUP_MEMBER,
    ApiKey.HEARTBEAT: _GROUP_MEMBER,
    ApiKey.LEAVE_GROUP: _GROUP_MEMBER,
    ApiKey.SYNC_GROUP: _GROUP_MEMBER,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.ADD_OFFSETS_TO_TXN: (
        On(Op.WRITE, Of.TRANSACTIONAL_ID, "transactional_id"),
        On(Op.READ, Of.GROUP, "group_id"),
    ),
    ApiKey.END_TXN: (On(Op.WRITE, Of.TRANSACTIONAL_ID, "transactional_id"),),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (on_cluster(Op.ALTER),),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (on_cluster(Op.DESCRIBE_CONFIGS),),
    ApiKey.ALTER_CLIENT_QUOTAS: (on_cluster(Op.ALTER_CONFIGS),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (on_cluster(Op.DESCRIBE),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (on_cluster(Op.ALTER),),
    ApiKey.DESCRIBE_QUORUM: (on_cluster(Op.DESCRIBE),),
    ApiKey.UPDATE_FEATURES: (on_cluster(Op.ALTER),),
    ApiKey.UNREGISTER_BROKER: (on_cluster(Op.ALTER),),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: OPEN,
    ApiKey.PUSH_TELEMETRY: OPEN,
    ApiKey.LIST_CONFIG_RESOURCES: (on_cluster(Op.DESCRIBE_CONFIGS),),
    ApiKey.ADD_RAFT_VOTER: (on_cluster(Op.ALTER),),
    ApiKey.REMOVE_RAFT_VOTER: (on_cluster(Op.ALTER),),
}
"""APIs whose needs are the same in every process."""


def needs_of(table: Table, key: ApiKey, version: int, body: Body) -> tuple[Need, ...]:
    """List all needs of a request; an API without a row is refused to all but super users."""
    row = table.get(key, (NEWER,))
    return row if isinstance(row, tuple) else row(version, body)
