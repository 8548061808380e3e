"""Metadata: nodes, topics, and the leader of each partition, for clients of one listener.

A topic that is missing is created where the request and the broker allow it, and described after its creation. Kafka answers
UNKNOWN_TOPIC_OR_PARTITION while it creates the topic; clients ask again then, and take a description as well. Source:
KafkaApis.handleTopicMetadataRequest.
"""

from collections.abc import Iterable
from uuid import UUID

from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.authorization.guard import Ask
from kafka_node.context import RequestContext
from kafka_node.outcomes import NO_TOPIC_ID, failed_topic, missing_topic
from kafka_node.topic_names import illegal_name_reason
from kafka_wire import Body, ErrorCode
from light_broker.core.metadata_view import NO_CONTROLLER, MetadataView
from light_broker.core.topic_description import described_topic
from light_broker.shell.broker import Broker
from light_broker.shell.topic_creation import create_topics

VERSIONS = (0, 13)

IDS_FROM = 12
"""Version from which a topic may be requested by its id only."""


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Describe the requested topics that the caller may describe, and all brokers of its listener."""
    if (invalid := _invalid_topic(context, body)) is not None:
        return invalid
    may = broker.may(context)
    if body["topics"] is None or (context.api_version == 0 and not body["topics"]):
        topics = _all_topics(broker.view, context, may)
    elif ids := [topic["topic_id"] for topic in body["topics"] if topic["topic_id"] != NO_TOPIC_ID]:
        topics = _by_ids(broker.view, context, may, dict.fromkeys(ids))
    else:
        names = list(dict.fromkeys(topic["name"] for topic in body["topics"]))
        topics = await _by_names(broker, context, may, names, may_create=bool(body["allow_auto_topic_creation"]))
    if body["include_topic_authorized_operations"]:
        for topic in topics:
            if topic["name"] and topic["error_code"] == ErrorCode.NONE:
                topic["topic_authorized_operations"] = broker.operations_on_topic(context, topic["name"])
    return {**_cluster(broker, context, body), "topics": topics}


def _invalid_topic(context: RequestContext, body: Body) -> Body | None:
    """Refuse topics without a name, or with an id in versions that do not support ids."""
    topics = body["topics"] or []
    wrong = any(
        (topic["topic_id"] != NO_TOPIC_ID and context.api_version < IDS_FROM)
        or (topic["name"] is None and topic["topic_id"] == NO_TOPIC_ID)
        for topic in topics
    )
    if not wrong:
        return None
    return {
        "brokers": [],
        "topics": [failed_topic(topic["name"] or "", ErrorCode.INVALID_REQUEST, topic["topic_id"]) for topic in topics],
    }


def _all_topics(view: MetadataView, context: RequestContext, may: Ask) -> list[Body]:
    return [
        described_topic(view, context.listener, topic)
        for topic in view.topics.values()
        if may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name, quiet=True)
    ]


def _by_ids(view: MetadataView, context: RequestContext, may: Ask, ids: Iterable[UUID]) -> list[Body]:
    """Describe topics by id; the name of one that the caller may not describe stays hidden."""
    described = []
    for topic_id in ids:
        name = view.topic_name(topic_id)
        if name is None:
            described.append(failed_topic(None, ErrorCode.UNKNOWN_TOPIC_ID, topic_id))
        elif not may(Operation.DESCRIBE, ResourceType.TOPIC, name):
            described.append(failed_topic(None, ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic_id))
        else:
            described.append(described_topic(view, context.listener, view.topics[name]))
    return described


async def _by_names(
    broker: Broker, context: RequestContext, may: Ask, names: list[str], *, may_create: bool
) -> list[Body]:
    errors: dict[str, ErrorCode] = {
        name: ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for name in names
        if not may(Operation.DESCRIBE, ResourceType.TOPIC, name)
    }
    missing = [
        name
        for name in names
        if name not in errors and name not in broker.view.topics and illegal_name_reason(name) is None
    ]
    if missing and may_create and broker.settings.flag("auto.create.topics.enable"):
        by_cluster = may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
        creatable = [name for name in missing if by_cluster or may(Operation.CREATE, ResourceType.TOPIC, name)]
        errors |= {name: ErrorCode.TOPIC_AUTHORIZATION_FAILED for name in missing if name not in creatable}
        if creatable:
            created = await create_topics(broker, creatable)
            errors |= {name: code for name, code in created.items() if code is not ErrorCode.NONE}
    view = broker.view
    return [
        failed_topic(name, errors[name])
        if name in errors
        else described_topic(view, context.listener, view.topics[name])
        if name in view.topics
        else missing_topic(name)
        for name in names
    ]


def _cluster(broker: Broker, context: RequestContext, body: Body) -> Body:
    view = broker.view
    brokers = [
        {"node_id": alive_broker.id, "host": endpoint.host, "port": endpoint.port, "rack": alive_broker.rack}
        for alive_broker in view.alive_brokers(context.listener)
        for endpoint in [alive_broker.endpoints[context.listener]]
    ]
    listed = {broker["node_id"] for broker in brokers}
    cluster: Body = {
        "brokers": brokers,
        "cluster_id": view.cluster_id,
        # Clients take the controller's address from the list.
        "controller_id": view.controller_id if view.controller_id in listed else NO_CONTROLLER,
    }
    if body["include_cluster_authorized_operations"]:
        cluster["cluster_authorized_operations"] = broker.operations_on_cluster(context)
    return cluster
