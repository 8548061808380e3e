"""CreatePartitions, versions 0 to 3 (KIP-195).

Each topic succeeds or fails separately. The response waits for the brokers as that of CreateTopics does.

Source: KafkaApis.handleCreatePartitionsRequest, ZkAdminManager.createPartitions.
"""

from collections.abc import Mapping
from functools import partial
from random import Random

from controller_core.model import Cluster, events
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.mutation_quotas import MutationQuotas
from controller_core.shell.admin.outcomes import Outcome, duplicates, error_fields, timed_out
from controller_core.shell.admin.waiting import wait_for_leaders
from controller_core.shell.random_topic_ids import draw_place
from kafka_node.context import RequestContext
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode, Failure

STRICT_QUOTA_FROM = 3
"""First version with THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


async def create_partitions(
    active: ActiveController, context: RequestContext, body: Body, random: Random, quotas: MutationQuotas
) -> Body:
    """Add partitions, wait until the brokers have them, and answer."""
    results: dict[str, Outcome] = dict(refuse_duplicates(body))
    event = create_partitions_event(body, random, frozenset(results))
    quota = await quotas.for_request(context, STRICT_QUOTA_FROM)
    if event.topics:
        results |= await quota.submit(active, event, partial(_partitions_added, event, _sizes(active.cluster, event)))
    added = [name for name, failure in results.items() if failure is None]
    if added and not body["validate_only"] and body["timeout_ms"] > 0:
        results |= await wait_for_leaders(active, added, body["timeout_ms"])
    return {**create_partitions_response(body, results), "throttle_time_ms": quota.throttle_ms()}


def _sizes(cluster: Cluster, event: events.CreatePartitions) -> dict[str, int]:
    """Count the partitions of topics before the request."""
    return {new.topic: len(cluster.topics[new.topic].rows) for new in event.topics if new.topic in cluster.topics}


def _partitions_added(event: events.CreatePartitions, before: Mapping[str, int], results: Mapping[str, Outcome]) -> int:
    if event.validate_only:
        return 0
    grown = (new for new in event.topics if results[new.topic] is None)
    return sum(max(0, new.count - before.get(new.topic, new.count)) for new in grown)


def refuse_duplicates(body: Body) -> dict[str, Failure]:
    """Refuse topics that are listed twice in the request."""
    names = duplicates(topic["name"] for topic in body["topics"])
    return {name: Failure(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.") for name in names}


def create_partitions_event(
    body: Body, random: Random, refused: frozenset[str] = frozenset()
) -> events.CreatePartitions:
    """Translate the topics that are not refused yet."""
    topics = [topic for topic in body["topics"] if topic["name"] not in refused]
    return events.CreatePartitions(tuple(_new_partitions(topic, random) for topic in topics), body["validate_only"])


def _new_partitions(topic: Body, random: Random) -> events.NewPartitions:
    given = topic["assignments"]
    assignments = None if given is None else [tuple(assignment["broker_ids"]) for assignment in given]
    return events.NewPartitions(topic["name"], topic["count"], assignments, draw_place(random), draw_place(random))


def create_partitions_response(body: Body, results: Mapping[str, Outcome]) -> Body:
    """Translate the outcome of each topic; a name that is listed twice is answered once."""
    no_time = not body["validate_only"] and body["timeout_ms"] <= 0
    late = timed_out("The partitions were added; the request's timeout left no time to wait for the brokers.")
    outcomes = {
        name: late if no_time and results[name] is None else results[name]
        for name in dict.fromkeys(topic["name"] for topic in body["topics"])
    }
    return {"results": [{"name": name, **error_fields(outcome)} for name, outcome in outcomes.items()]}


def create_partitions_refused(_context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer every topic with the same error."""
    names = dict.fromkeys(topic["name"] for topic in body["topics"])
    return {"results": [{"name": name, **error_fields(failure)} for name in names]}
