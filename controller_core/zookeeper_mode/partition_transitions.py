"""Transitions of brokers, partition states, assignments and moves in ZooKeeper mode.

They change leaders, ISRs, replica lists, or the replicas that brokers still have.
"""

from dataclasses import replace

import numpy as np

from controller_core import model
from controller_core.decisions import transitions
from controller_core.model import changes, zookeeper_changes
from controller_core.model.columns import any_of, contained_in, keep_ids, pad
from controller_core.model.move import current_replicas, plan_move, without


def observe_brokers(change: zookeeper_changes.BrokersObserved, cluster: model.Cluster) -> None:
    """Replace the registered brokers."""
    before = cluster.brokers
    cluster.columns.record_ids(np.array([broker.id for broker in change.brokers], dtype=np.int32))
    cluster.brokers = {broker.id: broker for broker in change.brokers}
    cluster.unreachable = {broker.id: broker for broker in change.unreachable}
    # A broker that left, or registered with another epoch, is no longer shutting down.
    cluster.shutting_down = {
        broker_id
        for broker_id in cluster.shutting_down
        if broker_id in cluster.brokers and cluster.brokers[broker_id].epoch == before[broker_id].epoch
    }
    # Its log directories may work again; if not, its responses will report that.
    answered = (*cluster.offline_replicas.values(), *cluster.refused_replicas.values())
    for broker_id in {broker for brokers in answered for broker in brokers}:
        if broker_id not in cluster.brokers or cluster.brokers[broker_id].epoch != before[broker_id].epoch:
            for row in {*cluster.offline_replicas, *cluster.refused_replicas}:
                _clear_offline_replica(cluster, row, broker_id)


def start_controlled_shutdown(change: zookeeper_changes.ControlledShutdownStarted, cluster: model.Cluster) -> None:
    """Exclude a broker from elections."""
    cluster.shutting_down.add(change.broker)


def change_states(change: changes.PartitionStates, cluster: model.Cluster) -> None:
    """Set the new states, and advance moves whose replicas brokers now know."""
    transitions.change_states(change, cluster)
    if cluster.corrected_rows:
        cluster.corrected_rows.difference_update(change.rows.tolist())
    for row in _moving_rows(cluster, change.rows):
        move = cluster.moves[row]
        if change.replicas is not None:
            # Offline brokers may never return, so they are not waited for; if they do, they get the requests then.
            waiting = tuple(replica for replica in move.removing if replica in cluster.unfenced())
            _record_stray_replicas(cluster, row, without(move.removing, waiting))
            removal_epoch = int(cluster.columns.leader_epoch[row])
            cluster.moves[row] = replace(
                move, stage=model.MoveStage.REMOVING, waiting=waiting, removal_epoch=removal_epoch
            )
        elif move.stage is model.MoveStage.PLANNED and change.requests is changes.RequestsToBrokers.LEADER_AND_ISR:
            cluster.moves[row] = replace(move, stage=model.MoveStage.UNION)


def observe_states(change: zookeeper_changes.StatesObserved, cluster: model.Cluster) -> None:
    """Set states as found written."""
    cluster.columns.set_states(
        change.rows,
        change.leader,
        change.leader_epoch,
        change.isr,
        change.partition_epoch,
        change.controller_epoch,
        change.recovering,
    )
    if cluster.corrected_rows:
        cluster.corrected_rows.difference_update(change.rows.tolist())
    _drop_non_replicas_from_isr(cluster, change.rows)


def observe_offline_replicas(change: zookeeper_changes.OfflineReplicasObserved, cluster: model.Cluster) -> None:
    """Update the offline and refused replicas of a broker."""
    for name in change.offline:
        row = cluster.row_of(*name)
        assert row is not None, f"{name} is offline and does not exist"
        cluster.set_offline(row, change.broker, is_offline=True)
    for name, error in change.refused.items():
        row = cluster.row_of(*name)
        assert row is not None, f"{name} is refused and does not exist"
        cluster.refused_replicas.setdefault(row, {})[change.broker] = error
    for name in change.online:
        if (row := cluster.row_of(*name)) is not None:
            _clear_offline_replica(cluster, row, change.broker)


