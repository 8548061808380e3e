"""Moves of partitions in ZooKeeper mode: what a request writes, and how running moves advance.

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
"""

from collections.abc import Mapping
from dataclasses import replace

from controller_core import model
from controller_core.decisions.reassignment import PlannedMoves, Results, plan_moves
from controller_core.model import changes, events, zookeeper_changes, zookeeper_events
from controller_core.model.decision import Decision, decision
from controller_core.model.move import without
from controller_core.rules import election, partition_change


def decide_alter_reassignments(cluster: model.Cluster, event: events.AlterReassignments) -> Decision[Results]:
    """Write the valid moves, and return the errors of the others.

    As in Kafka, the latest request takes precedence. Superseded requests of old tools are removed first, so that a controller that takes
    over does not start them again. Another process may change their list at the same time; it is reviewed after this event.
    """
    planned = plan_moves(cluster, event)
    superseded = _remove_superseded_requests(cluster, planned.moves)
    made: tuple[changes.Change, ...] = (
        *superseded,
        *(zookeeper_changes.MovesStarted(topic, moves) for topic, moves in planned.moves.items()),
    )
    # A partition without a leader may get one now, since a live replica is being added. A move that is already running may have been
    # written by an earlier attempt whose result was lost.
    topics = frozenset(partition.topic for partition, failure in planned.results.items() if failure is None)
    later = (zookeeper_events.ReviewReassignmentRequests(),) if superseded else ()
    then = (events.RepairPartitions(topics), events.AdvanceMoves(topics)) if topics else ()
    retry = replace(event, cancelled={**event.cancelled, **_cancelled(planned, event)})
    return Decision(made, then=then, later=later, reply=planned.results, retry_event=retry)


def _cancelled(planned: PlannedMoves, event: events.AlterReassignments) -> dict[model.TopicPartition, model.Replicas]:
    """Return the origins to which cancelled moves return."""
    return {
        partition: planned.moves[partition.topic][partition.partition].target
        for partition, target in event.targets.items()
        if target is None and partition.partition in planned.moves.get(partition.topic, ())
    }


def _remove_superseded_requests(
    cluster: model.Cluster, moves: Mapping[str, Mapping[int, model.Move]]
) -> tuple[zookeeper_changes.PendingReassignmentRequestsChanged, ...]:
    """Remove requests of `/admin/reassign_partitions` that the moves supersede."""
    left = {
        partition: target
        for partition, target in cluster.reassignment_requests.items()
        if partition.partition not in moves.get(partition.topic, ())
    }
    if left == cluster.reassignment_requests:
        return ()
    return (zookeeper_changes.PendingReassignmentRequestsChanged(left, model.Origin.REQUESTED),)


def decide_advance_moves(cluster: model.Cluster, event: events.AdvanceMoves) -> Decision[None]:
    """Advance running moves, of these topics or of all, as far as the current state allows."""
    raised: list[int] = []
    narrowed: list[partition_change.NewState] = []
    finished: dict[str, dict[int, model.Replicas]] = {}
    for row, move in _moves_of(cluster, event.topics):
        name = cluster.name_of(row)
        if cluster.columns.partition_epoch[row] == model.NO_EPOCH:
            continue  # No leader yet: RepairPartitions elects one first.
        if move.stage is model.MoveStage.REMOVING:
            if set(move.waiting).isdisjoint(cluster.unfenced()):
                finished.setdefault(name.topic, {})[name.partition] = move.target
        elif (narrow := _narrow(cluster, row, move)) is not None:
            narrowed.append(narrow)
        elif move.stage is model.MoveStage.PLANNED:
            # Brokers accept a new replica list only with a higher leader epoch.
            raised.append(row)
    # If all removed replicas are offline, the end can be written at once. A deletion may wait for the end.
    then: list[events.Event] = [events.AdvanceMoves(event.topics)] if narrowed else []
    later: list[events.Event] = [zookeeper_events.AdvanceDeletions()] if finished and cluster.deletions else []
    if cluster.reassignment_requests and (finished or (event.topics is None and _any_request_has_ended(cluster))):
        later.append(zookeeper_events.ReviewReassignmentRequests())
    return decision(
        *(zookeeper_changes.MovesFinished(topic, replicas) for topic, replicas in finished.items()),
        partition_change.raise_epochs(cluster, raised),
        partition_change.change_states(cluster, narrowed),
        then=then,
        later=later,
    )


def _any_request_has_ended(cluster: model.Cluster) -> bool:
    return not all(
        cluster.is_moving_to(partition, target) for partition, target in cluster.reassignment_requests.items()
    )


def _moves_of(cluster: model.Cluster, topics: frozenset[str] | None) -> list[tuple[int, model.Move]]:
    if topics is None:
        return list(cluster.moves.items())
    rows = [row for name in topics if name in cluster.topics for row in cluster.topics[name].rows.tolist()]
    return [(row, cluster.moves[row]) for row in rows if row in cluster.moves]


def _narrow(cluster: model.Cluster, row: int, move: model.Move) -> partition_change.NewState | None:
    """Return the state without the removed replicas; None while the target is not in sync."""
    isr = cluster.columns.isr_of(row)
    target_isr = without(isr, move.removing)
    in_sync = bool(target_isr) if move.returns_to_origin else set(move.target) <= set(isr)
    if not in_sync:
        return None
    leader = int(cluster.columns.leader[row])
    online = cluster.may_lead() - cluster.offline_at(row)
    if leader not in target_isr or leader not in online:
        leader = election.elect_reassigned(move.target, target_isr, online).leader
        if leader == model.NO_LEADER:
            return None
    return partition_change.NewState(row, leader, target_isr, replicas=move.target)
