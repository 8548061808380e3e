"""DeleteTopics, versions 0 to 6: by name, from version 6 on also by id; the caller waits for the end.

A topic that is not gone when the request's timeout passes is answered REQUEST_TIMED_OUT, and its deletion goes on. Whoever
asks again for a topic that is being deleted waits for the same end.

Source: KafkaApis.handleDeleteTopicsRequest, ZkAdminManager.deleteTopics.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from controller_core.model import events
from controller_core.model.cluster import Cluster
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.mutation_quotas import MutationQuotas
from controller_core.shell.admin.outcomes import NO_TOPIC_ID, Outcome, error_fields, timed_out
from controller_core.shell.admin.waiting import MAX_WAIT_MS, known_defaults
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode

IDS_FROM = 6
REFUSES_FROM = 5
"""Versions from here on know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""
DELETION_DISABLED_FROM = 3
"""Versions below have no code for it and say INVALID_REQUEST (KAFKA-5975)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One topic of a request, as far as it can be told which one is meant."""

    name: str | None
    topic_id: UUID
    failure: Outcome = None


async def delete_topics(active: ActiveController, context: RequestContext, body: Body, quotas: MutationQuotas) -> Body:
    """Queue topics for deletion, wait until they are gone, answer."""
    defaults = await known_defaults(active, body["timeout_ms"])
    if isinstance(defaults, Failure):
        return delete_topics_refused(context, body, defaults)
    if not defaults.delete_topic_enable:
        return delete_topics_refused(context, body, deletion_disabled(context))
    asked = resolve(active.cluster, asked_topics(context, body))
    event = delete_topics_event(asked)
    spender = await quotas.spender(context, REFUSES_FROM)
    sizes = {name: len(active.cluster.topics[name].rows) for name in event.names if name in active.cluster.topics}
    results: Mapping[str, Outcome] = {}
    if event.names:
        results = await spender.submit(active, event, partial(_partitions_deleted, sizes))
    queued = [name for name, failure in results.items() if failure is None]
    gone = await gone_in_time(active, queued, body["timeout_ms"])
    return {**delete_topics_response(asked, results, gone), "throttle_time_ms": spender.throttle_ms()}


def _partitions_deleted(sizes: Mapping[str, int], results: Mapping[str, Outcome]) -> int:
    return sum(sizes.get(name, 0) for name, failure in results.items() if failure is None)


def deletion_disabled(context: RequestContext) -> Failure:
    """Say that the cluster's settings do not allow to delete topics (delete.topic.enable)."""
    known = context.api_version >= DELETION_DISABLED_FROM
    code = ErrorCode.TOPIC_DELETION_DISABLED if known else ErrorCode.INVALID_REQUEST
    return Failure(code, ErrorCode.TOPIC_DELETION_DISABLED.message)


def asked_topics(context: RequestContext, body: Body) -> list[Asked]:
    """List the topics of a request, in its order."""
    if context.api_version < IDS_FROM:
        return [Asked(name, NO_TOPIC_ID) for name in body["topic_names"]]
    return [Asked(topic["name"], topic["topic_id"]) for topic in body["topics"]]


def resolve(cluster: Cluster, asked: Iterable[Asked]) -> list[Asked]:
    """Find the names of those that are asked for by id, and refuse what names no topic or two."""
    return [_resolve(cluster, topic) for topic in asked]


def _resolve(cluster: Cluster, topic: Asked) -> Asked:
    has_id = topic.topic_id != NO_TOPIC_ID
    if topic.name is not None and has_id:
        words = "Topic name and topic ID can not both be specified."
        return Asked(topic.name, topic.topic_id, Failure(ErrorCode.INVALID_REQUEST, words))
    if topic.name is None and not has_id:
        words = "Neither topic name nor id were specified."
        return Asked(None, topic.topic_id, Failure(ErrorCode.INVALID_REQUEST, words))
    if topic.name is not None:
        return topic
    name = cluster.topic_name(topic.topic_id)
    if name is None:
        return Asked(None, topic.topic_id, Failure(ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID.message))
    return Asked(name, topic.topic_id)


def delete_topics_event(asked: Iterable[Asked]) -> events.DeleteTopics:
    """Translate the topics that it is clear of which is meant, each once."""
    names = dict.fromkeys(topic.name for topic in asked if topic.failure is None and topic.name is not None)
    return events.DeleteTopics(tuple(names))


async def gone_in_time(active: ActiveController, names: Iterable[str], timeout_ms: int) -> frozenset[str]:
    """Wait for the end of deletions, of all at once; tells which ended. With no time, none is looked at, as in Kafka."""
    if timeout_ms <= 0:
        return frozenset()
    waited = list(names)
    gone = await asyncio.gather(*(active.topic_removed(name, min(timeout_ms, MAX_WAIT_MS)) for name in waited))
    return frozenset(name for name, is_gone in zip(waited, gone, strict=True) if is_gone)


def delete_topics_response(asked: Iterable[Asked], results: Mapping[str, Outcome], gone: frozenset[str]) -> Body:
    """Translate what became of each topic."""
    return {"responses": [_response(topic, _outcome(topic, results, gone)) for topic in asked]}


def _outcome(topic: Asked, results: Mapping[str, Outcome], gone: frozenset[str]) -> Outcome:
    if topic.failure is not None or topic.name is None:
        return topic.failure
    failure = results[topic.name]
    if failure is None and topic.name not in gone:
        return timed_out("The topic is marked for deletion and is not gone yet; its deletion goes on.")
    return failure


def _response(topic: Asked, outcome: Outcome) -> Body:
    return {"name": topic.name, "topic_id": topic.topic_id, **error_fields(outcome)}


def delete_topics_refused(context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer every topic with the same error."""
    return {"responses": [_response(topic, failure) for topic in asked_topics(context, body)]}
