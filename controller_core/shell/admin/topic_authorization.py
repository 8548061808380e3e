"""Authorization of requests per topic: the handler gets the topics that the caller may use, the others are refused.

    request ──► authorized topics ──► handler ──► answer ──┐
                  │ all others                             ├──► answer
                  └──► refused with the API's topic error ─┘

Topics that the caller may not describe are hidden: by name they are refused whether they exist or not, by id they are refused without
their name, and a list of all topics omits them.

Source: KafkaApis.handleCreateTopicsRequest, handleDeleteTopicsRequest, handleCreatePartitionsRequest, handleTopicMetadataRequest,
DescribeTopicPartitionsRequestHandler.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast
from uuid import UUID

from controller_core.model import Cluster
from controller_core.shell.admin import metadata, responses, topic_creation, topic_description
from controller_core.shell.front.handler import RelayInstead, RequestHandler
from controller_core.shell.pace import ClientPace
from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.authorization.authorized_operations import SUPPORTED, authorized_operations
from kafka_node.authorization.guard import Ask, Guard
from kafka_node.context import RequestContext
from kafka_node.outcomes import failed_topic
from kafka_wire import ApiKey, Body, ErrorCode, Failure
from kafka_wire.encoded_body import EncodedBody
from kafka_wire.net.server import CloseConnection

REFUSED = Failure(ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED.message)
DELETE_BY_STRUCTS_FROM = 6
"""First version of DeleteTopics with structs for topics, which may have an id."""
UNKNOWN_COUNT = -1

CurrentCluster = Callable[[], Cluster | None]
"""Returns the cluster; None while this process is not the controller."""
Answer = Callable[[Body], Awaitable[Body]]
RequestFilter = Callable[[Ask, CurrentCluster, Answer, RequestContext, Body], Awaitable[Body]]


def authorize_topics(
    handlers: Mapping[ApiKey, RequestHandler],
    guard: Guard,
    cluster: CurrentCluster,
    wait_for_activation: Callable[[], Awaitable[None]],
) -> dict[ApiKey, RequestHandler]:
    """Return the handlers with authorization per topic. `wait_for_activation` waits while an active term is about to begin."""

    async def filtered(
        key: ApiKey, request_filter: RequestFilter, handler: RequestHandler, context: RequestContext, body: Body
    ) -> Body | EncodedBody:
        await wait_for_activation()
        allows = guard.asking(context)
        try:
            return await request_filter(allows, cluster, cast(Answer, partial(handler, context)), context, body)
        except RelayInstead:
            check_standby(key, context, body)
            raise

    async def with_rights(
        key: ApiKey, handler: RequestHandler, context: RequestContext, body: Body
    ) -> Body | EncodedBody:
        await wait_for_activation()
        try:
            return await handler(replace(context, rights=CallerRights(guard, context)), body)
        except RelayInstead:
            check_standby(key, context, body)
            raise

    def check_standby(key: ApiKey, context: RequestContext, body: Body) -> None:
        if cluster() is None:
            _check_standby_may_relay(guard.asking(context), key, context, body)

    return {
        **handlers,
        **{
            key: partial(filtered, key, request_filter, handlers[key])
            for key, request_filter in REQUEST_FILTERS.items()
            if key in handlers
        },
        **{key: partial(with_rights, key, handlers[key]) for key in AUTHORIZED_BY_HANDLER if key in handlers},
    }


class CallerRights:
    """Implements `TopicRights` for one caller."""

    def __init__(self, guard: Guard, context: RequestContext) -> None:
        self._guard = guard
        self._context = context
        self._allows = guard.asking(context)

    def describes_every_topic(self) -> bool:
        """Whether an ACL or a setting allows DESCRIBE on all topics, and no ACL denies it on any."""
        return self._guard.allows_on_all(self._context, Operation.DESCRIBE, ResourceType.TOPIC)

    def describes(self, name: str) -> bool:
        """Whether the caller has DESCRIBE on a topic."""
        return self._allows(Operation.DESCRIBE, ResourceType.TOPIC, name)

    def creates(self, name: str | None = None) -> bool:
        """Whether the caller has CREATE on a topic, or without a name on the cluster."""
        if name is None:
            return self._allows(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
        return self._allows(Operation.CREATE, ResourceType.TOPIC, name)

    def on_every_topic(self) -> int | None:
        """Return all operations if each is allowed on all topics; None if they may differ from topic to topic."""
        operations = SUPPORTED[ResourceType.TOPIC]
        everywhere = all(
            self._guard.allows_on_all(self._context, operation, ResourceType.TOPIC) for operation in operations
        )
        return authorized_operations(ResourceType.TOPIC) if everywhere else None

    def on_topic(self, name: str) -> int:
        """Return the authorized operations on a topic."""
        return _on_topic(self._allows, name)

    def on_cluster(self) -> int:
        """Return the authorized operations on the cluster; none without DESCRIBE."""
        return _on_cluster(self._allows)


async def _create_topics(allows: Ask, _: CurrentCluster, answer: Answer, context: RequestContext, body: Body) -> Body:
    every = allows(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)

    def is_allowed(topic: Body) -> bool:
        return every or allows(Operation.CREATE, ResourceType.TOPIC, topic["name"])

    refuse = partial(topic_creation.create_topics_refused, context)
    response = await _partly_answered("topics", "topics", is_allowed, refuse, answer, body)
    for topic in response["topics"]:
        has_configs = topic["error_code"] == ErrorCode.NONE and topic.get("configs") is not None
        if has_configs and not allows(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic["name"]):
            topic["topic_config_error_code"] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            topic |= {"configs": None, "num_partitions": UNKNOWN_COUNT, "replication_factor": UNKNOWN_COUNT}
    return response


async def _create_partitions(
    allows: Ask, _: CurrentCluster, answer: Answer, context: RequestContext, body: Body
) -> Body:
    def is_allowed(topic: Body) -> bool:
        return allows(Operation.ALTER, ResourceType.TOPIC, topic["name"])

    return await _partly_answered(
        "topics", "results", is_allowed, partial(topic_creation.create_partitions_refused, context), answer, body
    )


async def _delete_topics(
    allows: Ask, cluster: CurrentCluster, answer: Answer, context: RequestContext, body: Body
) -> Body:
    field = "topics" if context.api_version >= DELETE_BY_STRUCTS_FROM else "topic_names"
    current = cluster()
    requested = [_RequestedDeletion.of(topic, current) for topic in body[field]]
    # An unknown id is not passed to the handler: a topic created with it in the meantime would be deleted without authorization.
    refusals = {
        index: failure
        for index, topic in enumerate(requested)
        if (failure := topic.refuse(allows, current)) is not None
    }
    allowed = [topic for index, topic in enumerate(body[field]) if index not in refusals]
    response = await answer({**body, field: allowed}) if allowed else {"responses": []}
    refused = [requested[index].refused(allows, failure) for index, failure in refusals.items()]
    return {**response, "responses": [*response["responses"], *refused]}


@dataclass(frozen=True, slots=True)
class _RequestedDeletion:
    """A topic in a DeleteTopics request; `name` is None if it is identified by an unknown id."""

    name: str | None
    topic_id: UUID
    by_id: bool

    @classmethod
    def of(cls, topic: Any, cluster: Cluster | None) -> "_RequestedDeletion":
        if isinstance(topic, str):
            return cls(topic, responses.NO_TOPIC_ID, by_id=False)
        if topic["name"] is not None or topic["topic_id"] == responses.NO_TOPIC_ID:
            return cls(topic["name"], topic["topic_id"], by_id=False)
        return cls(None if cluster is None else cluster.topic_name(topic["topic_id"]), topic["topic_id"], by_id=True)

    def refuse(self, allows: Ask, cluster: Cluster | None) -> Failure | None:
        if self.name is not None:
            return None if allows(Operation.DELETE, ResourceType.TOPIC, self.name) else REFUSED
        if not self.by_id:
            return None  # neither name nor id: the handler refuses it
        unknown = Failure(ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID.message)
        return responses.NOT_CONTROLLER if cluster is None else unknown

    def refused(self, allows: Ask, failure: Failure) -> Body:
        shown = self.name is not None and (not self.by_id or allows(Operation.DESCRIBE, ResourceType.TOPIC, self.name))
        return {"name": self.name if shown else None, "topic_id": self.topic_id, **responses.error_fields(failure)}


async def _partly_answered(
    request_field: str,
    response_field: str,
    is_allowed: Callable[[Any], bool],
    refuse: Callable[[Body, Failure], Body],
    answer: Answer,
    body: Body,
) -> Body:
    """Answer the allowed elements of a request, and refuse the others."""
    allowed = {index for index, entry in enumerate(body[request_field]) if is_allowed(entry)}
    if len(allowed) == len(body[request_field]):
        return await answer(body)
    parts = [
        [entry for index, entry in enumerate(body[request_field]) if (index in allowed) is part]
        for part in (True, False)
    ]
    refused = refuse({**body, request_field: parts[1]}, REFUSED)
    if not parts[0]:
        return refused
    response = await answer({**body, request_field: parts[0]})
    return {**response, response_field: [*response[response_field], *refused[response_field]]}


def _on_topic(allows: Ask, name: str) -> int:
    return authorized_operations(
        ResourceType.TOPIC, lambda operation: allows(operation, ResourceType.TOPIC, name, quiet=True)
    )


def _on_cluster(allows: Ask) -> int:
    if not allows(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return 0
    return authorized_operations(
        ResourceType.CLUSTER, lambda operation: allows(operation, ResourceType.CLUSTER, CLUSTER_NAME, quiet=True)
    )


def _check_standby_may_relay(allows: Ask, key: ApiKey, context: RequestContext, body: Body) -> None:
    """Check a request that a standby would relay to a broker, which would answer it with the controller's rights.

    Raises CloseConnection if the answer could contain more than the caller may see.
    """
    if key not in {ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER}:
        return
    if body.get("include_cluster_authorized_operations") or body.get("include_topic_authorized_operations"):
        raise CloseConnection("this process is not the controller, and a broker would list the controller's own rights")
    if key is ApiKey.METADATA and not _describes_all(allows, context, body):
        raise CloseConnection(
            "this process is not the controller, and the client is not authorized to describe all requested topics"
        )


def _describes_all(allows: Ask, context: RequestContext, body: Body) -> bool:
    """Return whether the caller may describe all topics of a Metadata request and create them if that is requested."""
    if metadata.is_for_all_topics(context, body):
        return allows.on_all(Operation.DESCRIBE, ResourceType.TOPIC)
    names = [topic["name"] for topic in body["topics"]]
    if None in names:  # topics identified by id: only the controller knows their names
        return allows.on_all(Operation.DESCRIBE, ResourceType.TOPIC)
    creates = not body["allow_auto_topic_creation"] or allows(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    may_create = creates or all(allows(Operation.CREATE, ResourceType.TOPIC, name) for name in names)
    return may_create and all(allows(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names)


async def _describe_cluster(allows: Ask, _: CurrentCluster, answer: Answer, __: RequestContext, body: Body) -> Body:
    response = await answer(body)
    if body["include_cluster_authorized_operations"] and response["error_code"] == ErrorCode.NONE:
        response["cluster_authorized_operations"] = _on_cluster(allows)
    return response


async def _describe_topic_partitions(
    allows: Ask, cluster: CurrentCluster, answer: Answer, context: RequestContext, body: Body
) -> Body:
    def describes(name: str) -> bool:
        return allows(Operation.DESCRIBE, ResourceType.TOPIC, name)

    refused: list[Body] = []
    pace = ClientPace()  # short steps: all topics of the cluster may have to be authorized
    if body["topics"]:
        names: dict[str, bool] = {}
        for name in dict.fromkeys(topic["name"] for topic in body["topics"]):
            names[name] = describes(name)
            await pace.step_if_due()
        visible = [{"name": name} for name, is_visible in names.items() if is_visible]
        refused = [failed_topic(name, REFUSED.code) for name, is_visible in names.items() if not is_visible]
    elif (current := cluster()) is None:
        return topic_description.describe_topic_partitions_refused(context, body, responses.NOT_CONTROLLER)
    else:
        # The handler gets an explicit list, since the response's cursor contains the name of the next topic.
        visible = []
        for known in topic_description.known_topics(current):
            if describes(known.name):
                visible.append({"name": known.name})
            await pace.step_if_due()
        cursor = body["cursor"]
        if cursor is not None and all(topic["name"] != cursor["topic_name"] for topic in visible):
            visible = [topic for topic in visible if topic["name"] > cursor["topic_name"]]
            body = {**body, "cursor": None}
    if not visible:
        return {"topics": refused, "next_cursor": None}
    response = await answer({**body, "topics": visible})
    for topic in response["topics"]:
        topic["topic_authorized_operations"] = _on_topic(allows, topic["name"])
    return {**response, "topics": [*response["topics"], *refused]}


AUTHORIZED_BY_HANDLER = frozenset({ApiKey.METADATA})
"""Requests whose handlers apply the caller's rights themselves, since they return encoded responses."""

REQUEST_FILTERS: Mapping[ApiKey, RequestFilter] = {
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
}
