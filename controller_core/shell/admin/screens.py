"""Requests that are judged topic by topic: what the caller may do goes on to the handler, the rest is refused beside it.

    request ──► topics that the caller may … ──► handler ──► answer ──┐
                  │ all others                                        ├──► answer
                  └──► refused, as the API refuses a topic ───────────┘

A topic that the caller may not describe is not shown: asked for by name it is refused whether it is there or not, asked for by id
it is refused without its name, and a list of all topics leaves it out.

Source: KafkaApis.handleCreateTopicsRequest, handleDeleteTopicsRequest, handleCreatePartitionsRequest,
handleTopicMetadataRequest, DescribeTopicPartitionsRequestHandler.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast
from uuid import UUID

from controller_core.model.cluster import Cluster
from controller_core.shell.admin.computation_steps import Pace
from controller_core.shell.admin.create_partitions import create_partitions_refused
from controller_core.shell.admin.create_topics import create_topics_refused
from controller_core.shell.admin.metadata import is_for_all_topics
from controller_core.shell.admin.outcomes import NO_TOPIC_ID, NOT_CONTROLLER, error_fields
from controller_core.shell.admin.topic_description import describe_topic_partitions_refused, failed_topic, known_topics
from controller_core.shell.front.handler import RelayInstead, RequestHandler
from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.authorization.authorized_operations import SUPPORTED, authorized_operations
from kafka_node.authorization.guard import Ask, Guard
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.encoded_body import EncodedBody
from kafka_wire.errors import ErrorCode
from kafka_wire.net.server import CloseConnection

REFUSED = Failure(ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED.message)
DELETE_BY_STRUCTS_FROM = 6
"""DeleteTopics: the version from which topics are named in structs, which may have an id."""
NOT_TOLD = -1

NowCluster = Callable[[], Cluster | None]
"""Gives the cluster as this process knows it now; None while it does not hold it."""
Answer = Callable[[Body], Awaitable[Body]]
Screen = Callable[[Ask, NowCluster, Answer, RequestContext, Body], Awaitable[Body]]


def screened(
    handlers: Mapping[ApiKey, RequestHandler], guard: Guard, cluster: NowCluster, settled: Callable[[], Awaitable[None]]
) -> dict[ApiKey, RequestHandler]:
    """Put the screens before their handlers. `settled` waits while a tenure is about to begin, as handlers do."""

    async def behind(
        key: ApiKey, screen: Screen, handler: RequestHandler, context: RequestContext, body: Body
    ) -> Body | EncodedBody:
        await settled()
        ask = guard.asking(context)
        try:
            return await screen(ask, cluster, cast(Answer, partial(handler, context)), context, body)
        except RelayInstead:
            check_standby(key, context, body)
            raise

    async def with_rights(
        key: ApiKey, handler: RequestHandler, context: RequestContext, body: Body
    ) -> Body | EncodedBody:
        await settled()
        try:
            return await handler(replace(context, rights=CallerRights(guard, context)), body)
        except RelayInstead:
            check_standby(key, context, body)
            raise

    def check_standby(key: ApiKey, context: RequestContext, body: Body) -> None:
        if cluster() is None:
            _check_standby_may_pass_on(guard.asking(context), key, context, body)

    return {
        **handlers,
        **{key: partial(behind, key, screen, handlers[key]) for key, screen in SCREENS.items() if key in handlers},
        **{key: partial(with_rights, key, handlers[key]) for key in GIVEN_RIGHTS if key in handlers},
    }


class CallerRights:
    """Implements `TopicRights` for one caller."""

    def __init__(self, guard: Guard, context: RequestContext) -> None:
        self._guard = guard
        self._context = context
        self._ask = guard.asking(context)

    def describes_every_topic(self) -> bool:
        """Whether nothing denies DESCRIBE on any topic, and an ACL or a setting allows it on all."""
        return self._guard.allows_on_all(self._context, Operation.DESCRIBE, ResourceType.TOPIC)

    def describes(self, name: str) -> bool:
        """Judge DESCRIBE on a topic."""
        return self._ask(Operation.DESCRIBE, ResourceType.TOPIC, name)

    def creates(self, name: str | None = None) -> bool:
        """Judge CREATE on a topic, or on the cluster."""
        if name is None:
            return self._ask(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
        return self._ask(Operation.CREATE, ResourceType.TOPIC, name)

    def on_every_topic(self) -> int | None:
        """Return all operations where each is allowed on all topics; else they have to be judged topic by topic."""
        operations = SUPPORTED[ResourceType.TOPIC]
        everywhere = all(self._guard.allows_on_all(self._context, one, ResourceType.TOPIC) for one in operations)
        return authorized_operations(ResourceType.TOPIC) if everywhere else None

    def on_topic(self, name: str) -> int:
        """Judge each operation on a topic."""
        return _on_topic(self._ask, name)

    def on_cluster(self) -> int:
        """Judge each operation on the cluster; without DESCRIBE there are none to show."""
        return _on_cluster(self._ask)


async def _create_topics(ask: Ask, _: NowCluster, answer: Answer, context: RequestContext, body: Body) -> Body:
    every = ask(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)

    def may(topic: Body) -> bool:
        return every or ask(Operation.CREATE, ResourceType.TOPIC, topic["name"])

    refuse = partial(create_topics_refused, context)
    response = await _divided("topics", "topics", may, refuse, answer, body)
    for topic in response["topics"]:
        described = topic["error_code"] != ErrorCode.NONE or topic.get("configs") is None
        if not described and not ask(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic["name"]):
            topic["topic_config_error_code"] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            topic |= {"configs": None, "num_partitions": NOT_TOLD, "replication_factor": NOT_TOLD}
    return response


async def _create_partitions(ask: Ask, _: NowCluster, answer: Answer, context: RequestContext, body: Body) -> Body:
    def may(topic: Body) -> bool:
        return ask(Operation.ALTER, ResourceType.TOPIC, topic["name"])

    return await _divided("topics", "results", may, partial(create_partitions_refused, context), answer, body)


async def _delete_topics(ask: Ask, cluster: NowCluster, answer: Answer, context: RequestContext, body: Body) -> Body:
    field = "topics" if context.api_version >= DELETE_BY_STRUCTS_FROM else "topic_names"
    now = cluster()
    asked = [_Asked.of(topic, now) for topic in body[field]]
    # A topic that nobody knows by its id is not passed on: were it made meanwhile, it would be deleted without a question.
    refusals = {index: failure for index, topic in enumerate(asked) if (failure := topic.refuse(ask, now)) is not None}
    passed = [topic for index, topic in enumerate(body[field]) if index not in refusals]
    response = await answer({**body, field: passed}) if passed else {"responses": []}
    refused = [asked[index].refused(ask, failure) for index, failure in refusals.items()]
    return {**response, "responses": [*response["responses"], *refused]}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A topic that is to be deleted: `name` is None where it is asked for by an id that no topic has."""

    name: str | None
    topic_id: UUID
    by_id: bool

    @classmethod
    def of(cls, topic: Any, now: Cluster | None) -> "_Asked":
        if isinstance(topic, str):
            return cls(topic, NO_TOPIC_ID, by_id=False)
        if topic["name"] is not None or topic["topic_id"] == NO_TOPIC_ID:
            return cls(topic["name"], topic["topic_id"], by_id=False)
        return cls(None if now is None else now.topic_name(topic["topic_id"]), topic["topic_id"], by_id=True)

    def refuse(self, ask: Ask, now: Cluster | None) -> Failure | None:
        if self.name is not None:
            return None if ask(Operation.DELETE, ResourceType.TOPIC, self.name) else REFUSED
        if not self.by_id:
            return None  # neither name nor id: the handler has the words for it
        unknown = Failure(ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID.message)
        return NOT_CONTROLLER if now is None else unknown

    def refused(self, ask: Ask, failure: Failure) -> Body:
        shown = self.name is not None and (not self.by_id or ask(Operation.DESCRIBE, ResourceType.TOPIC, self.name))
        return {"name": self.name if shown else None, "topic_id": self.topic_id, **error_fields(failure)}


