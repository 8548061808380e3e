"""Metadata, versions 0 to 12: nodes, topics, and the leader of each partition, for clients of one listener.

The controller is listed as a node on each listener that it is advertised on, which is how clients find it. Versions differ in the
identification of topics (by name; from version 12 on also by id) and in the error code of an unreachable leader.

A request with an unknown topic that may be created automatically is relayed as a whole (RelayInstead), because brokers know their
settings for automatic creation.

Clients that may describe every topic share one response for all topics. With an authorizer, topics that the caller may not describe are
hidden: by name they are refused whether they exist or not, by id they are refused without their name, and a list of all topics omits
them.

Source: KafkaApis.handleTopicMetadataRequest.
"""

from collections.abc import Callable, Sequence
from uuid import UUID

from controller_core.model import Cluster, Topic
from controller_core.shell.active import ActiveController
from controller_core.shell.admin import cluster_apis, responses, topic_description
from controller_core.shell.admin.metadata_encoder import Entry, MetadataEncoder, Shape, described_head
from controller_core.shell.front.handler import RelayInstead
from kafka_node import outcomes, topic_names
from kafka_node.authorization.acl import ResourceType
from kafka_node.authorization.authorized_operations import authorized_operations
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode, Failure
from kafka_wire.columns.metadata_encoder import NOT_REQUESTED, TopicHead
from kafka_wire.encoded_body import EncodedBody

IDS_FROM = 12
"""First version in which topics may be identified by id; 10 and 11 have the field but do not support it (KAFKA-12701)."""
EVERY_TOPIC_OPERATION = authorized_operations(ResourceType.TOPIC)
EVERY_CLUSTER_OPERATION = authorized_operations(ResourceType.CLUSTER)
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def metadata(
    encoder: MetadataEncoder, active: ActiveController, context: RequestContext, body: Body
) -> Body | EncodedBody:
    """Answer from the current state of the cluster. Raises RelayInstead for a topic that a broker should create."""
    refused = refuse_metadata(context, body)
    if refused is not None:
        return metadata_refused(context, body, refused)
    cluster_operations = NOT_REQUESTED
    if body["include_cluster_authorized_operations"]:
        cluster_operations = EVERY_CLUSTER_OPERATION if context.rights is None else context.rights.on_cluster()
    if is_for_all_topics(context, body):
        return await _all_topics(encoder, active, context, body, cluster_operations)
    return await _named_topics(encoder, active, context, body, cluster_operations)


async def _all_topics(
    encoder: MetadataEncoder, active: ActiveController, context: RequestContext, body: Body, cluster_operations: int
) -> EncodedBody:
    rights, wants_operations = context.rights, body["include_topic_authorized_operations"]
    everywhere: int | None = NOT_REQUESTED
    if wants_operations:
        everywhere = EVERY_TOPIC_OPERATION if rights is None else rights.on_every_topic()
    if everywhere is not None and (rights is None or rights.describes_every_topic()):
        return await encoder.all_topics(
            active, Shape(context.listener, context.api_version, everywhere, cluster_operations)
        )
    assert rights is not None, "without an authorizer every caller may describe every topic"
    pace, shown = encoder.pace(), []
    for topic in active.cluster.topics_by_index():
        if rights.describes(topic.name):
            shown.append(topic)
        await pace.step_if_due()
    operations = _operations(context, wants_operations=wants_operations)
    return await encoder.listed_topics(active, context, shown, operations, cluster_operations)


async def _named_topics(
    encoder: MetadataEncoder, active: ActiveController, context: RequestContext, body: Body, cluster_operations: int
) -> EncodedBody:
    names, ids = requested_names(body), requested_ids(body)
    hidden, barred = await _denied_names(encoder, context, body)
    if _may_create(context, body, hidden, barred) and _is_creatable(active.cluster, context, names):
        raise RelayInstead("an unknown topic may be created automatically by a broker")
    operations = _operations(context, wants_operations=body["include_topic_authorized_operations"])
    rights = context.rights

    def by_id(cluster: Cluster, topic_id: UUID) -> tuple[Topic | None, Entry]:
        topic = topic_description.known_topic(cluster, cluster.topic_name(topic_id) or "")
        if topic is None:
            return None, Entry(TopicHead(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id, is_internal=False, partitions=0))
        if rights is not None and not rights.describes(topic.name):
            return None, Entry(TopicHead(REFUSED, None, topic_id, is_internal=False, partitions=0))
        return topic, Entry(described_head(topic, len(topic.rows)), operations(topic.name))

    def by_name(cluster: Cluster, name: str) -> tuple[Topic | None, Entry]:
        topic = topic_description.known_topic(cluster, name)
        if name in hidden or (topic is None and name in barred and topic_names.illegal_name_reason(name) is None):
            return None, Entry(TopicHead(REFUSED, name, responses.NO_TOPIC_ID, is_internal=False, partitions=0))
        if topic is None:
            legal = topic_names.illegal_name_reason(name) is None
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if legal else ErrorCode.INVALID_TOPIC_EXCEPTION
            return None, Entry(
                TopicHead(code, name, responses.NO_TOPIC_ID, topic_names.is_internal(name), 0), operations(name)
            )
        return topic, Entry(described_head(topic, len(topic.rows)), operations(name))

    def resolve(cluster: Cluster) -> tuple[Sequence[Topic], Sequence[Entry]]:
        found = [*(by_id(cluster, topic_id) for topic_id in ids), *(by_name(cluster, name) for name in names)]
        return [topic for topic, _ in found if topic is not None], [entry for _, entry in found]

    return await encoder.some_topics(active, context, resolve, cluster_operations)


