"""Requests to brokers that follow from committed changes.

The order within one change is Kafka's (ControllerBrokerRequestBatch): LeaderAndIsr to the replicas, then UpdateMetadata to
all brokers. A new broker gets the live brokers first, since a follower reads its leader's address from them (protocol notes, Z32, Z40).

When a move has its target in sync, the brokers of removed replicas get requests to delete them, after the other brokers have got the
new state. These requests follow from the committed change and not from the decision, so a refused write deletes nothing (C9).

StopReplica requests of topic deletion and of controlled shutdown are in the modules that decide about these.
"""

from collections.abc import Container, Iterable, Iterator

import numpy as np

from controller_core import model
from controller_core.model import changes, columns, zookeeper_changes
from controller_core.model.decision import Send, SendLeaderAndIsr, SendMetadata, SendStopReplica
from controller_core.zookeeper_mode.transitions import apply


def apply_and_build_requests(cluster: model.Cluster, change: changes.Change) -> tuple[Send, ...]:
    """Apply a committed change and return the requests that follow from it."""
    if isinstance(change, zookeeper_changes.StatesObserved):
        return _apply_observed_states(cluster, change)
    if isinstance(change, zookeeper_changes.OfflineReplicasObserved):
        return _apply_offline_replicas(cluster, change)
    if isinstance(change, zookeeper_changes.TopicIdAssigned | zookeeper_changes.TopicObserved):
        return _apply_topic_id(cluster, change)
    if not isinstance(change, changes.PartitionStates):
        apply(cluster, change)
        return ()
    first_state = cluster.columns.partition_epoch[change.rows] == model.NO_EPOCH
    apply(cluster, change)
    sends = state_requests(cluster, change.rows, change.requests, first_state)
    if change.replicas is None:
        return sends
    return (*sends, *stop_removed_replicas(cluster, change.rows.tolist(), cluster.unfenced()))


def _apply_observed_states(cluster: model.Cluster, change: zookeeper_changes.StatesObserved) -> tuple[Send, ...]:
    """Apply states as found written, and send those that differ from the known ones.

    They may be this controller's own writes whose results were lost with the connection. No other process sends them then, and once
    they are known there is nothing left to decide.
    """
    partition_epoch = cluster.columns.partition_epoch[change.rows]
    leader_epoch = cluster.columns.leader_epoch[change.rows]
    first_state = partition_epoch == model.NO_EPOCH
    apply(cluster, change)
    in_service = np.isin(change.rows, cluster.without_pending_deletion(change.rows))
    new_leader_epoch = in_service & (change.leader_epoch != leader_epoch)
    changed = in_service & ~new_leader_epoch & (change.partition_epoch != partition_epoch)
    return (
        *state_requests(
            cluster,
            change.rows[new_leader_epoch],
            changes.RequestsToBrokers.LEADER_AND_ISR,
            first_state[new_leader_epoch],
        ),
        *state_requests(cluster, change.rows[changed], changes.RequestsToBrokers.METADATA_ONLY),
    )


def _apply_topic_id(
    cluster: model.Cluster, change: zookeeper_changes.TopicIdAssigned | zookeeper_changes.TopicObserved
) -> tuple[Send, ...]:
    """Apply a change of a topic, and send the topic's id to brokers if it had none before.

    Brokers accept the id from a LeaderAndIsr with the leader epoch that they know (ReplicaManager.becomeLeaderOrFollower).
    """
    topic = cluster.topics[change.topic if isinstance(change, zookeeper_changes.TopicIdAssigned) else change.name]
    had_id = topic.topic_id is not None
    apply(cluster, change)
    if had_id or topic.topic_id is None:
        return ()
    with_state = topic.rows[cluster.columns.partition_epoch[topic.rows] != model.NO_EPOCH]
    return state_requests(
        cluster, cluster.without_pending_deletion(with_state), changes.RequestsToBrokers.LEADER_AND_ISR
    )


