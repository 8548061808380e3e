"""Metadata, versions 0 to 12: nodes, topics, and the leader of each partition, for clients of one listener.

The controller is one of the nodes, on each listener that it is advertised on: that is how clients find it. Versions
differ in what they ask by (names; from 12 on ids too) and in the error that reports a leader that cannot be reached.

An unknown topic that may be created (auto-creation) is left to a broker, which knows its own settings for that: such a request
is relayed whole (RelayInstead).

Callers that may describe every topic share one answer for all topics. With an authorizer, a topic that the caller may not describe
is not shown: asked for by name it is refused whether it exists or not, asked for by id it is refused without its name, and a list
of all topics leaves it out.

Source: KafkaApis.handleTopicMetadataRequest. The plain twin is in the tests (plain_metadata).
"""

from collections.abc import Callable, Sequence
from uuid import UUID

from controller_core.model.cluster import Cluster, Topic
from controller_core.rules.topic_names import illegal_name_reason, is_internal
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.cluster_nodes import reachable
from controller_core.shell.admin.metadata_encoder import Entry, MetadataEncoder, Shape, described_head
from controller_core.shell.admin.outcomes import NO_TOPIC_ID
from controller_core.shell.admin.topic_description import failed_topic, known_topic
from controller_core.shell.front.handler import RelayInstead
from kafka_node.authorization.acl import ResourceType
from kafka_node.authorization.authorized_operations import authorized_operations
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_wire.codec import Body
from kafka_wire.encoded_body import EncodedBody
from kafka_wire.errors import ErrorCode
from kafka_wire.metadata_encoding import NOT_REQUESTED, TopicHead

IDS_FROM = 12
"""Topics may be asked for by id from this version on; 10 and 11 have the field and do not take it (KAFKA-12701)."""
EVERY_TOPIC_OPERATION = authorized_operations(ResourceType.TOPIC)
EVERY_CLUSTER_OPERATION = authorized_operations(ResourceType.CLUSTER)
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def metadata(
    encoder: MetadataEncoder, active: ActiveController, context: RequestContext, body: Body
) -> Body | EncodedBody:
    """Answer from the present state of the cluster. Raises RelayInstead for a topic that a broker is to create."""
    refused = refuse_metadata(context, body)
    if refused is not None:
        return metadata_refused(context, body, refused)
    on_cluster = NOT_REQUESTED
    if body["include_cluster_authorized_operations"]:
        on_cluster = EVERY_CLUSTER_OPERATION if context.rights is None else context.rights.on_cluster()
    if is_for_all_topics(context, body):
        return await _all_topics(encoder, active, context, body, on_cluster)
    return await _named_topics(encoder, active, context, body, on_cluster)


async def _all_topics(
    encoder: MetadataEncoder, active: ActiveController, context: RequestContext, body: Body, on_cluster: int
) -> EncodedBody:
    rights, asks_operations = context.rights, body["include_topic_authorized_operations"]
    everywhere: int | None = NOT_REQUESTED
    if asks_operations:
        everywhere = EVERY_TOPIC_OPERATION if rights is None else rights.on_every_topic()
    if everywhere is not None and (rights is None or rights.describes_every_topic()):
        return await encoder.all_topics(active, Shape(context.listener, context.api_version, everywhere, on_cluster))
    assert rights is not None, "without an authorizer every caller may describe every topic"
    pace, shown = encoder.pace(), []
    for topic in active.cluster.topics_by_index():
        if rights.describes(topic.name):
            shown.append(topic)
        await pace.step_if_due()
    operations = _operations(context, asks_operations=asks_operations)
    return await encoder.listed_topics(active, context, shown, operations, on_cluster)


