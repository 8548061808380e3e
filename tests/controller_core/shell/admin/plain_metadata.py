"""Plain twin of Metadata: one Python object per field, and the caller's rights applied to the complete answer.

It is slow but easy to compare with KafkaApis.handleTopicMetadataRequest and ZkMetadataCache.getPartitionMetadata. Tests compare its
bytes with those of the implementation from columns.
"""

from typing import Any

from controller_core.model import Cluster, Topic
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.cluster_apis import nodes, reachable
from controller_core.shell.admin.metadata import metadata_refused, refuse_metadata
from controller_core.shell.admin.responses import NO_TOPIC_ID
from controller_core.shell.admin.topic_description import (
    View,
    described_partitions,
    described_topic,
    known_topic,
    known_topics,
)
from controller_core.shell.front.handler import RelayInstead
from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.authorization.authorized_operations import authorized_operations
from kafka_node.authorization.guard import Ask
from kafka_node.context import RequestContext
from kafka_node.outcomes import failed_topic, missing_topic
from kafka_node.topic_names import illegal_name_reason
from kafka_wire import Body, ErrorCode

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def plain_metadata(active: ActiveController, context: RequestContext, body: Body, allows: Ask | None = None) -> Body:
    """Answer a request; `allows` returns whether the caller may do an operation, None: no authorizer. Raises RelayInstead."""
    refused = refuse_metadata(context, body)
    if refused is not None:
        return metadata_refused(context, body, refused)
    wants_all = body["topics"] is None or (context.api_version == 0 and not body["topics"])
    uncreatable = set() if allows is None or wants_all else _uncreatable(allows, body)
    if not wants_all and _may_create(allows, body, uncreatable) and _is_creatable(active.cluster, context, body):
        raise RelayInstead("twin")
    topics = _requested(active.cluster, context, body, wants_all=wants_all)
    if allows is not None:
        topics = _authorized(allows, body, topics, uncreatable, wants_all=wants_all)
    if body["include_topic_authorized_operations"]:
        for topic in topics:
            if topic["name"] is not None and topic["error_code"] != REFUSED:
                topic["topic_authorized_operations"] = _on_topic(allows, topic["name"])
    response = {
        "brokers": [
            {"node_id": node.id, "host": node.host, "port": node.port, "rack": node.rack}
            for node in nodes(active, context.listener)
        ],
        "cluster_id": active.cluster_id,
        "controller_id": active.cluster.controller_id,
        "topics": topics,
    }
    if body["include_cluster_authorized_operations"]:
        response["cluster_authorized_operations"] = _on_cluster(allows)
    return response


def _describes(allows: Ask, name: str) -> bool:
    return allows(Operation.DESCRIBE, ResourceType.TOPIC, name)


def _uncreatable(allows: Ask, body: Body) -> set[str]:
    """Return the names of topics that the caller may not create."""
    if not body["allow_auto_topic_creation"] or allows(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        return set()
    names = [topic["name"] for topic in body["topics"] if topic["name"] is not None]
    return {name for name in names if not allows(Operation.CREATE, ResourceType.TOPIC, name)}


def _may_create(allows: Ask | None, body: Body, uncreatable: set[str]) -> bool:
    if allows is None:
        return bool(body["allow_auto_topic_creation"])
    names = [topic["name"] for topic in body["topics"] if topic["name"] is not None]
    return (
        body["allow_auto_topic_creation"]
        and not body["include_topic_authorized_operations"]
        and not body["include_cluster_authorized_operations"]
        and not uncreatable
        and all(_describes(allows, name) for name in names)
    )


def _ids(body: Body) -> list[Any]:
    return list(dict.fromkeys(topic["topic_id"] for topic in body["topics"] if topic["topic_id"] != NO_TOPIC_ID))


def _names(body: Body) -> list[str]:
    return [] if _ids(body) else list(dict.fromkeys(topic["name"] for topic in body["topics"]))


def _is_creatable(cluster: Cluster, context: RequestContext, body: Body) -> bool:
    missing = (name for name in _names(body) if known_topic(cluster, name) is None)
    return any(illegal_name_reason(name) is None for name in missing) and bool(reachable(cluster, context.listener))


def _requested(cluster: Cluster, context: RequestContext, body: Body, *, wants_all: bool) -> list[Body]:
    view = View.of(cluster, context.listener)
    if wants_all:
        topics = sorted(known_topics(cluster), key=lambda topic: topic.index)
        return [_topic(cluster, topic, view, context.api_version) for topic in topics]
    described: list[Body] = []
    for topic_id in _ids(body):
        topic = known_topic(cluster, cluster.topic_name(topic_id) or "")
        if topic is None:
            described.append(failed_topic(None, ErrorCode.UNKNOWN_TOPIC_ID, topic_id))
        else:
            described.append(_topic(cluster, topic, view, context.api_version))
    for name in _names(body):
        topic = known_topic(cluster, name)
        described.append(missing_topic(name) if topic is None else _topic(cluster, topic, view, context.api_version))
    return described


def _authorized(allows: Ask, body: Body, topics: list[Body], uncreatable: set[str], *, wants_all: bool) -> list[Body]:
    if wants_all:
        return [topic for topic in topics if _describes(allows, topic["name"])]
    by_id = {topic["topic_id"] for topic in body["topics"]} - {NO_TOPIC_ID}
    authorized = []
    for topic in topics:
        name, topic_id = topic["name"], topic["topic_id"]
        absent = topic["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if name is None:
            authorized.append(topic)
        elif not _describes(allows, name):
            authorized.append(
                failed_topic(None, REFUSED, topic_id) if topic_id in by_id else failed_topic(name, REFUSED)
            )
        else:
            authorized.append(failed_topic(name, REFUSED) if absent and name in uncreatable else topic)
    return authorized


def _on_topic(allows: Ask | None, name: str) -> int:
    if allows is None:
        return authorized_operations(ResourceType.TOPIC)
    return authorized_operations(ResourceType.TOPIC, lambda operation: allows(operation, ResourceType.TOPIC, name))


def _on_cluster(allows: Ask | None) -> int:
    if allows is None:
        return authorized_operations(ResourceType.CLUSTER)
    if not allows(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return 0
    return authorized_operations(
        ResourceType.CLUSTER, lambda operation: allows(operation, ResourceType.CLUSTER, CLUSTER_NAME)
    )


def _topic(cluster: Cluster, topic: Topic, view: View, version: int) -> Body:
    partitions = sorted(described_partitions(cluster, topic.rows, view), key=lambda one: one["partition_index"])
    if version < 6:
        for partition in partitions:
            if partition["error_code"] == ErrorCode.LISTENER_NOT_FOUND:
                partition["error_code"] = ErrorCode.LEADER_NOT_AVAILABLE
    if version == 0:
        partitions = [_as_version_0(partition, view.reachable) for partition in partitions]
    return described_topic(topic, partitions)


def _as_version_0(partition: Body, reachable_ids: frozenset[int]) -> Body:
    replicas = [node for node in partition["replica_nodes"] if node in reachable_ids]
    isr = [node for node in partition["isr_nodes"] if node in reachable_ids]
    complete = replicas == partition["replica_nodes"] and isr == partition["isr_nodes"]
    code = partition["error_code"]
    if code == ErrorCode.NONE and not complete:
        code = ErrorCode.REPLICA_NOT_AVAILABLE
    return {**partition, "error_code": code, "replica_nodes": replicas, "isr_nodes": isr}
