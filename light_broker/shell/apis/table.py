"""Table of the APIs that the broker answers itself: versions and handler of each.

A module of an API has `VERSIONS` and `handle`; a module with several APIs has a constant and a function for each.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from kafka_node.context import RequestContext
from kafka_node.versions import VersionRange
from kafka_wire import ApiKey, Body
from kafka_wire.codec import RequestHeader
from kafka_wire.encoded_body import EncodedBody, Response
from kafka_wire.hot import fetch as hot_fetch
from kafka_wire.hot import produce as hot_produce
from kafka_wire.net.peer import Frame
from light_broker.shell.apis import (
    delete_groups,
    delete_records,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
)
from light_broker.shell.broker import Broker

Handler = Callable[[Broker, RequestContext, Body], Awaitable[Body | EncodedBody | None]]
"""Returns the response, which may be encoded already; None: the request has no response (Produce with acks=0).

Requests of a connection start in order: what a handler does before its first `await` precedes the next request. It is cancelled when the
connection breaks. CloseConnection closes the connection; any other exception is logged as UNKNOWN_SERVER_ERROR, and closes it too. Each
handler authorizes the elements of its request by `broker.may(context)`, as Kafka's KafkaApis does.
"""


Decoder = Callable[[Frame, RequestHeader], Body]
"""Decodes the body of a request; raises CodecError."""
Encoder = Callable[[int, int, Body], Response]
"""Encodes a response of a version, with its correlation id; raises CodecError."""


@dataclass(frozen=True, slots=True)
class Api:
    """An API of the broker."""

    versions: VersionRange
    """Versions that it answers: those of Kafka 4.3.1."""
    handle: Handler
    decode: Decoder | None = None
    """A faster decoder than the codec, which does not copy records."""
    encode: Encoder | None = None
    """A faster encoder than the codec, which does not copy records."""


APIS: Mapping[ApiKey, Api] = {
    ApiKey.DELETE_RECORDS: Api(delete_records.VERSIONS, delete_records.handle),
    ApiKey.DESCRIBE_CLUSTER: Api(describe_cluster.VERSIONS, describe_cluster.handle),
    ApiKey.DESCRIBE_CONFIGS: Api(describe_configs.VERSIONS, describe_configs.handle),
    ApiKey.DESCRIBE_LOG_DIRS: Api(describe_log_dirs.VERSIONS, describe_log_dirs.handle),
    ApiKey.DESCRIBE_PRODUCERS: Api(describe_producers.VERSIONS, describe_producers.handle),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Api(describe_topic_partitions.VERSIONS, describe_topic_partitions.handle),
    ApiKey.FETCH: Api(fetch.VERSIONS, fetch.handle, encode=hot_fetch.encode_response),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Api(incremental_alter_configs.VERSIONS, incremental_alter_configs.handle),
    ApiKey.INIT_PRODUCER_ID: Api(init_producer_id.VERSIONS, init_producer_id.handle),
    ApiKey.LIST_CONFIG_RESOURCES: Api(list_config_resources.VERSIONS, list_config_resources.handle),
    ApiKey.LIST_OFFSETS: Api(list_offsets.VERSIONS, list_offsets.handle),
    ApiKey.METADATA: Api(metadata.VERSIONS, metadata.handle),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Api(offset_for_leader_epoch.VERSIONS, offset_for_leader_epoch.handle),
    ApiKey.PRODUCE: Api(
        produce.VERSIONS, produce.handle, decode=hot_produce.decode_request, encode=hot_produce.encode_response
    ),
    ApiKey.FIND_COORDINATOR: Api(find_coordinator.VERSIONS, find_coordinator.handle),
    ApiKey.JOIN_GROUP: Api(join_group.VERSIONS, join_group.handle),
    ApiKey.SYNC_GROUP: Api(sync_group.VERSIONS, sync_group.handle),
    ApiKey.HEARTBEAT: Api(heartbeat.VERSIONS, heartbeat.handle),
    ApiKey.LEAVE_GROUP: Api(leave_group.VERSIONS, leave_group.handle),
    ApiKey.OFFSET_COMMIT: Api(offset_commit.VERSIONS, offset_commit.handle),
    ApiKey.OFFSET_FETCH: Api(offset_fetch.VERSIONS, offset_fetch.handle),
    ApiKey.OFFSET_DELETE: Api(offset_delete.VERSIONS, offset_delete.handle),
    ApiKey.DESCRIBE_GROUPS: Api(describe_groups.VERSIONS, describe_groups.handle),
    ApiKey.LIST_GROUPS: Api(list_groups.VERSIONS, list_groups.handle),
    ApiKey.DELETE_GROUPS: Api(delete_groups.VERSIONS, delete_groups.handle),
}
"""The dispatch answers ApiVersions, and the connections answer SaslHandshake and SaslAuthenticate."""
