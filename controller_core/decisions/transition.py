"""`apply`: the only place that changes the cluster's state.

Every change that is applied was committed before (or is observed, or lives in memory alone), so nothing here can fail on
the state of the world; an assertion that fails is a defect of this program.

Leaves out deciding, and telling brokers (propagation).
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import singledispatch
from typing import TypeVar

import numpy as np

from controller_core.model import changes
from controller_core.model.cluster import Cluster, Deletion
from controller_core.model.columns import IntArray, any_of, keep_ids, pad
from controller_core.model.ids import NO_BROKER, NO_EPOCH, NO_LEADER
from controller_core.model.move import Move, MoveStage, Replicas, current_replicas, plan_move, without
from controller_core.rules.partition_change import check_states, contained_in, next_partition_epoch
from controller_core.rules.topic_configs import config_value

K = TypeVar("K")

UNCLEAN_ELECTION = "unclean.leader.election.enable"
"""The topic configuration that lets a replica from outside the ISR lead, where no other is left."""


NOT_IN_METADATA = (
    changes.AssignmentRestored,
    changes.DeletionQueued,
    changes.ElectionRequestsProcessed,
    changes.PendingReassignmentRequestsChanged,
    changes.NotificationsProcessed,
    changes.ProducerIdsAllocated,
    changes.ProducerIdsObserved,
    changes.ReplicaRemovalAnswered,
    changes.ReplicasDeleted,
    changes.UncleanElectionObserved,
)
"""Changes that no Metadata response shows; every other kind raises `metadata_version`."""


@singledispatch
def _apply(change: changes.Change, cluster: Cluster) -> None:
    raise TypeError(f"no rule to apply {type(change).__name__} to cluster of controller {cluster.controller_id}")


def apply(cluster: Cluster, change: changes.Change) -> None:
    """Make a committed change true in memory."""
    _apply(change, cluster)
    if not isinstance(change, NOT_IN_METADATA):
        cluster.metadata_version += 1


@_apply.register
def _observe_brokers(change: changes.BrokersObserved, cluster: Cluster) -> None:
    before = cluster.brokers
    cluster.columns.record_ids(np.array([broker.id for broker in change.brokers], dtype=np.int32))
    cluster.brokers = {broker.id: broker for broker in change.brokers}
    cluster.unreachable = {broker.id: broker for broker in change.unreachable}
    # A broker that left, or is back under another epoch, is no longer on its way out.
    cluster.shutting_down = {
        broker_id
        for broker_id in cluster.shutting_down
        if broker_id in cluster.brokers and cluster.brokers[broker_id].epoch == before[broker_id].epoch
    }
    # Its log directories may be whole again; if not, its answers will say so.
    answered = (*cluster.offline_replicas.values(), *cluster.refused_replicas.values())
    for broker_id in {broker for brokers in answered for broker in brokers}:
        if broker_id not in cluster.brokers or cluster.brokers[broker_id].epoch != before[broker_id].epoch:
            for row in {*cluster.offline_replicas, *cluster.refused_replicas}:
                _clear_offline_replica(cluster, row, broker_id)


@_apply.register
def _begin_shutdown(change: changes.ControlledShutdownStarted, cluster: Cluster) -> None:
    cluster.shutting_down.add(change.broker)


@_apply.register
def _observe_unclean_election(change: changes.UncleanElectionObserved, cluster: Cluster) -> None:
    _update_settings(cluster.unclean_topics, change.topics)
    _update_settings(cluster.unclean_defaults, change.defaults)


@_apply.register
def _observe_topic_deletion(change: changes.TopicDeletionObserved, cluster: Cluster) -> None:
    cluster.topic_deletion = change.setting


@_apply.register
def _add_topic(change: changes.TopicAdded, cluster: Cluster) -> None:
    assert change.name not in cluster.topics, f"topic {change.name} is there already"
    written_again = change.origin is changes.Origin.REPAIRED
    topic = cluster.add_topic(change.name, change.topic_id, change.version + written_again)
    topic.rows = cluster.columns.add(topic.index, change.partitions, change.replicas)
    for place, partition in enumerate(change.partitions.tolist()):
        if (move := change.moves.get(partition)) is not None:
            cluster.moves[int(topic.rows[place])] = move
    # Kafka reads a boolean without regard to case and to blanks around it (ConfigDef.parseType).
    if UNCLEAN_ELECTION in change.configs:
        cluster.unclean_topics[change.name] = config_value(UNCLEAN_ELECTION, change.configs) is True


@_apply.register
def _add_partitions(change: changes.PartitionsAdded, cluster: Cluster) -> None:
    topic = cluster.topics[change.topic]
    rows = cluster.columns.add(topic.index, change.partitions, change.replicas)
    topic.rows = np.concatenate([topic.rows, rows])
    topic.version = change.version if change.origin is changes.Origin.OBSERVED else topic.version + 1


@_apply.register
def _change_states(change: changes.PartitionStates, cluster: Cluster) -> None:
    check_states(cluster, change)
    columns = cluster.columns
    partition_epoch = next_partition_epoch(columns.partition_epoch[change.rows])
    recovering = change.recovering_after(columns.recovering[change.rows])
    if change.replicas is not None:
        columns.set_replicas(change.rows, change.replicas)
    columns.set_states(
        change.rows,
        change.leader,
        change.leader_epoch,
        change.isr,
        partition_epoch,
        cluster.controller_epoch,
        recovering,
    )
    if cluster.corrected_rows:
        cluster.corrected_rows.difference_update(change.rows.tolist())
    for row in _moving_rows(cluster, change.rows):
        move = cluster.moves[row]
        leader_epoch = int(columns.leader_epoch[row])
        if change.replicas is not None:
            # Brokers that are away are not waited for: they may never be back. If they are, they are told.
            waiting = tuple(replica for replica in move.removing if replica in cluster.unfenced())
            _record_stray_replicas(cluster, row, without(move.removing, waiting))
            cluster.moves[row] = replace(move, stage=MoveStage.REMOVING, waiting=waiting, removal_epoch=leader_epoch)
        elif move.stage is MoveStage.PLANNED and change.requests is changes.RequestsToBrokers.LEADER_AND_ISR:
            cluster.moves[row] = replace(move, stage=MoveStage.UNION)


@_apply.register
def _observe_states(change: changes.StatesObserved, cluster: Cluster) -> None:
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


@_apply.register
def _observe_replicas(change: changes.OfflineReplicasObserved, cluster: Cluster) -> None:
    for name in change.offline:
        row = cluster.row_of(*name)
        assert row is not None, f"{name} is offline and is not there"
        cluster.offline_replicas.setdefault(row, set()).add(change.broker)
    for name, error in change.refused.items():
        row = cluster.row_of(*name)
        assert row is not None, f"{name} is refused and is not there"
        cluster.refused_replicas.setdefault(row, {})[change.broker] = error
    for name in change.online:
        if (row := cluster.row_of(*name)) is not None:
            _clear_offline_replica(cluster, row, change.broker)


@_apply.register
def _end_notices(change: changes.NotificationsProcessed, cluster: Cluster) -> None:
    """Nothing is known of notices: what they said came in by other changes."""


@_apply.register
def _observe_topic(change: changes.TopicObserved, cluster: Cluster) -> None:
    topic = cluster.topics[change.name]
    topic.version = change.version
    if topic.topic_id is None and change.topic_id is not None:
        cluster.set_topic_id(topic, change.topic_id)
    if cluster.is_pending_deletion(change.name):
        return  # Whatever is written of it by now begins nothing any more (C10): it goes as it was told to go.
    added = [partition for partition in sorted(change.replicas) if cluster.row_of(change.name, partition) is None]
    if added:
        replicas = pad([change.replicas[partition] for partition in added])
        rows = cluster.columns.add(topic.index, np.array(added, dtype=np.int32), replicas)
        topic.rows = np.concatenate([topic.rows, rows])
    for partition, replicas_found in change.replicas.items():
        row = cluster.row_of(change.name, partition)
        assert row is not None, f"{change.name}-{partition} was just added and is not there"
        found = Move(replicas_found, change.adding.get(partition, ()), change.removing.get(partition, ()))
        known = cluster.moves.get(row)
        if known is not None and (known.replicas, known.adding, known.removing) == (
            found.replicas,
            found.adding,
            found.removing,
        ):
            continue  # The move as we know it: how far it has come is not written.
        if _has_state(cluster, row) and set(cluster.columns.isr_of(row)).isdisjoint(replicas_found):
            _start_move_from_isr(cluster, row, cluster.columns.replicas_of(row), found.target)
            continue
        is_to_be_told = cluster.columns.replicas_of(row) != replicas_found and _has_state(cluster, row)
        cluster.columns.set_replicas(np.array([row], dtype=np.int32), pad([replicas_found]))
        if found.adding or found.removing or is_to_be_told:
            # Without either, a move that has nothing to wait for: its way to the end tells brokers of the replicas.
            cluster.moves[row] = found
        else:
            cluster.moves.pop(row, None)
        _clear_stray_replicas(cluster, row, replicas_found)
        _drop_non_replicas_from_isr(cluster, np.array([row], dtype=np.int32))


@_apply.register
def _assign_topic_id(change: changes.TopicIdAssigned, cluster: Cluster) -> None:
    topic = cluster.topics[change.topic]
    cluster.set_topic_id(topic, change.topic_id)
    topic.version += 1


@_apply.register
def _restore_assignment(change: changes.AssignmentRestored, cluster: Cluster) -> None:
    cluster.topics[change.topic].version = change.version + 1


@_apply.register
def _start_moves(change: changes.MovesStarted, cluster: Cluster) -> None:
    topic = cluster.topics[change.topic]
    topic.version += 1
    for partition, move in change.moves.items():
        row = cluster.row_of(change.topic, partition)
        assert row is not None, f"{change.topic}-{partition} is to move and is not there"
        cluster.moves[row] = move
        cluster.columns.set_replicas(np.array([row], dtype=np.int32), pad([move.replicas]))
        _clear_stray_replicas(cluster, row, move.replicas)


@_apply.register
def _finish_moves(change: changes.MovesFinished, cluster: Cluster) -> None:
    topic = cluster.topics[change.topic]
    topic.version += 1
    for partition, replicas in change.replicas.items():
        row = cluster.row_of(change.topic, partition)
        assert row is not None, f"{change.topic}-{partition} moved and is not there"
        assert cluster.columns.replicas_of(row) == replicas, (
            f"{change.topic}-{partition} ends elsewhere than its target"
        )
        _record_stray_replicas(cluster, row, cluster.moves.pop(row).waiting)
        for broker in {*cluster.offline_at(row), *cluster.refused_at(row)} - set(replicas):
            _clear_offline_replica(cluster, row, broker)


@_apply.register
def _update_move_requests(change: changes.PendingReassignmentRequestsChanged, cluster: Cluster) -> None:
    cluster.reassignment_requests = dict(change.targets)
    is_written = change.origin is changes.Origin.REQUESTED
    # With the last of them the list goes.
    cluster.reassignment_requests_version = change.version + is_written if change.targets else NO_EPOCH


@_apply.register
def _end_election_requests(_change: changes.ElectionRequestsProcessed, _cluster: Cluster) -> None:
    """Nothing of it is known in memory."""


@_apply.register
def _note_removal(change: changes.ReplicaRemovalAnswered, cluster: Cluster) -> None:
    row = cluster.row_of(change.topic, change.partition)
    if row is None:
        return
    _clear_stray_replicas(cluster, row, (change.broker,))
    if row in cluster.moves:
        move = cluster.moves[row]
        cluster.moves[row] = replace(move, waiting=without(move.waiting, (change.broker,)))


@_apply.register
def _note_left_replicas(change: changes.StrayReplicasObserved, cluster: Cluster) -> None:
    for name in change.partitions:
        if (row := cluster.row_of(*name)) is not None:
            _record_stray_replicas(cluster, row, (change.broker,))


@_apply.register
def _forget_broker(change: changes.BrokerUnregistered, cluster: Cluster) -> None:
    for row in list(cluster.stray_replicas):
        _clear_stray_replicas(cluster, row, (change.broker,))


@_apply.register
def _queue_deletions(change: changes.DeletionQueued, cluster: Cluster) -> None:
    for name in change.topics:
        cluster.deletions.setdefault(name, Deletion())


@_apply.register
def _forget_deletions(change: changes.DeletionDequeued, cluster: Cluster) -> None:
    for name in change.names:
        cluster.deletions.pop(name, None)


@_apply.register
def _start_deletion(change: changes.DeletionStarted, cluster: Cluster) -> None:
    waiting = {broker: set(partitions) for broker, partitions in change.waiting.items()}
    cluster.deletions[change.topic] = Deletion(waiting, started=True)


@_apply.register
def _block_deletion(change: changes.DeletionBlocked, cluster: Cluster) -> None:
    cluster.deletions[change.topic] = Deletion(blocked=change.reason, refused=change.refused)


@_apply.register
def _note_deleted_replicas(change: changes.ReplicasDeleted, cluster: Cluster) -> None:
    deletion = cluster.deletions.get(change.topic)
    if deletion is None or change.broker not in deletion.waiting:
        return
    deletion.waiting[change.broker] -= set(change.partitions)
    if not deletion.waiting[change.broker]:
        del deletion.waiting[change.broker]


@_apply.register
def _remove_topic(change: changes.TopicRemoved, cluster: Cluster) -> None:
    cluster.remove_topic(change.topic)
    if change.origin is changes.Origin.REQUESTED:
        cluster.record_deleted_topic(change.topic)


@_apply.register
def _allocate_producer_ids(change: changes.ProducerIdsAllocated, cluster: Cluster) -> None:
    cluster.producer_ids.block_end = change.last
    cluster.producer_ids.version += 1


@_apply.register
def _observe_producer_ids(change: changes.ProducerIdsObserved, cluster: Cluster) -> None:
    cluster.producer_ids.block_end = change.block_end
    cluster.producer_ids.version = change.version


def _update_settings(known: dict[K, bool], said: Mapping[K, bool | None]) -> None:
    """Set the values that are given, and remove those that are None."""
    for key, value in said.items():
        if value is None:
            known.pop(key, None)
        else:
            known[key] = value


def _clear_offline_replica(cluster: Cluster, row: int, broker: int) -> None:
    """Forget that a replica is offline or refused although its broker is unfenced."""
    if row in cluster.refused_replicas:
        cluster.refused_replicas[row].pop(broker, None)
        if not cluster.refused_replicas[row]:
            del cluster.refused_replicas[row]
    if row in cluster.offline_replicas:
        cluster.offline_replicas[row].discard(broker)
        if not cluster.offline_replicas[row]:
            del cluster.offline_replicas[row]


def _record_stray_replicas(cluster: Cluster, row: int, brokers: Replicas) -> None:
    """Record brokers that may still hold a stray replica of a row; the controller's own id holds nothing."""
    if left := set(brokers) - {cluster.controller_id}:
        cluster.stray_replicas.setdefault(row, set()).update(left)


