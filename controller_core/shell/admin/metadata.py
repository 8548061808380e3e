"""Metadata, versions 0 to 12: who is there, and who leads what, for clients of one listener.

The controller is one of the nodes, on each listener that it is advertised on: that is how clients find it. Versions
differ in what they ask by (names; from 12 on ids too) and in how they say that a leader cannot be reached.

A topic that is not there and may be made (auto-creation) is a broker's business: brokers know their own settings for it.
Such a request goes on to one, whole (RelayInstead).

Source: KafkaApis.handleTopicMetadataRequest. Leaves out who may do what: without an authorizer everybody may do everything, with one
its screens judge anew.
"""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from controller_core.cluster.authorized_operations import authorized_operations
from controller_core.cluster.topic_names import illegal_because
from controller_core.model.acl import ResourceType
from controller_core.model.cluster import Cluster, Topic
from controller_core.model.errors import Failure
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.described import (
    View,
    described_partitions,
    described_topic,
    failed_topic,
    known_topic,
    known_topics,
    missing_topic,
)
from controller_core.shell.admin.nodes import Node, nodes, reachable
from controller_core.shell.admin.outcomes import NO_TOPIC_ID
from controller_core.shell.front.context import RelayInstead, RequestContext
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode

IDS_FROM = 12
"""Topics may be asked for by id from this version on; 10 and 11 have the field and do not take it (KAFKA-12701)."""
LISTENER_ERROR_FROM = 6
"""Versions below know LEADER_NOT_AVAILABLE alone."""


async def metadata(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Answer from the cluster as it is now. Raises RelayInstead for a topic that a broker is to make."""
    refused = refuse_metadata(context, body)
    if refused is not None:
        return metadata_refused(context, body, refused)
    if may_be_created(active.cluster, context, body):
        raise RelayInstead("a topic is unknown and may be created: brokers know how")
    topics = asked_topics(active.cluster, context, body)
    if body["include_topic_authorized_operations"]:
        everything = authorized_operations(ResourceType.TOPIC)
        for topic in topics:
            if topic["name"] is not None:
                topic["topic_authorized_operations"] = everything
    response = metadata_response(active, context, topics)
    if body["include_cluster_authorized_operations"]:
        response["cluster_authorized_operations"] = authorized_operations(ResourceType.CLUSTER)
    return response


def metadata_response(active: ActiveController, context: RequestContext, topics: list[Body]) -> Body:
    """Put nodes and topics together."""
    return {
        "brokers": [_broker(node) for node in nodes(active, context.listener)],
        "cluster_id": active.cluster_id,
        "controller_id": active.cluster.controller_id,
        "topics": topics,
    }


def _broker(node: Node) -> Body:
    return {"node_id": node.id, "host": node.host, "port": node.port, "rack": node.rack}


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


def may_be_created(cluster: Cluster, context: RequestContext, body: Body) -> bool:
    """Tell whether the request is one to make a topic by, and there is a broker to make it."""
    if is_for_all_topics(context, body) or not body["allow_auto_topic_creation"]:
        return False
    missing = (name for name in asked_names(body) if known_topic(cluster, name) is None)
    return any(illegal_because(name) is None for name in missing) and bool(reachable(cluster, context.listener))


def asked_topics(cluster: Cluster, context: RequestContext, body: Body) -> list[Body]:
    """Describe the topics that are asked for."""
    view = View.of(cluster, context.listener)
    if is_for_all_topics(context, body):
        return [_topic(cluster, topic, view, context.api_version) for topic in known_topics(cluster)]
    described: list[Body] = []
    for topic_id in asked_ids(body):
        topic = known_topic(cluster, cluster.topic_name(topic_id) or "")
        if topic is None:
            described.append(failed_topic(None, ErrorCode.UNKNOWN_TOPIC_ID, topic_id))
        else:
            described.append(_topic(cluster, topic, view, context.api_version))
    for name in asked_names(body):
        topic = known_topic(cluster, name)
        described.append(missing_topic(name) if topic is None else _topic(cluster, topic, view, context.api_version))
    return described


def _topic(cluster: Cluster, topic: Topic, view: View, version: int) -> Body:
    partitions = described_partitions(cluster, topic.rows, view)
    if version < LISTENER_ERROR_FROM:
        for partition in partitions:
            if partition["error_code"] == ErrorCode.LISTENER_NOT_FOUND:
                partition["error_code"] = ErrorCode.LEADER_NOT_AVAILABLE
    if version == 0:
        partitions = [_as_version_0(partition, view.reachable) for partition in partitions]
    return described_topic(topic, partitions)


def _as_version_0(partition: dict[str, Any], reachable_ids: frozenset[int]) -> Body:
    """Leave out replicas that cannot be reached, and say that some were: version 0 promises addresses for all."""
    replicas = _among(partition["replica_nodes"], reachable_ids)
    isr = _among(partition["isr_nodes"], reachable_ids)
    complete = replicas == partition["replica_nodes"] and isr == partition["isr_nodes"]
    code = partition["error_code"]
    if code == ErrorCode.NONE and not complete:
        code = ErrorCode.REPLICA_NOT_AVAILABLE
    return {**partition, "error_code": code, "replica_nodes": replicas, "isr_nodes": isr}


def _among(ids: Iterable[int], kept: frozenset[int]) -> list[int]:
    return [broker_id for broker_id in ids if broker_id in kept]


def metadata_refused(_context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer every topic with the same error, and no nodes: clients pass over an answer without nodes and ask another.

    There is no place for the error itself. A controller without a tenure knows no leader: that is what it says, since
    clients of every kind ask again upon it.
    """
    code = ErrorCode.LEADER_NOT_AVAILABLE if failure.code == ErrorCode.NOT_CONTROLLER else failure.code
    topics = [failed_topic(topic["name"] or "", code, topic["topic_id"]) for topic in body["topics"] or []]
    return {"brokers": [], "cluster_id": None, "controller_id": -1, "topics": topics}