async def _denied_names(encoder: MetadataEncoder, context: RequestContext, body: Body) -> tuple[set[str], set[str]]:
    """Return the names that the caller may not describe, and those that it may not create if creation is requested."""
    rights = context.rights
    if rights is None:
        return set(), set()
    pace = encoder.pace()
    hidden, barred = set(), set()
    may_be_barred = body["allow_auto_topic_creation"] and not rights.creates()
    for name in dict.fromkeys(topic["name"] for topic in body["topics"] if topic["name"] is not None):
        if not rights.describes(name):
            hidden.add(name)
        if may_be_barred and not rights.creates(name):
            barred.add(name)
        await pace.step_if_due()
    return hidden, barred


def _operations(context: RequestContext, *, wants_operations: bool) -> Callable[[str], int]:
    """Return a function from the name of a topic to the authorized operations on it (KIP-430)."""
    if not wants_operations:
        return lambda _: NOT_REQUESTED
    return (lambda _: EVERY_TOPIC_OPERATION) if context.rights is None else context.rights.on_topic


def is_for_all_topics(context: RequestContext, body: Body) -> bool:
    """Return whether the request is for all topics: the list is null, or empty in version 0."""
    return body["topics"] is None or (context.api_version == 0 and not body["topics"])


def requested_names(body: Body) -> list[str]:
    """List the requested names, each once. If the request contains an id, names are ignored."""
    return [] if requested_ids(body) else list(dict.fromkeys(topic["name"] for topic in body["topics"]))


def requested_ids(body: Body) -> list[UUID]:
    """List the requested ids, each once."""
    return list(
        dict.fromkeys(topic["topic_id"] for topic in body["topics"] if topic["topic_id"] != responses.NO_TOPIC_ID)
    )


def refuse_metadata(context: RequestContext, body: Body) -> Failure | None:
    """Refuse topics without a name, or with an id in versions that do not support ids."""
    for topic in body["topics"] or []:
        has_id = topic["topic_id"] != responses.NO_TOPIC_ID
        if context.api_version < IDS_FROM and has_id:
            message = f"Topic IDs are not supported in requests for version {context.api_version}"
            return Failure(ErrorCode.INVALID_REQUEST, message)
        if topic["name"] is None and not has_id:
            message = f"Topic name can not be null for version {context.api_version}"
            return Failure(ErrorCode.INVALID_REQUEST, message)
    return None


def _may_create(context: RequestContext, body: Body, hidden: set[str], barred: set[str]) -> bool:
    """Return whether the request may be relayed so that a broker creates topics.

    The broker receives the request under the controller's principal. The caller therefore needs the rights to all of it, and must not
    request authorized operations, because the answer would contain the controller's.
    """
    if context.rights is None:
        return bool(body["allow_auto_topic_creation"])
    wants_operations = body["include_topic_authorized_operations"] or body["include_cluster_authorized_operations"]
    return body["allow_auto_topic_creation"] and not wants_operations and not hidden and not barred


def _is_creatable(cluster: Cluster, context: RequestContext, names: Sequence[str]) -> bool:
    """Return whether a name is valid and unused, and a broker is reachable to create the topic."""
    missing = (name for name in names if topic_description.known_topic(cluster, name) is None)
    return any(topic_names.illegal_name_reason(name) is None for name in missing) and bool(
        cluster_apis.reachable(cluster, context.listener)
    )


def metadata_refused(_context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer every topic with the same error and no nodes: clients ignore an answer without nodes and use another node.

    The response has no top-level error. NOT_CONTROLLER becomes LEADER_NOT_AVAILABLE, after which all kinds of clients retry.
    """
    code = ErrorCode.LEADER_NOT_AVAILABLE if failure.code == ErrorCode.NOT_CONTROLLER else failure.code
    topics = [outcomes.failed_topic(topic["name"] or "", code, topic["topic_id"]) for topic in body["topics"] or []]
    return {"brokers": [], "cluster_id": None, "controller_id": -1, "topics": topics}