def observe_assignment(change: zookeeper_changes.TopicObserved, cluster: model.Cluster) -> None:
    """Update a topic's assignment and moves as found written."""
    topic = cluster.topics[change.name]
    if topic.topic_id is None and change.topic_id is not None:
        cluster.set_topic_id(topic, change.topic_id)
    if cluster.is_pending_deletion(change.name):
        return  # Its deletion continues as started, whatever the assignment is now (C10).
    added = [partition for partition in sorted(change.replicas) if cluster.row_of(change.name, partition) is None]
    if added:
        partitions = np.array(added, dtype=np.int32)
        replicas = pad([change.replicas[partition] for partition in added])
        transitions.add_partitions(
            changes.PartitionsAdded(change.name, partitions, replicas, model.Origin.OBSERVED), cluster
        )
    for partition, replicas_found in change.replicas.items():
        row = cluster.row_of(change.name, partition)
        assert row is not None, f"{change.name}-{partition} was just added and does not exist"
        found = model.Move(replicas_found, change.adding.get(partition, ()), change.removing.get(partition, ()))
        known = cluster.moves.get(row)
        if known is not None and (known.replicas, known.adding, known.removing) == (
            found.replicas,
            found.adding,
            found.removing,
        ):
            continue  # The known move; its stage is not written.
        if _has_state(cluster, row) and set(cluster.columns.isr_of(row)).isdisjoint(replicas_found):
            _start_move_from_isr(cluster, row, cluster.columns.replicas_of(row), found.target)
            continue
        is_to_be_sent = cluster.columns.replicas_of(row) != replicas_found and _has_state(cluster, row)
        cluster.columns.set_replicas(np.array([row], dtype=np.int32), pad([replicas_found]))
        if found.adding or found.removing or is_to_be_sent:
            # With neither, the move waits for nothing, and finishing it sends the replicas to brokers.
            cluster.moves[row] = found
        else:
            cluster.moves.pop(row, None)
        _clear_stray_replicas(cluster, row, replicas_found)
        _drop_non_replicas_from_isr(cluster, np.array([row], dtype=np.int32))


def start_moves(change: zookeeper_changes.MovesStarted, cluster: model.Cluster) -> None:
    """Record moves, and set their unions as replicas."""
    for partition, move in change.moves.items():
        row = cluster.row_of(change.topic, partition)
        assert row is not None, f"{change.topic}-{partition} is to move and does not exist"
        cluster.moves[row] = move
        cluster.columns.set_replicas(np.array([row], dtype=np.int32), pad([move.replicas]))
        _clear_stray_replicas(cluster, row, move.replicas)


def finish_moves(change: zookeeper_changes.MovesFinished, cluster: model.Cluster) -> None:
    """Remove finished moves."""
    for partition, replicas in change.replicas.items():
        row = cluster.row_of(change.topic, partition)
        assert row is not None, f"{change.topic}-{partition} moved and does not exist"
        assert cluster.columns.replicas_of(row) == replicas, (
            f"the move of {change.topic}-{partition} does not end at its target"
        )
        _record_stray_replicas(cluster, row, cluster.moves.pop(row).waiting)
        for broker in {*cluster.offline_at(row), *cluster.refused_at(row)} - set(replicas):
            _clear_offline_replica(cluster, row, broker)


def confirm_replica_removal(change: zookeeper_changes.ReplicaRemovalAnswered, cluster: model.Cluster) -> None:
    """Stop waiting for a removed replica."""
    row = cluster.row_of(change.topic, change.partition)
    if row is None:
        return
    _clear_stray_replicas(cluster, row, (change.broker,))
    if row in cluster.moves:
        move = cluster.moves[row]
        cluster.moves[row] = replace(move, waiting=without(move.waiting, (change.broker,)))


