"""Authorization of each API in ZooKeeper mode, where the controller serves a request or relays it to a broker.

Served requests that are authorized per topic have no operations here (`shell.admin.topic_authorization`). A relayed request is sent with the
controller's principal, so everything that a broker would authorize is authorized here. Where a broker would process the authorized
part of a request, or omit unauthorized parts of the response, the whole request is refused here.

Source: KafkaApis of Kafka 3.9.2.
"""

from kafka_node.authorization.acl import Operation as Op
from kafka_node.authorization.acl import ResourceType as Of
from kafka_node.authorization.needs import Either, Need, Never, On, OnAll, OnName, Row, on_cluster
from kafka_node.authorization.table import NEWER, OPEN, WHOLE_REQUESTS, Table
from kafka_wire import ApiKey, Body, ErrorCode

SCREENED: Row = ()
"""Each topic is authorized separately: see `shell.admin.topic_authorization`."""

ADD_PARTITIONS_OF_BROKERS_FROM = 4
"""AddPartitionsToTxn: from this version on, brokers send it for their clients (KIP-890)."""
GROUP_KEY, TRANSACTION_KEY = 0, 1
"""FindCoordinator's key types; only brokers use others."""
TOPIC_RESOURCE, GROUP_RESOURCE = 2, 32
"""ConfigResource.Type."""
CONSUMER = -1
"""Replica id of consumers; a replica sends its broker id."""

_TOKEN = Never(
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    "a token would belong to the controller that relays the request: send the request to a broker",
)


def _fetch(_: int, body: Body) -> tuple[Need, ...]:
    replica = max(body["replica_id"], body["replica_state"]["replica_id"])
    if replica != CONSUMER:
        return (on_cluster(Op.CLUSTER_ACTION),)
    if body["session_id"]:
        # A session contains topics of earlier requests. Without one, each request lists all topics and is authorized for them.
        return (Never(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "the topics of a fetch session cannot be authorized"),)
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
    ApiKey.LIST_GROUPS: OPEN,  # The controller returns an empty list.
    # Authentication takes place before: a broker's result would have no effect here.
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
    ApiKey.LIST_TRANSACTIONS: OPEN,  # The controller returns an empty list.
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
"""Required operations of every API that clients may send, served or relayed."""
