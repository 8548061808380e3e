"""Reassignment of replicas (KIP-455): start, change, cancel, and completion of running moves.

Goals: a partition keeps its old replicas until every target replica is in sync (C9); a controller that takes over at any
point finishes the move from the written lists; no broker keeps an unknown log.

A move is written in the topic's znode (union, adding, removing) when it starts, and rewritten (target only) when it ends.
The stages in between:

    PLANNED   The lists are written. The leader epoch is raised and the replicas of the union get LeaderAndIsr, so that added ones
              start to fetch.
    UNION     The controller waits until the target is in the ISR. A cancelled move waits for nothing: its origin was in service.
    REMOVING  Leader and ISR within the target are written and sent to the target's brokers, and the brokers of removed replicas
              get requests to delete them. When all live ones have answered, the end is written. A broker that restarts gets the
              request again. The partition has reached its target, so this stage cannot be cancelled; another move may follow.

After a change of controller the lists are sufficient to continue: a move found written is PLANNED again, and every step may be
repeated. Kafka's controller does not wait for the responses; this one does, since a stray log is otherwise never found.

In KRaft mode a move has no stages: the record that starts it has the lists, and the AlterPartition that brings its last replica into the ISR
also ends it (`rules.complete_change`). A move that only removes or reorders replicas, and a cancellation, end in the record that starts
them; a move back to the origin does not while only added replicas are in sync. Replicas that a changed move no longer adds leave at its end.

Choosing targets is in `rules.placement`; waves and throttles are in the operator.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from controller_core.model import (
    Cluster,
    Move,
    MoveStage,
    Origin,
    Replicas,
    TopicPartition,
    changes,
    events,
    zookeeper_changes,
    zookeeper_events,
)
from controller_core.model.columns import pad, unpad
from controller_core.model.decision import Decision, decision
from controller_core.model.ids import NO_EPOCH, NO_LEADER
from controller_core.model.move import current_replicas, plan_move, without
from controller_core.rules.complete_change import Target, complete_change, electing
from controller_core.rules.election import elect_reassigned
from controller_core.rules.partition_change import NewState, change_states, raise_epochs
from kafka_wire.errors import ErrorCode, Failure

Results = Mapping[TopicPartition, Failure | None]


@dataclass(frozen=True, slots=True)
class RunningMove:
    """One entry of ListPartitionReassignments."""

    partition: TopicPartition
    replicas: Replicas
    adding: Replicas
    removing: Replicas


def decide_alter_reassignments(cluster: Cluster, event: events.AlterReassignments) -> Decision[Results]:
    """Check each target independently; write the valid moves, and return the errors of the others."""
    results: dict[TopicPartition, Failure | None] = {}
    moves: dict[str, dict[int, Move]] = {}
    cancelled = dict(event.cancelled)
    for partition, target in event.targets.items():
        planned = None if _was_cancelled(cluster, partition, event) else _plan(cluster, partition, target)
        results[partition] = planned if isinstance(planned, Failure) else None
        if isinstance(planned, Move):
            moves.setdefault(partition.topic, {})[partition.partition] = planned
            if target is None:
                cancelled[partition] = planned.target
    if cluster.rules.move_ends_with_its_isr:
        written = _start_moves(cluster, moves)
        return Decision(() if written is None else (written,), reply=results)
    # As in Kafka, the latest request takes precedence. Superseded requests are removed first, so that a controller that takes over does
    # not start them again. Another process may change the list at the same time; it is reviewed after this event.
    superseded = _remove_superseded_requests(cluster, moves)
    made: tuple[changes.Change, ...] = (
        *superseded,
        *(changes.MovesStarted(topic, of_topic) for topic, of_topic in moves.items()),
    )
    # A partition without a leader may get one now, since a live replica is being added. A move that is already running may have been
    # written by an earlier attempt whose result was lost.
    topics = frozenset(partition.topic for partition, failure in results.items() if failure is None)
    later = (zookeeper_events.ReviewReassignmentRequests(),) if superseded else ()
    then = (events.RepairPartitions(topics), events.AdvanceMoves(topics)) if topics else ()
    return Decision(made, then=then, later=later, reply=results, retry_event=replace(event, cancelled=cancelled))


def _start_moves(cluster: Cluster, planned: Mapping[str, Mapping[int, Move]]) -> changes.PartitionStates | None:
    """Start moves in KRaft mode: those whose replicas are in sync already end at once."""
    columns = cluster.columns
    found = {
        row: move
        for topic, of_topic in planned.items()
        for partition, move in of_topic.items()
        if (row := cluster.row_of(topic, partition)) is not None
    }
    replicas, isr = [], []
    moves: dict[int, Move | None] = {}
    for row, move in found.items():
        ends = move.returns_to_origin and _keeps_service(cluster, row, move.target)
        replicas.append(move.target if ends else move.replicas)
        isr.append(without(columns.isr_of(row), move.removing) if ends else columns.isr_of(row))
        # A replica that is added and removed was being added by a move that this one changes.
        moves[row] = None if ends else replace(move, adding=without(move.adding, move.removing))
    rows = np.array(list(found), dtype=np.int32)
    return complete_change(cluster, rows, Target(pad(isr), pad(replicas), moves), electing(cluster, rows))


def _keeps_service(cluster: Cluster, row: int, target: Replicas) -> bool:
    """Whether a replica that has all committed records is in the target; a partition without any cannot lose one."""
    serving = set(cluster.columns.isr_of(row)) or set(unpad(cluster.columns.elr_in(np.array([row], dtype=np.int32))[0]))
    return not serving or not serving.isdisjoint(target)


def _was_cancelled(cluster: Cluster, partition: TopicPartition, event: events.AlterReassignments) -> bool:
    """Whether no move is left because an earlier attempt at this event cancelled it: a move that added nothing leaves no trace."""
    row = cluster.row_of(*partition)
    if row is None or row in cluster.moves:
        return False
    return event.cancelled.get(partition) == cluster.columns.replicas_of(row)


def _remove_superseded_requests(
    cluster: Cluster, moves: Mapping[str, Mapping[int, Move]]
) -> tuple[zookeeper_changes.PendingReassignmentRequestsChanged, ...]:
    """Remove requests of `/admin/reassign_partitions` that the moves supersede."""
    left = {
        partition: target
        for partition, target in cluster.reassignment_requests.items()
        if partition.partition not in moves.get(partition.topic, ())
    }
    if left == cluster.reassignment_requests:
        return ()
    return (zookeeper_changes.PendingReassignmentRequestsChanged(left, Origin.REQUESTED),)


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
        if not _keeps_service(cluster, row, target):
            message = f"The reassignment cannot be cancelled: none of the original replicas {list(target)} is in sync."
            return Failure(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        if (failure := _refuse_target(cluster, row, target)) is not None:
            return failure
    current, adding = current_replicas(cluster.columns.replicas_of(row), running)
    if target == (running.target if running else current):
        return None
    return plan_move(current, adding, target)


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


def decide_advance_moves(cluster: Cluster, event: events.AdvanceMoves) -> Decision[None]:
    """Advance running moves, of these topics or of all, as far as the current state allows."""
    raised: list[int] = []
    narrowed: list[NewState] = []
    finished: dict[str, dict[int, Replicas]] = {}
    for row, move in _moves_of(cluster, event.topics):
        name = cluster.name_of(row)
        if cluster.columns.partition_epoch[row] == NO_EPOCH:
            continue  # No leader yet: RepairPartitions elects one first.
        if move.stage is MoveStage.REMOVING:
            if set(move.waiting).isdisjoint(cluster.unfenced()):
                finished.setdefault(name.topic, {})[name.partition] = move.target
        elif (narrow := _narrow(cluster, row, move)) is not None:
            narrowed.append(narrow)
        elif move.stage is MoveStage.PLANNED:
            # Brokers accept a new replica list only with a higher leader epoch.
            raised.append(row)
    # If all removed replicas are offline, the end can be written at once. A deletion may wait for the end.
    then: list[events.Event] = [events.AdvanceMoves(event.topics)] if narrowed else []
    later: list[events.Event] = [zookeeper_events.AdvanceDeletions()] if finished and cluster.deletions else []
    if cluster.reassignment_requests and (finished or (event.topics is None and _any_request_has_ended(cluster))):
        later.append(zookeeper_events.ReviewReassignmentRequests())
    return decision(
        *(changes.MovesFinished(topic, replicas) for topic, replicas in finished.items()),
        raise_epochs(cluster, raised),
        change_states(cluster, narrowed),
        then=then,
        later=later,
    )


def _any_request_has_ended(cluster: Cluster) -> bool:
    return not all(
        cluster.is_moving_to(partition, target) for partition, target in cluster.reassignment_requests.items()
    )


def _moves_of(cluster: Cluster, topics: frozenset[str] | None) -> list[tuple[int, Move]]:
    if topics is None:
        return list(cluster.moves.items())
    rows = [row for name in topics if name in cluster.topics for row in cluster.topics[name].rows.tolist()]
    return [(row, cluster.moves[row]) for row in rows if row in cluster.moves]


def _narrow(cluster: Cluster, row: int, move: Move) -> NewState | None:
    """Return the state without the removed replicas; None while the target is not in sync."""
    isr = cluster.columns.isr_of(row)
    target_isr = without(isr, move.removing)
    in_sync = bool(target_isr) if move.returns_to_origin else set(move.target) <= set(isr)
    if not in_sync:
        return None
    leader = int(cluster.columns.leader[row])
    online = cluster.may_lead() - cluster.offline_at(row)
    if leader not in target_isr or leader not in online:
        leader = elect_reassigned(move.target, target_isr, online).leader
        if leader == NO_LEADER:
            return None
    return NewState(row, leader, target_isr, replicas=move.target)


def running_moves(cluster: Cluster, partitions: Iterable[TopicPartition] | None) -> list[RunningMove]:
    """Return running moves, of these partitions or (None) of all."""
    requested = None if partitions is None else set(partitions)
    return [
        RunningMove(name, move.replicas, move.adding, move.removing)
        for row, move in cluster.moves.items()
        if (name := cluster.name_of(row)) is not None and (requested is None or name in requested)
    ]
