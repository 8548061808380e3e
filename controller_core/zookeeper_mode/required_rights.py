"""Operations that each API needs in ZooKeeper mode, where the controller answers a request itself or relays it to a broker.

Served requests that are judged topic by topic have no row of needs here: their screens judge them (screens). A relayed request goes
out under the controller's own name, so all that a broker would judge is judged here; a broker answers part of a request, or leaves out
of its answer what its caller may not see, where here the whole is refused.

Source: KafkaApis of Kafka 3.9.2. Leaves out the requests between servers, which are served or refused.
"""

from kafka_node.authorization.acl import Operation as Op
from kafka_node.authorization.acl import ResourceType as Of
from kafka_node.authorization.needs import Either, Need, Never, On, OnAll, OnName, Row, on_cluster
from kafka_node.authorization.table import NEWER, OPEN, WHOLE_REQUESTS, Table
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode

SCREENED: Row = ()
"""Each topic is judged by itself: see screens."""

ADD_PARTITIONS_OF_BROKERS_FROM = 4
"""AddPartitionsToTxn: from this version on, it is asked by brokers for their clients (KIP-890)."""
GROUP_KEY, TRANSACTION_KEY = 0, 1
"""FindCoordinator's key types; any other is asked for by brokers."""
TOPIC_RESOURCE, GROUP_RESOURCE = 2, 32
"""ConfigResource.Type."""
CONSUMER = -1
"""Who fetches as a replica gives its broker id."""

_TOKEN = Never(
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    "a token would belong to the controller that passes the request on: ask a broker",
)


def _fetch(_: int, body: Body) -> tuple[Need, ...]:
    replica = max(body["replica_id"], body["replica_state"]["replica_id"])
    if replica != CONSUMER:
        return (on_cluster(Op.CLUSTER_ACTION),)
    if body["session_id"]:
        # A session holds topics that earlier requests named: who asks for all of them each time is judged each time.
        return (Never(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "what a fetch session holds cannot be judged"),)
    return (On(Op.READ, Of.TOPIC, "topics.topic", "topics.topic_id"),)


def _offset_fetch(_: int, body: Body) -> tuple[Need, ...]:
    groups = body["groups"]
    if not groups:
        needs: tuple[Need, ...] = (
            On(Op.DESCRIBE, Of.GROUP, "group_id"),
            On(Op.DESCRIBE, Of.TOPIC, "topics.name"),
        )
    else:
        needs = (
            On(Op.DESCRIBE, Of.GROUP, "groups.group_id"),
            On(Op.DESCRIBE, Of.TOPIC, "groups.topics.name", "groups.topics.topic_id"),
        )
    of_all = body["topics"] is None if not groups else any(group["topics"] is None for group in groups)
    return (*needs, OnAll(Op.DESCRIBE, Of.TOPIC)) if of_all else needs


def _find_coordinator(_: int, body: Body) -> tuple[Need, ...]:
    of = {GROUP_KEY: Of.GROUP, TRANSACTION_KEY: Of.TRANSACTIONAL_ID}.get(body["key_type"])
    if of is None:
        return (on_cluster(Op.CLUSTER_ACTION),)
    keys = body["coordinator_keys"] or [body["key"]]
    return tuple(OnName(Op.DESCRIBE, of, key) for key in keys)


def _add_partitions(version: int, _: Body) -> tuple[Need, ...]:
    if version >= ADD_PARTITIONS_OF_BROKERS_FROM:
        return (on_cluster(Op.CLUSTER_ACTION),)
    return (
        On(Op.WRITE, Of.TRANSACTIONAL_ID, "v3_and_below_transactional_id"),
        On(Op.WRITE, Of.TOPIC, "v3_and_below_topics.name"),
    )


def _configs(operation: Op) -> Row:
    def needs(_: int, body: Body) -> tuple[Need, ...]:
        return tuple(
            OnName(operation, of, resource["resource_name"]) if of is not None else on_cluster(operation)
            for resource in body["resources"]
            for of in [{TOPIC_RESOURCE: Of.TOPIC, GROUP_RESOURCE: Of.GROUP}.get(resource["resource_type"])]
        )

    return needs


def _consumer_group_heartbeat(_: int, body: Body) -> tuple[Need, ...]:
    needs: tuple[Need, ...] = (
        On(Op.READ, Of.GROUP, "group_id"),
        On(Op.DESCRIBE, Of.TOPIC, "subscribed_topic_names"),
    )
    return (*needs, OnAll(Op.DESCRIBE, Of.TOPIC)) if body["subscribed_topic_regex"] else needs


