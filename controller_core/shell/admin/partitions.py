"""APIs that change leaders and replicas of partitions: ElectLeaders, AlterPartitionReassignments and ListPartitionReassignments.

ElectLeaders, versions 0 to 2: preferred leaders (KIP-183), from version 1 on also unclean elections (KIP-460). A request without a list
of partitions is for all partitions; its response contains only those that needed an election. If leaders were elected, the response
waits until the live brokers have them.

AlterPartitionReassignments, versions 0 and 1 (KIP-860), and ListPartitionReassignments, version 0: the response does not wait for the
end of a move, which may take hours; the list shows its progress (KIP-455).

Source: KafkaApis.handleElectLeaders, handleAlterPartitionReassignmentsRequest and handleListPartitionReassignmentsRequest,
ElectLeadersRequest.getErrorResponse.
"""

from collections.abc import Iterable, Mapping

from controller_core.decisions import leader_elections, reassignment
from controller_core.model import Cluster, Replicas, TopicPartition, events
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.responses import Outcome, by_topic, error_fields, wait_for_brokers
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode, Failure

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
    while rows := leader_elections.election_candidates(active.cluster, row, MAX_PARTITIONS_PER_EVENT, unclean=unclean):
        row = rows[-1]
        names = tuple(active.cluster.name_of(row) for row in rows)
        found = await active.submit(events.ElectLeaders(names, unclean=unclean))
        results |= {
            name: failure
            for name, failure in found.items()
            if failure is None or failure.code != ErrorCode.ELECTION_NOT_NEEDED
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
                "partition_result": [{"partition_id": number, **error_fields(failure)} for number, failure in group],
            }
            for topic, group in by_topic(results)
        ]
    }


def elect_leaders_refused(context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer every partition with the same error, and with a top-level error in versions that have it."""
    response = elect_leaders_response(dict.fromkeys(_partitions(body), failure))
    return {**response, "error_code": failure.code} if context.api_version >= TOP_LEVEL_ERROR_FROM else response


Targets = Mapping[TopicPartition, Replicas | None]
"""Target replicas; None cancels the running move."""


async def alter_reassignments(active: ActiveController, _context: RequestContext, body: Body) -> Body:
    """Start, change and cancel moves, and answer after the commit."""
    targets = requested_targets(body)
    refused: dict[TopicPartition, Outcome] = {}
    if not body["allow_replication_factor_change"]:
        refused |= refuse_changed_replication_factors(active.cluster, targets)
    event = alter_reassignments_event(targets, refused)
    accepted: Mapping[TopicPartition, Outcome] = await active.submit(event) if event.targets else {}
    outcomes = {partition: refused.get(partition) or accepted.get(partition) for partition in targets}
    return alter_reassignments_response(body, outcomes)


def requested_targets(body: Body) -> Targets:
    """Return the targets of a request; of two for one partition the last one is used, as in Kafka."""
    return {
        TopicPartition(topic["name"], partition["partition_index"]): _replicas(partition)
        for topic in body["topics"]
        for partition in topic["partitions"]
    }


def _replicas(partition: Body) -> Replicas | None:
    return None if partition["replicas"] is None else tuple(partition["replicas"])


def refuse_changed_replication_factors(cluster: Cluster, targets: Targets) -> dict[TopicPartition, Failure]:
    """Refuse targets that change the replication factor (KIP-860: the caller may have read an outdated assignment)."""
    refused: dict[TopicPartition, Failure] = {}
    for partition, target in targets.items():
        row = cluster.row_of(*partition)
        if target is None or row is None:
            continue
        move = cluster.moves.get(row)
        current = len(cluster.columns.replicas_of(row) if move is None else move.origin)
        if len(target) != current:
            message = f"The replication factor is changed from {current} to {len(target)}"
            refused[partition] = Failure(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    return refused


def alter_reassignments_event(
    targets: Targets, refused: Mapping[TopicPartition, object] | None = None
) -> events.AlterReassignments:
    """Translate the targets that are not refused yet."""
    return events.AlterReassignments(
        {partition: target for partition, target in targets.items() if partition not in (refused or {})}
    )


def alter_reassignments_response(body: Body, outcomes: Mapping[TopicPartition, Outcome]) -> Body:
    """Translate the outcome of each partition. There is no top-level error, since partitions are refused separately."""
    return {
        **error_fields(None),
        "allow_replication_factor_change": body["allow_replication_factor_change"],
        "responses": _responses(outcomes),
    }


def alter_reassignments_refused(_context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer with a top-level error, and every partition with the same error."""
    return {**error_fields(failure), "responses": _responses(dict.fromkeys(requested_targets(body), failure))}


def _responses(outcomes: Mapping[TopicPartition, Outcome]) -> list[Body]:
    return [
        {
            "name": topic,
            "partitions": [{"partition_index": number, **error_fields(failure)} for number, failure in group],
        }
        for topic, group in by_topic(outcomes)
    ]


async def list_reassignments(active: ActiveController, _context: RequestContext, body: Body) -> Body:
    """List the running moves from the current state of the cluster."""
    return list_reassignments_response(reassignment.running_moves(active.cluster, listed_partitions(body)))


def listed_partitions(body: Body) -> list[TopicPartition] | None:
    """Return the requested partitions; None: all partitions with a running move."""
    if body["topics"] is None:
        return None
    return [TopicPartition(topic["name"], number) for topic in body["topics"] for number in topic["partition_indexes"]]


def list_reassignments_response(moves: Iterable[reassignment.RunningMove]) -> Body:
    """Translate running moves."""
    topics: dict[str, list[Body]] = {}
    for move in moves:
        line = {
            "partition_index": move.partition.partition,
            "replicas": list(move.replicas),
            "adding_replicas": list(move.adding),
            "removing_replicas": list(move.removing),
        }
        topics.setdefault(move.partition.topic, []).append(line)
    listed = [{"name": name, "partitions": partitions} for name, partitions in topics.items()]
    return {**error_fields(None), "topics": listed}


def list_reassignments_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer with a top-level error."""
    return {**error_fields(failure), "topics": []}