def _clear_stray_replicas(cluster: Cluster, row: int, brokers: Replicas) -> None:
    """Forget stray replicas of a row: the brokers have deleted them, or are replicas again."""
    if row in cluster.stray_replicas:
        cluster.stray_replicas[row] -= set(brokers)
        if not cluster.stray_replicas[row]:
            del cluster.stray_replicas[row]


def _has_state(cluster: Cluster, row: int) -> bool:
    return bool(cluster.columns.partition_epoch[row] != NO_EPOCH)


def _start_move_from_isr(cluster: Cluster, row: int, replicas: Replicas, target: Replicas) -> None:
    """Replace replicas, of which the ISR is a part, by a target that shares nothing with it: a real move (C2, C9).

    Somebody wrote the assignment by hand. Taken as it is written, the partition would have no replica with its records. A
    target without any broker changes nothing.
    """
    target = without(target, (cluster.controller_id,))
    if not target:
        return
    move = plan_move(*current_replicas(replicas, cluster.moves.get(row)), target)
    cluster.moves[row] = move
    cluster.columns.set_replicas(np.array([row], dtype=np.int32), pad([move.replicas]))
    _clear_stray_replicas(cluster, row, move.replicas)


def _drop_non_replicas_from_isr(cluster: Cluster, rows: IntArray) -> None:
    """Drop brokers from the ISR, and from the lead, that are not replicas (C1, C2).

    Somebody wrote a znode by hand, or a native controller was relieved between its writes of the assignment and of the ISR
    (KafkaController.updateCurrentReassignment). `RepairPartitions` writes the corrected state. Where no member of the ISR is a replica, the
    partition moves from the ISR to its replicas.
    """
    columns = cluster.columns
    isr = columns.isr[rows]
    members = contained_in(isr, columns.replicas[rows])
    for row in rows[~any_of(members) & any_of(isr != NO_BROKER)].tolist():
        known = cluster.moves.pop(row, None)
        _start_move_from_isr(
            cluster, row, columns.isr_of(row), columns.replicas_of(row) if known is None else known.target
        )
    mixed = any_of(members) & any_of(~members & (isr != NO_BROKER))
    if not mixed.any():
        return
    rows = rows[mixed]
    cluster.corrected_rows.update(rows.tolist())
    columns.isr[rows] = keep_ids(isr[mixed], members[mixed])
    led = any_of(columns.isr[rows] == columns.leader[rows][:, None])
    columns.leader[rows] = np.where(led, columns.leader[rows], NO_LEADER)


def _moving_rows(cluster: Cluster, rows: IntArray) -> list[int]:
    """Rows that have a running move; no row is read while there is none."""
    return [row for row in rows.tolist() if row in cluster.moves] if cluster.moves else []