async def _divided(
    asked: str,
    answered: str,
    may: Callable[[Any], bool],
    refuse: Callable[[Body, Failure], Body],
    answer: Answer,
    body: Body,
) -> Body:
    """Answer some elements of a request, and refuse the others."""
    allowed = {index for index, each in enumerate(body[asked]) if may(each)}
    if len(allowed) == len(body[asked]):
        return await answer(body)
    parts = [[each for index, each in enumerate(body[asked]) if (index in allowed) is part] for part in (True, False)]
    refused = refuse({**body, asked: parts[1]}, REFUSED)
    if not parts[0]:
        return refused
    response = await answer({**body, asked: parts[0]})
    return {**response, answered: [*response[answered], *refused[answered]]}


def _on_topic(ask: Ask, name: str) -> int:
    return authorized_operations(
        ResourceType.TOPIC, lambda operation: ask(operation, ResourceType.TOPIC, name, quiet=True)
    )


def _on_cluster(ask: Ask) -> int:
    if not ask(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return 0
    return authorized_operations(
        ResourceType.CLUSTER, lambda operation: ask(operation, ResourceType.CLUSTER, CLUSTER_NAME, quiet=True)
    )


def _check_standby_may_pass_on(ask: Ask, key: ApiKey, context: RequestContext, body: Body) -> None:
    """Refuse a request that a standby would pass on to a broker, which would answer it with the controller's rights.

    Raises CloseConnection where such an answer could contain more than the caller may see.
    """
    if key not in {ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER}:
        return
    if body.get("include_cluster_authorized_operations") or body.get("include_topic_authorized_operations"):
        raise CloseConnection("this process is not the controller, and a broker would list the controller's own rights")
    if key is ApiKey.METADATA and not _describes_all(ask, context, body):
        raise CloseConnection(
            "this process is not the controller, and its client may not describe all topics asked for"
        )


def _describes_all(ask: Ask, context: RequestContext, body: Body) -> bool:
    """Whether the caller may see everything that a Metadata request asks for, and create the topics it names."""
    if is_for_all_topics(context, body):
        return ask.on_all(Operation.DESCRIBE, ResourceType.TOPIC)
    names = [topic["name"] for topic in body["topics"]]
    if None in names:  # topics asked for by id: only the controller could tell their names
        return ask.on_all(Operation.DESCRIBE, ResourceType.TOPIC)
    creates = not body["allow_auto_topic_creation"] or ask(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    may_create = creates or all(ask(Operation.CREATE, ResourceType.TOPIC, name) for name in names)
    return may_create and all(ask(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names)


async def _describe_cluster(ask: Ask, _: NowCluster, answer: Answer, __: RequestContext, body: Body) -> Body:
    response = await answer(body)
    if body["include_cluster_authorized_operations"] and response["error_code"] == ErrorCode.NONE:
        response["cluster_authorized_operations"] = _on_cluster(ask)
    return response


async def _describe_topic_partitions(
    ask: Ask, cluster: NowCluster, answer: Answer, context: RequestContext, body: Body
) -> Body:
    def describes(name: str) -> bool:
        return ask(Operation.DESCRIBE, ResourceType.TOPIC, name)

    refused: list[Body] = []
    pace = Pace()  # short steps: there may be as many topics to judge as the cluster has
    if body["topics"]:
        names: dict[str, bool] = {}
        for name in dict.fromkeys(topic["name"] for topic in body["topics"]):
            names[name] = describes(name)
            await pace.step_if_due()
        passed = [{"name": name} for name, allowed in names.items() if allowed]
        refused = [failed_topic(name, REFUSED.code) for name, allowed in names.items() if not allowed]
    elif (now := cluster()) is None:
        return describe_topic_partitions_refused(context, body, NOT_CONTROLLER)
    else:
        # Named one by one, since the answer's cursor names the topic that comes next.
        passed = []
        for known in known_topics(now):
            if describes(known.name):
                passed.append({"name": known.name})
            await pace.step_if_due()
        cursor = body["cursor"]
        if cursor is not None and all(topic["name"] != cursor["topic_name"] for topic in passed):
            passed = [topic for topic in passed if topic["name"] > cursor["topic_name"]]
            body = {**body, "cursor": None}
    if not passed:
        return {"topics": refused, "next_cursor": None}
    response = await answer({**body, "topics": passed})
    for topic in response["topics"]:
        topic["topic_authorized_operations"] = _on_topic(ask, topic["name"])
    return {**response, "topics": [*response["topics"], *refused]}


GIVEN_RIGHTS = frozenset({ApiKey.METADATA})
"""Requests whose handlers apply the caller's rights themselves, since their answers are encoded when they return."""

SCREENS: Mapping[ApiKey, Screen] = {
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
}
