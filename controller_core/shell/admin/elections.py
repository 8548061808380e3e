"""ElectLeaders, versions 0 to 2: preferred leaders (KIP-183), from version 1 on also unclean ones (KIP-460).

No list of partitions means all; the answer then names those alone that needed an election. Once leaders are elected, the
caller is kept until the live brokers know them, or a second at most.

Source: KafkaApis.handleElectLeaders, ElectLeadersRequest.getErrorResponse.
"""

from collections.abc import Mapping

from controller_core.decisions.leader_elections import election_candidates
from controller_core.model import events
from controller_core.model.ids import TopicPartition
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.outcomes import Outcome, by_topic, error_fields
from controller_core.shell.admin.waiting import brokers_answered
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode

PREFERRED, UNCLEAN = 0, 1
"""ElectionType; version 0 has no field for it and means PREFERRED, which is the field's default."""
TOP_LEVEL_ERROR_FROM = 1
ELECTED_AT_ONCE = 1_000
"""Partitions of one event where all are asked for: 10 ms of the event loop."""


async def elect_leaders(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Elect, wait until brokers know the leaders, answer."""
    if body["election_type"] not in {PREFERRED, UNCLEAN}:
        words = f"Unknown election type {body['election_type']}."
        return elect_leaders_refused(context, body, Failure(ErrorCode.INVALID_REQUEST, words))
    event = elect_leaders_event(body)
    results: Mapping[TopicPartition, Outcome]
    if event.partitions is None:
        results = await _elect_everywhere(active, unclean=event.unclean)
    else:
        results = await active.submit(event)
    if any(failure is None for failure in results.values()):
        await brokers_answered(active, body["timeout_ms"])
    return elect_leaders_response(results)


async def _elect_everywhere(active: ActiveController, *, unclean: bool) -> dict[TopicPartition, Outcome]:
    """Elect for all partitions that need it, some at a time: other events run in between."""
    results: dict[TopicPartition, Outcome] = {}
    row = -1
    while rows := election_candidates(active.cluster, row, ELECTED_AT_ONCE, unclean=unclean):
        row = rows[-1]
        names = tuple(active.cluster.name_of(one) for one in rows)
        found = await active.submit(events.ElectLeaders(names, unclean=unclean))
        results |= {
            name: one for name, one in found.items() if one is None or one.code != ErrorCode.ELECTION_NOT_NEEDED
        }
    return results


def elect_leaders_event(body: Body) -> events.ElectLeaders:
    """Translate the request; a partition that stands twice is meant once."""
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
    """Translate what became of each partition."""
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
    """Answer every partition with the same error, and say it at the top where the version has a place for it there."""
    response = elect_leaders_response(dict.fromkeys(_partitions(body), failure))
    return {**response, "error_code": failure.code} if context.api_version >= TOP_LEVEL_ERROR_FROM else response