def observe_stray_replicas(change: zookeeper_changes.StrayReplicasObserved, cluster: model.Cluster) -> None:
    """Record stray replicas of a broker."""
    for name in change.partitions:
        if (row := cluster.row_of(*name)) is not None:
            _record_stray_replicas(cluster, row, (change.broker,))


def forget_stray_replicas(change: changes.BrokerUnregistered, cluster: model.Cluster) -> None:
    """Stop waiting for the stray replicas of a broker that never returns."""
    for row in list(cluster.stray_replicas):
        _clear_stray_replicas(cluster, row, (change.broker,))


def _clear_offline_replica(cluster: model.Cluster, row: int, broker: int) -> None:
    """Record that a replica of an unfenced broker is neither offline nor refused."""
    if row in cluster.refused_replicas:
        cluster.refused_replicas[row].pop(broker, None)
        if not cluster.refused_replicas[row]:
            del cluster.refused_replicas[row]
    cluster.set_offline(row, broker, is_offline=False)


def _record_stray_replicas(cluster: model.Cluster, row: int, brokers: model.Replicas) -> None:
    """Record brokers that may still have a stray replica of a row; the controller's id has no replicas."""
    if left := set(brokers) - {cluster.controller_id}:
        cluster.stray_replicas.setdefault(row, set()).update(left)


def _clear_stray_replicas(cluster: model.Cluster, row: int, brokers: model.Replicas) -> None:
    """Clear stray replicas of a row: the brokers have deleted them, or are replicas again."""
    if row in cluster.stray_replicas:
        cluster.stray_replicas[row] -= set(brokers)
        if not cluster.stray_replicas[row]:
            del cluster.stray_replicas[row]


def _has_state(cluster: model.Cluster, row: int) -> bool:
    return bool(cluster.columns.partition_epoch[row] != model.NO_EPOCH)


def _start_move_from_isr(cluster: model.Cluster, row: int, replicas: model.Replicas, target: model.Replicas) -> None:
    """Start a move from replicas that contain the ISR to a target that is disjoint from it (C2, C9).

    Such an assignment was written manually. Applied as it is, it would leave the partition without a replica that has its
    records. A target without brokers changes nothing.
    """
    target = without(target, (cluster.controller_id,))
    if not target:
        return
    move = plan_move(*current_replicas(replicas, cluster.moves.get(row)), target)
    cluster.moves[row] = move
    cluster.columns.set_replicas(np.array([row], dtype=np.int32), pad([move.replicas]))
    _clear_stray_replicas(cluster, row, move.replicas)


def _drop_non_replicas_from_isr(cluster: model.Cluster, rows: model.IntArray) -> None:
    """Drop brokers that are not replicas from ISRs and as leaders (C1, C2).

    The znode was edited manually, or a native controller lost controllership between its writes of the assignment and of the
    ISR (KafkaController.updateCurrentReassignment). `RepairPartitions` writes the corrected state. If no member of the ISR is a
    replica, the partition moves from the ISR to its replicas.
    """
    columns = cluster.columns
    isr = columns.isr[rows]
    members = contained_in(isr, columns.replicas[rows])
    for row in rows[~any_of(members) & any_of(isr != model.NO_BROKER)].tolist():
        known = cluster.moves.pop(row, None)
        _start_move_from_isr(
            cluster, row, columns.isr_of(row), columns.replicas_of(row) if known is None else known.target
        )
    mixed = any_of(members) & any_of(~members & (isr != model.NO_BROKER))
    if not mixed.any():
        return
    rows = rows[mixed]
    cluster.corrected_rows.update(rows.tolist())
    columns.isr[rows] = keep_ids(isr[mixed], members[mixed])
    led = any_of(columns.isr[rows] == columns.leader[rows][:, None])
    columns.leader[rows] = np.where(led, columns.leader[rows], model.NO_LEADER)


def _moving_rows(cluster: model.Cluster, rows: model.IntArray) -> list[int]:
    """Return the rows that have a running move; no row is read while there are no moves."""
    return [row for row in rows.tolist() if row in cluster.moves] if cluster.moves else []
