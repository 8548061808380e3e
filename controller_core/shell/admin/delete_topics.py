"""DeleteTopics, versions 0 to 6: by name, from version 6 on also by id.

The response waits until the deletions have ended. A topic that still exists when the request's timeout passes is answered with
REQUEST_TIMED_OUT, and its deletion continues. A repeated request waits for the same deletion.

Source: KafkaApis.handleDeleteTopicsRequest, ZkAdminManager.deleteTopics.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from controller_core.model import Cluster, events
from controller_core.shell.active import ActiveController
from controller_core.shell.admin import responses
from controller_core.shell.admin.mutation_quotas import MutationQuotas
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode, Failure

IDS_FROM = 6
"""First version in which topics may be identified by id."""
STRICT_QUOTA_FROM = 5
"""First version with THROTTLING_QUOTA_EXCEEDED (KIP-599)."""
DELETION_DISABLED_FROM = 3
"""First version with TOPIC_DELETION_DISABLED; earlier versions get INVALID_REQUEST (KAFKA-5975)."""


@dataclass(frozen=True, slots=True)
class RequestedTopic:
    """One topic of a request; `failure` if it does not identify a topic."""

    name: str | None
    topic_id: UUID
    failure: responses.Outcome = None


async def delete_topics(active: ActiveController, context: RequestContext, body: Body, quotas: MutationQuotas) -> Body:
    """Start the deletion of topics, wait until they are deleted, and answer."""
    defaults = await responses.wait_for_defaults(active, body["timeout_ms"])
    if isinstance(defaults, Failure):
        return delete_topics_refused(context, body, defaults)
    if not defaults.delete_topic_enable:
        return delete_topics_refused(context, body, deletion_disabled(context))
    requested = resolve(active.cluster, requested_topics(context, body))
    event = delete_topics_event(requested)
    quota = await quotas.for_request(context, STRICT_QUOTA_FROM)
    sizes = {name: len(active.cluster.topics[name].rows) for name in event.names if name in active.cluster.topics}
    results: Mapping[str, responses.Outcome] = {}
    if event.names:
        results = await quota.submit(active, event, partial(_partitions_deleted, sizes))
    queued = [name for name, failure in results.items() if failure is None]
    deleted = await deleted_in_time(active, queued, body["timeout_ms"])
    return {**delete_topics_response(requested, results, deleted), "throttle_time_ms": quota.throttle_ms()}


def _partitions_deleted(sizes: Mapping[str, int], results: Mapping[str, responses.Outcome]) -> int:
    return sum(sizes.get(name, 0) for name, failure in results.items() if failure is None)


def deletion_disabled(context: RequestContext) -> Failure:
    """Return the error for a cluster that does not allow the deletion of topics (delete.topic.enable=false)."""
    has_code = context.api_version >= DELETION_DISABLED_FROM
    code = ErrorCode.TOPIC_DELETION_DISABLED if has_code else ErrorCode.INVALID_REQUEST
    return Failure(code, ErrorCode.TOPIC_DELETION_DISABLED.message)


def requested_topics(context: RequestContext, body: Body) -> list[RequestedTopic]:
    """List the topics of a request in order."""
    if context.api_version < IDS_FROM:
        return [RequestedTopic(name, responses.NO_TOPIC_ID) for name in body["topic_names"]]
    return [RequestedTopic(topic["name"], topic["topic_id"]) for topic in body["topics"]]


def resolve(cluster: Cluster, requested: Iterable[RequestedTopic]) -> list[RequestedTopic]:
    """Add the names of topics that are identified by id, and refuse entries with both a name and an id or with neither."""
    return [_resolve(cluster, topic) for topic in requested]


def _resolve(cluster: Cluster, topic: RequestedTopic) -> RequestedTopic:
    has_id = topic.topic_id != responses.NO_TOPIC_ID
    if topic.name is not None and has_id:
        message = "Topic name and topic ID can not both be specified."
        return RequestedTopic(topic.name, topic.topic_id, Failure(ErrorCode.INVALID_REQUEST, message))
    if topic.name is None and not has_id:
        message = "Neither topic name nor id were specified."
        return RequestedTopic(None, topic.topic_id, Failure(ErrorCode.INVALID_REQUEST, message))
    if topic.name is not None:
        return topic
    name = cluster.topic_name(topic.topic_id)
    if name is None:
        return RequestedTopic(
            None, topic.topic_id, Failure(ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID.message)
        )
    return RequestedTopic(name, topic.topic_id)


def delete_topics_event(requested: Iterable[RequestedTopic]) -> events.DeleteTopics:
    """Translate the topics that were identified, each once."""
    names = dict.fromkeys(topic.name for topic in requested if topic.failure is None and topic.name is not None)
    return events.DeleteTopics(tuple(names))


async def deleted_in_time(active: ActiveController, names: Iterable[str], timeout_ms: int) -> frozenset[str]:
    """Wait for all deletions in parallel. Returns the topics whose deletion ended; none if there is no time, as in Kafka."""
    if timeout_ms <= 0:
        return frozenset()
    waited = list(names)
    deleted = await asyncio.gather(
        *(active.topic_removed(name, min(timeout_ms, responses.MAX_WAIT_MS)) for name in waited)
    )
    return frozenset(name for name, is_deleted in zip(waited, deleted, strict=True) if is_deleted)


def delete_topics_response(
    requested: Iterable[RequestedTopic], results: Mapping[str, responses.Outcome], deleted: frozenset[str]
) -> Body:
    """Translate the outcome of each topic."""
    return {"responses": [_response(topic, _outcome(topic, results, deleted)) for topic in requested]}


def _outcome(
    topic: RequestedTopic, results: Mapping[str, responses.Outcome], deleted: frozenset[str]
) -> responses.Outcome:
    if topic.failure is not None or topic.name is None:
        return topic.failure
    failure = results[topic.name]
    if failure is None and topic.name not in deleted:
        return responses.timed_out("The topic is marked for deletion and is not deleted yet; its deletion continues.")
    return failure


def _response(topic: RequestedTopic, outcome: responses.Outcome) -> Body:
    return {"name": topic.name, "topic_id": topic.topic_id, **responses.error_fields(outcome)}


def delete_topics_refused(context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer every topic with the same error."""
    return {"responses": [_response(topic, failure) for topic in requested_topics(context, body)]}
