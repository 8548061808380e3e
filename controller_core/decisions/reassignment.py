"""Reassignment of replicas (KIP-455): the moves that a request asks for, and the list of running ones.

Goals: a partition keeps its old replicas until every target replica is in sync (C9); a controller that takes over at any
point finishes the move from the written lists; no broker keeps an unknown log.

Choosing targets is in `rules.placement`, starting and ending moves in the `moves` of each mode; waves and throttles are in the operator.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from controller_core.model import Cluster, Move, MoveStage, Replicas, TopicPartition, columns, events
from controller_core.model.move import current_replicas, plan_move, without
from kafka_wire import ErrorCode, Failure

Results = Mapping[TopicPartition, Failure | None]
"""Why each move is refused; None: it is valid, or there is nothing to do."""


@dataclass(frozen=True, slots=True)
class PlannedMoves:
    """The valid moves of a request, and the results of all that it asks for."""

    moves: Mapping[str, Mapping[int, Move]]
    """By topic and partition id; without partitions that already have or are moving to their target."""
    results: Results


def plan_moves(cluster: Cluster, event: events.AlterReassignments) -> PlannedMoves:
    """Check and plan each target independently of the others."""
    results: dict[TopicPartition, Failure | None] = {}
    moves: dict[str, dict[int, Move]] = {}
    for partition, target in event.targets.items():
        planned = None if _was_cancelled(cluster, partition, event) else _plan(cluster, partition, target)
        results[partition] = planned if isinstance(planned, Failure) else None
        if isinstance(planned, Move):
            moves.setdefault(partition.topic, {})[partition.partition] = planned
    return PlannedMoves(moves, results)


def _was_cancelled(cluster: Cluster, partition: TopicPartition, event: events.AlterReassignments) -> bool:
    """Whether no move is left because an earlier attempt at this event cancelled it: a move that added nothing leaves no trace."""
    row = cluster.row_of(*partition)
    if row is None or row in cluster.moves:
        return False
    return event.cancelled.get(partition) == cluster.columns.replicas_of(row)


def _plan(cluster: Cluster, partition: TopicPartition, target: Replicas | None) -> Move | Failure | None:
    """Plan one move. None: the partition has or is moving to this target."""
    row = cluster.row_of(*partition)
    running = None if row is None else cluster.moves.get(row)
    if target is None:
        # As for a partition that does not exist (KafkaController.maybeBuildReassignment).
        if running is None or running.stage is MoveStage.REMOVING:
            return Failure(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    elif (failure := _refuse_target(cluster, row, target)) is not None:
        return failure
    if row is None:
        return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if partition.topic in cluster.deletions:
        return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition is being deleted.")
    if target is None:
        assert running is not None
        # The controller's id is dropped from the origin: the move was removing it.
        target = without(running.origin, (cluster.controller_id,))
        if not keeps_service(cluster, row, target):
            message = f"The reassignment cannot be cancelled: none of the original replicas {list(target)} is in sync."
            return Failure(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        if (failure := _refuse_target(cluster, row, target)) is not None:
            return failure
    current, adding = current_replicas(cluster.columns.replicas_of(row), running)
    if target == (running.target if running else current):
        return None
    return plan_move(current, adding, target)


def keeps_service(cluster: Cluster, row: int, target: Replicas) -> bool:
    """Whether a replica that has all committed records is in the target; a partition without any cannot lose one."""
    serving = set(cluster.columns.isr_of(row)) or set(
        columns.unpad(cluster.columns.elr_in(np.array([row], dtype=np.int32))[0])
    )
    return not serving or not serving.isdisjoint(target)


def _refuse_target(cluster: Cluster, row: int | None, target: Replicas) -> Failure | None:
    """Refuse an invalid target (KafkaController.validateReplicas). Only new replicas must be live.

    As in Kafka, this check precedes the one for the partition's existence: without a row all replicas are new.
    """
    message = None
    current = () if row is None else cluster.columns.replicas_of(row)
    if not target:
        message = "Empty replica list specified in partition reassignment."
    elif len(set(target)) != len(target):
        message = f"Duplicate replica ids in partition reassignment replica list: {list(target)}"
    elif min(target) < 0:
        message = f"Invalid broker id in replica list: {list(target)}"
    elif cluster.controller_id in target:
        message = (
            f"Node {cluster.controller_id} is the controller and holds no data. Replica list: {list(target)}, "
            f"live broker list: {sorted(cluster.may_lead())}"
        )
    elif cluster.rules.striped_placement and (unknown := set(target) - cluster.registered()):
        message = f"The manual partition assignment includes broker {min(unknown)}, but no such broker is registered."
    elif not cluster.rules.striped_placement and (dead := set(target) - set(current) - cluster.may_lead()):
        message = (
            f"Replica assignment has brokers that are not alive. Replica list: {list(target)}, "
            f"not alive: {sorted(dead)}, live broker list: {sorted(cluster.may_lead())}"
        )
    return Failure(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message) if message else None


@dataclass(frozen=True, slots=True)
class RunningMove:
    """One entry of ListPartitionReassignments."""

    partition: TopicPartition
    replicas: Replicas
    adding: Replicas
    removing: Replicas


def running_moves(cluster: Cluster, partitions: Iterable[TopicPartition] | None) -> list[RunningMove]:
    """Return running moves, of these partitions or (None) of all."""
    requested = None if partitions is None else set(partitions)
    return [
        RunningMove(name, move.replicas, move.adding, move.removing)
        for row, move in cluster.moves.items()
        if (name := cluster.name_of(row)) is not None and (requested is None or name in requested)
    ]
