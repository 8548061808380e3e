"""Operations that each API of a controller in KRaft mode needs. An API without a row is refused to all but super users.

Requests that are judged by their content (tokens for another principal) have no needs here. Source: ControllerApis of Kafka 4.3.1.
"""

from kafka_node.authorization import acl, needs
from kafka_node.authorization.table import OPEN, WHOLE_REQUESTS, Table
from kafka_wire import ApiKey

_BETWEEN_NODES: needs.Row = (needs.on_cluster(acl.Operation.CLUSTER_ACTION),)

NEEDS: Table = {
    **WHOLE_REQUESTS,
    **dict.fromkeys(
        (
            *(ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH, ApiKey.FETCH, ApiKey.FETCH_SNAPSHOT),
            *(ApiKey.UPDATE_RAFT_VOTER, ApiKey.CONTROLLER_REGISTRATION, ApiKey.ENVELOPE),
            *(ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT, ApiKey.ASSIGN_REPLICAS_TO_DIRS),
        ),
        _BETWEEN_NODES,
    ),
    ApiKey.DESCRIBE_CLUSTER: OPEN,
    # Judged for each topic or resource by their handlers.
    ApiKey.CREATE_TOPICS: OPEN,
    ApiKey.DELETE_TOPICS: OPEN,
    ApiKey.CREATE_PARTITIONS: OPEN,
    ApiKey.ALTER_CONFIGS: OPEN,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: OPEN,
    ApiKey.DESCRIBE_CONFIGS: OPEN,
    ApiKey.CREATE_DELEGATION_TOKEN: OPEN,
    ApiKey.RENEW_DELEGATION_TOKEN: OPEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN: OPEN,
}
