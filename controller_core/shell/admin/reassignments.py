"""AlterPartitionReassignments and ListPartitionReassignments, versions 0 and (KIP-860) 1 of the first, 0 of the second.

Nobody waits for a move's end: it may take hours, and the list shows how far it is (KIP-455).
Source: KafkaApis.handleAlterPartitionReassignmentsRequest, handleListPartitionReassignmentsRequest.
"""

from collections.abc import Iterable, Mapping

from controller_core.decisions.reassignment import RunningMove, running_moves
from controller_core.model import events
from controller_core.model.cluster import Cluster
from controller_core.model.ids import TopicPartition
from controller_core.model.move import Replicas
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.outcomes import Outcome, by_topic, error_fields
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode

Targets = Mapping[TopicPartition, Replicas | None]
"""Replicas to move to; None: the running move is to be cancelled."""


async def alter_reassignments(active: ActiveController, _context: RequestContext, body: Body) -> Body:
    """Start, change and cancel moves, and answer once this is written."""
    targets = asked_targets(body)
    refused: dict[TopicPartition, Outcome] = {}
    if not body["allow_replication_factor_change"]:
        refused |= refuse_other_replication_factors(active.cluster, targets)
    event = alter_reassignments_event(targets, refused)
    accepted: Mapping[TopicPartition, Outcome] = await active.submit(event) if event.targets else {}
    outcomes = {partition: refused.get(partition) or accepted.get(partition) for partition in targets}
    return alter_reassignments_response(body, outcomes)


def asked_targets(body: Body) -> Targets:
    """List the targets of a request; of two for one partition the last counts, as in Kafka."""
    return {
        TopicPartition(topic["name"], partition["partition_index"]): _replicas(partition)
        for topic in body["topics"]
        for partition in topic["partitions"]
    }


def _replicas(partition: Body) -> Replicas | None:
    return None if partition["replicas"] is None else tuple(partition["replicas"])


def refuse_other_replication_factors(cluster: Cluster, targets: Targets) -> dict[TopicPartition, Failure]:
    """Refuse targets of another size than now (KIP-860: a caller that read an old assignment shall not change it)."""
    refused: dict[TopicPartition, Failure] = {}
    for partition, target in targets.items():
        row = cluster.row_of(*partition)
        if target is None or row is None:
            continue
        move = cluster.moves.get(row)
        present = len(cluster.columns.replicas_of(row) if move is None else move.origin)
        if len(target) != present:
            words = f"The replication factor is changed from {present} to {len(target)}"
            refused[partition] = Failure(ErrorCode.INVALID_REPLICATION_FACTOR, words)
    return refused


def alter_reassignments_event(
    targets: Targets, refused: Mapping[TopicPartition, object] | None = None
) -> events.AlterReassignments:
    """Translate the targets that are not refused already."""
    return events.AlterReassignments(
        {partition: target for partition, target in targets.items() if partition not in (refused or {})}
    )


def alter_reassignments_response(body: Body, outcomes: Mapping[TopicPartition, Outcome]) -> Body:
    """Translate what became of each partition; a refused one refuses no other, so nothing is wrong at the top."""
    return {
        **error_fields(None),
        "allow_replication_factor_change": body["allow_replication_factor_change"],
        "responses": _responses(outcomes),
    }


def alter_reassignments_refused(_context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer at the top, and every partition with the same error."""
    return {**error_fields(failure), "responses": _responses(dict.fromkeys(asked_targets(body), failure))}


def _responses(outcomes: Mapping[TopicPartition, Outcome]) -> list[Body]:
    return [
        {"name": topic, "partitions": [{"partition_index": number, **error_fields(one)} for number, one in group]}
        for topic, group in by_topic(outcomes)
    ]


async def list_reassignments(active: ActiveController, _context: RequestContext, body: Body) -> Body:
    """List the moves that run, from the cluster as it is now."""
    return list_reassignments_response(running_moves(active.cluster, listed_partitions(body)))


def listed_partitions(body: Body) -> list[TopicPartition] | None:
    """List the partitions that are asked for; None: all that move."""
    if body["topics"] is None:
        return None
    return [TopicPartition(topic["name"], number) for topic in body["topics"] for number in topic["partition_indexes"]]


def list_reassignments_response(moves: Iterable[RunningMove]) -> Body:
    """Translate the moves that run."""
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
    """Answer at the top."""
    return {**error_fields(failure), "topics": []}
