"""ElectLeaders, versions 0 to 2: preferred leaders (KIP-183), from version 1 on also unclean elections (KIP-460).

A request without a list of partitions is for all partitions; its response contains only those that needed an election. If leaders were
elected, the response waits until the live brokers have them (`waiting`).

Source: KafkaApis.handleElectLeaders, ElectLeadersRequest.getErrorResponse.
"""

from collections.abc import Mapping

from controller_core.decisions.leader_elections import election_candidates
from controller_core.model import TopicPartition, events
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.outcomes import Outcome, by_topic, error_fields
from controller_core.shell.admin.waiting import wait_for_brokers
from kafka_node.context import RequestContext
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode, Failure

PREFERRED, UNCLEAN = 0, 1
"""ElectionType; version 0 lacks the field, whose default is PREFERRED."""
TOP_LEVEL_ERROR_FROM = 1
"""First version with a top-level error."""
MAX_PARTITIONS_PER_EVENT = 1_000
"""Limit where an election is for all partitions: 10 ms of the event loop."""


async def elect_leaders(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Elect leaders, wait until the brokers have them, and answer."""
    if body["election_type"] not in {PREFERRED, UNCLEAN}:
        message = f"Unknown election type {body['election_type']}."
        return elect_leaders_refused(context, body, Failure(ErrorCode.INVALID_REQUEST, message))
    event = elect_leaders_event(body)
    results: Mapping[TopicPartition, Outcome]
    if event.partitions is None:
        results = await _elect_everywhere(active, unclean=event.unclean)
    else:
        results = await active.submit(event)
    if any(failure is None for failure in results.values()):
        await wait_for_brokers(active, body["timeout_ms"])
    return elect_leaders_response(results)


async def _elect_everywhere(active: ActiveController, *, unclean: bool) -> dict[TopicPartition, Outcome]:
    """Elect leaders of all partitions that need it, in batches: other events are processed in between."""
    results: dict[TopicPartition, Outcome] = {}
    row = -1
    while rows := election_candidates(active.cluster, row, MAX_PARTITIONS_PER_EVENT, unclean=unclean):
        row = rows[-1]
        names = tuple(active.cluster.name_of(one) for one in rows)
        found = await active.submit(events.ElectLeaders(names, unclean=unclean))
        results |= {
            name: one for name, one in found.items() if one is None or one.code != ErrorCode.ELECTION_NOT_NEEDED
        }
    return results


def elect_leaders_event(body: Body) -> events.ElectLeaders:
    """Translate the request; a partition that is listed twice is elected once."""
    named = body["topic_partitions"]
    partitions = None if named is None else tuple(dict.fromkeys(_partitions(body)))
    return events.ElectLeaders(partitions, unclean=body["election_type"] == UNCLEAN)


def _partitions(body: Body) -> list[TopicPartition]:
    return [
        TopicPartition(topic["topic"], partition)
        for topic in body["topic_partitions"] or []
        for partition in topic["partitions"]
    ]


def elect_leaders_response(results: Mapping[TopicPartition, Outcome]) -> Body:
    """Translate the outcome of each partition."""
    return {
        "replica_election_results": [
            {
                "topic": topic,
                "partition_result": [{"partition_id": number, **error_fields(one)} for number, one in group],
            }
            for topic, group in by_topic(results)
        ]
    }


def elect_leaders_refused(context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer every partition with the same error, and with a top-level error in versions that have it."""
    response = elect_leaders_response(dict.fromkeys(_partitions(body), failure))
    return {**response, "error_code": failure.code} if context.api_version >= TOP_LEVEL_ERROR_FROM else response