async def _named_topics(
    encoder: MetadataEncoder, active: ActiveController, context: RequestContext, body: Body, on_cluster: int
) -> EncodedBody:
    names, ids = asked_names(body), asked_ids(body)
    hidden, barred = await _judge(encoder, context, body)
    if _may_create(context, body, hidden, barred) and _is_creatable(active.cluster, context, names):
        raise RelayInstead("a topic is unknown and may be created: brokers know how")
    operations = _operations(context, asks_operations=body["include_topic_authorized_operations"])
    rights = context.rights

    def by_id(cluster: Cluster, topic_id: UUID) -> tuple[Topic | None, Entry]:
        topic = known_topic(cluster, cluster.topic_name(topic_id) or "")
        if topic is None:
            return None, Entry(TopicHead(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id, is_internal=False, partitions=0))
        if rights is not None and not rights.describes(topic.name):
            return None, Entry(TopicHead(REFUSED, None, topic_id, is_internal=False, partitions=0))
        return topic, Entry(described_head(topic, len(topic.rows)), operations(topic.name))

    def by_name(cluster: Cluster, name: str) -> tuple[Topic | None, Entry]:
        topic = known_topic(cluster, name)
        if name in hidden or (topic is None and name in barred and illegal_name_reason(name) is None):
            return None, Entry(TopicHead(REFUSED, name, NO_TOPIC_ID, is_internal=False, partitions=0))
        if topic is None:
            legal = illegal_name_reason(name) is None
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if legal else ErrorCode.INVALID_TOPIC_EXCEPTION
            return None, Entry(TopicHead(code, name, NO_TOPIC_ID, is_internal(name), 0), operations(name))
        return topic, Entry(described_head(topic, len(topic.rows)), operations(name))

    def resolve(cluster: Cluster) -> tuple[Sequence[Topic], Sequence[Entry]]:
        found = [*(by_id(cluster, one) for one in ids), *(by_name(cluster, name) for name in names)]
        return [topic for topic, _ in found if topic is not None], [entry for _, entry in found]

    return await encoder.some_topics(active, context, resolve, on_cluster)


async def _judge(encoder: MetadataEncoder, context: RequestContext, body: Body) -> tuple[set[str], set[str]]:
    """Find the names that the caller may not describe, and those that it may not create where that is asked for."""
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


def _operations(context: RequestContext, *, asks_operations: bool) -> Callable[[str], int]:
    """Make a function that returns the authorized operations on a topic (KIP-430)."""
    if not asks_operations:
        return lambda _: NOT_REQUESTED
    return (lambda _: EVERY_TOPIC_OPERATION) if context.rights is None else context.rights.on_topic


def is_for_all_topics(context: RequestContext, body: Body) -> bool:
    """Tell whether all topics are asked for: none is named, which version 0 said by an empty list."""
    return body["topics"] is None or (context.api_version == 0 and not body["topics"])


def asked_names(body: Body) -> list[str]:
    """List the names that are asked for, each once; where any id is given, names are not looked at."""
    return [] if asked_ids(body) else list(dict.fromkeys(topic["name"] for topic in body["topics"]))


def asked_ids(body: Body) -> list[UUID]:
    """List the ids that are asked for, each once."""
    return list(dict.fromkeys(topic["topic_id"] for topic in body["topics"] if topic["topic_id"] != NO_TOPIC_ID))


def refuse_metadata(context: RequestContext, body: Body) -> Failure | None:
    """Refuse topics without a name or, in versions that do not take them, with an id."""
    for topic in body["topics"] or []:
        has_id = topic["topic_id"] != NO_TOPIC_ID
        if context.api_version < IDS_FROM and has_id:
            words = f"Topic IDs are not supported in requests for version {context.api_version}"
            return Failure(ErrorCode.INVALID_REQUEST, words)
        if topic["name"] is None and not has_id:
            words = f"Topic name can not be null for version {context.api_version}"
            return Failure(ErrorCode.INVALID_REQUEST, words)
    return None


def _may_create(context: RequestContext, body: Body, hidden: set[str], barred: set[str]) -> bool:
    """Tell whether a broker may be asked to create topics for the caller.

    The broker gets the request under the controller's own name, so the caller needs the rights to all of it, and operations that
    the answer contains would be the controller's: a caller that asks for them has to ask again for a topic to be created.
    """
    if context.rights is None:
        return bool(body["allow_auto_topic_creation"])
    asks_operations = body["include_topic_authorized_operations"] or body["include_cluster_authorized_operations"]
    return body["allow_auto_topic_creation"] and not asks_operations and not hidden and not barred


def _is_creatable(cluster: Cluster, context: RequestContext, names: Sequence[str]) -> bool:
    """Tell whether a name has no topic and could have one, and a broker is there to create it."""
    missing = (name for name in names if known_topic(cluster, name) is None)
    return any(illegal_name_reason(name) is None for name in missing) and bool(reachable(cluster, context.listener))


def metadata_refused(_context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer every topic with the same error, and no nodes: clients pass over an answer without nodes and ask another.

    There is no place for the error itself. A controller without a tenure knows no leader: that is what it says, since
    clients of every kind ask again upon it.
    """
    code = ErrorCode.LEADER_NOT_AVAILABLE if failure.code == ErrorCode.NOT_CONTROLLER else failure.code
    topics = [failed_topic(topic["name"] or "", code, topic["topic_id"]) for topic in body["topics"] or []]
    return {"brokers": [], "cluster_id": None, "controller_id": -1, "topics": topics}