NEEDS: Table = {
    **WHOLE_REQUESTS,
    ApiKey.DESCRIBE_CLUSTER: OPEN,
    ApiKey.METADATA: SCREENED,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: SCREENED,
    ApiKey.CREATE_TOPICS: SCREENED,
    ApiKey.DELETE_TOPICS: SCREENED,
    ApiKey.CREATE_PARTITIONS: SCREENED,
    ApiKey.DESCRIBE_CONFIGS: _configs(Op.DESCRIBE_CONFIGS),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _configs(Op.ALTER_CONFIGS),
    ApiKey.PRODUCE: (
        On(Op.WRITE, Of.TRANSACTIONAL_ID, "transactional_id"),
        On(Op.WRITE, Of.TOPIC, "topic_data.name", "topic_data.topic_id"),
    ),
    ApiKey.FETCH: _fetch,
    ApiKey.LIST_OFFSETS: (On(Op.DESCRIBE, Of.TOPIC, "topics.name"),),
    ApiKey.OFFSET_COMMIT: (
        On(Op.READ, Of.GROUP, "group_id"),
        On(Op.READ, Of.TOPIC, "topics.name", "topics.topic_id"),
    ),
    ApiKey.OFFSET_FETCH: _offset_fetch,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.DESCRIBE_GROUPS: (On(Op.DESCRIBE, Of.GROUP, "groups"),),
    ApiKey.LIST_GROUPS: OPEN,  # the controller's own answer is an empty list
    # Whoever comes here has proven who it is, or cannot: a broker's opinion of it would count for nothing here.
    ApiKey.SASL_HANDSHAKE: (Never(ErrorCode.ILLEGAL_SASL_STATE, "this listener does not speak SASL"),),
    ApiKey.SASL_AUTHENTICATE: (Never(ErrorCode.ILLEGAL_SASL_STATE, "this listener does not speak SASL"),),
    ApiKey.DELETE_RECORDS: (On(Op.DELETE, Of.TOPIC, "topics.name"),),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        Either((on_cluster(Op.CLUSTER_ACTION), On(Op.DESCRIBE, Of.TOPIC, "topics.topic"))),
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions,
    ApiKey.TXN_OFFSET_COMMIT: (
        On(Op.WRITE, Of.TRANSACTIONAL_ID, "transactional_id"),
        On(Op.READ, Of.GROUP, "group_id"),
        On(Op.READ, Of.TOPIC, "topics.name"),
    ),
    ApiKey.ALTER_CONFIGS: _configs(Op.ALTER_CONFIGS),
    ApiKey.CREATE_DELEGATION_TOKEN: (_TOKEN,),
    ApiKey.RENEW_DELEGATION_TOKEN: (_TOKEN,),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (_TOKEN,),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (_TOKEN,),
    ApiKey.DELETE_GROUPS: (On(Op.DELETE, Of.GROUP, "groups_names"),),
    ApiKey.OFFSET_DELETE: (On(Op.DELETE, Of.GROUP, "group_id"), On(Op.READ, Of.TOPIC, "topics.name")),
    ApiKey.DESCRIBE_PRODUCERS: (On(Op.READ, Of.TOPIC, "topics.name"),),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        On(Op.DESCRIBE, Of.TRANSACTIONAL_ID, "transactional_ids"),
        OnAll(Op.DESCRIBE, Of.TOPIC),
    ),
    ApiKey.LIST_TRANSACTIONS: OPEN,  # likewise
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _consumer_group_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: (On(Op.DESCRIBE, Of.GROUP, "group_ids"),),
    ApiKey.SHARE_GROUP_HEARTBEAT: (
        On(Op.READ, Of.GROUP, "group_id"),
        On(Op.DESCRIBE, Of.TOPIC, "subscribed_topic_names"),
    ),
    ApiKey.SHARE_GROUP_DESCRIBE: (On(Op.DESCRIBE, Of.GROUP, "group_ids"),),
    ApiKey.SHARE_FETCH: (NEWER,),
    ApiKey.SHARE_ACKNOWLEDGE: (NEWER,),
    ApiKey.STREAMS_GROUP_HEARTBEAT: (NEWER,),
    ApiKey.STREAMS_GROUP_DESCRIBE: (NEWER,),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (NEWER,),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (NEWER,),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (NEWER,),
}
"""Every API that a caller may send here, served or relayed: the needs are the same in both cases."""