def _apply_offline_replicas(
    cluster: model.Cluster, change: zookeeper_changes.OfflineReplicasObserved
) -> tuple[Send, ...]:
    """Apply offline and refused replicas, and send the partitions to all brokers even if no leader or ISR changes.

    After a takeover these replicas may already be out of both, and brokers got all partitions as if every replica were online.
    """
    apply(cluster, change)
    found = (cluster.row_of(*name) for name in (*change.offline, *change.online, *change.refused))
    rows = np.array(sorted(row for row in found if row is not None), dtype=np.int32)
    return state_requests(cluster, cluster.without_pending_deletion(rows), changes.RequestsToBrokers.METADATA_ONLY)


def stop_removed_replicas(cluster: model.Cluster, rows: Iterable[int], brokers: Container[int]) -> Iterator[Send]:
    """Return the requests to delete replicas that moved away from these brokers, one request per broker."""
    waiting = ((row, broker) for row in rows for broker in cluster.moves[row].waiting)
    return _delete_replicas(cluster, ((row, broker) for row, broker in waiting if broker in brokers))


def stop_stray_replicas(cluster: model.Cluster, brokers: Container[int]) -> Iterator[Send]:
    """Return the requests to brokers that came back to delete replicas that have moved away from them.

    A broker that was only frozen still acts as leader, and its producers wait for a high watermark that no follower raises.
    """
    replicas = [(row, broker) for row, move in cluster.moves.items() for broker in move.waiting]
    replicas += [(row, broker) for row, stray in cluster.stray_replicas.items() for broker in sorted(stray)]
    return _delete_replicas(cluster, ((row, broker) for row, broker in replicas if broker in brokers))


def _delete_replicas(cluster: model.Cluster, replicas: Iterable[tuple[int, int]]) -> Iterator[Send]:
    by_broker: dict[int, list[tuple[model.TopicPartition, int]]] = {}
    for row, broker in replicas:
        epoch = int(cluster.columns.leader_epoch[row])
        by_broker.setdefault(broker, []).append((cluster.name_of(row), epoch))
    for broker, partitions in by_broker.items():
        names, epochs = zip(*partitions, strict=True)
        yield SendStopReplica(broker, names, epochs, delete=True)


def state_requests(
    cluster: model.Cluster,
    rows: model.IntArray,
    requests: changes.RequestsToBrokers,
    first_state: model.BoolArray | None = None,
) -> tuple[Send, ...]:
    """Return the requests that send the current state of rows to replicas and to all brokers."""
    brokers = tuple(sorted(cluster.unfenced()))
    if not len(rows) or not brokers:
        return ()
    metadata = SendMetadata(brokers, rows)
    if requests is changes.RequestsToBrokers.METADATA_ONLY:
        return (metadata,)
    return (*leader_and_isr_requests(cluster, brokers, rows, first_state), metadata)


def leader_and_isr_requests(
    cluster: model.Cluster, brokers: Iterable[int], rows: model.IntArray, first_state: model.BoolArray | None = None
) -> Iterator[SendLeaderAndIsr]:
    """Return a request per broker with the current state of the rows of which it has replicas; none for a broker without any."""
    replicas = cluster.columns.replicas[rows]
    for broker in brokers:
        hosted = columns.any_of(replicas == broker)
        if not hosted.any():
            continue
        rows_of_broker = rows[hosted]
        is_new = np.zeros(len(rows_of_broker), dtype=np.bool_) if first_state is None else first_state[hosted]
        if cluster.moves:
            added = [_is_being_added(cluster, row, broker) for row in rows_of_broker.tolist()]
            is_new = is_new | np.array(added, dtype=np.bool_)
        yield SendLeaderAndIsr(broker, rows_of_broker, is_new)


def _is_being_added(cluster: model.Cluster, row: int, broker: int) -> bool:
    """Whether a move is adding a replica. From stage REMOVING on the replica is in sync and not new."""
    move = cluster.moves.get(row)
    return move is not None and move.stage is not model.MoveStage.REMOVING and broker in move.adding


def full_metadata_request(cluster: model.Cluster, brokers: tuple[int, ...]) -> SendMetadata:
    """Return the request with the full state: every live broker and every partition that has a state."""
    rows = cluster.columns.used()
    with_state = rows[cluster.columns.partition_epoch[rows] != model.NO_EPOCH]
    return SendMetadata(brokers, cluster.without_pending_deletion(with_state))
