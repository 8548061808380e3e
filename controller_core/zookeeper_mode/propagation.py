"""What brokers are told about a committed change.

The order within one change is Kafka's (ControllerBrokerRequestBatch): LeaderAndIsr to the replicas, then UpdateMetadata to
everybody. A new broker first hears who is alive, since a follower looks its leader's address up there (protocol notes, Z32, Z40).

A partition that leaves brokers behind (a move that has its target in sync) tells these to delete, after the others know:
this follows from the committed change and never from the wish, so a refused write deletes nothing (C9).

Leaves out the StopReplica of deletions and of controlled shutdown: the deciding modules ask for these.
"""

from collections.abc import Container, Iterable, Iterator

import numpy as np

from controller_core.decisions.transition import apply
from controller_core.model import changes
from controller_core.model.cluster import Cluster
from controller_core.model.columns import BoolArray, IntArray, any_of
from controller_core.model.ids import NO_EPOCH, TopicPartition
from controller_core.model.move import MoveStage
from controller_core.model.sends import Send, SendLeaderAndIsr, SendMetadata, SendStopReplica


def apply_and_build_requests(cluster: Cluster, change: changes.Change) -> tuple[Send, ...]:
    """Apply a committed change and say what brokers have to hear of it."""
    if isinstance(change, changes.StatesObserved):
        return _tell_what_was_found(cluster, change)
    if isinstance(change, changes.OfflineReplicasObserved):
        return _tell_who_is_offline(cluster, change)
    if isinstance(change, changes.TopicIdAssigned | changes.TopicObserved):
        return _send_new_topic_id(cluster, change)
    if not isinstance(change, changes.PartitionStates):
        apply(cluster, change)
        return ()
    first_state = cluster.columns.partition_epoch[change.rows] == NO_EPOCH
    apply(cluster, change)
    sends = state_requests(cluster, change.rows, change.requests, first_state)
    if change.replicas is None:
        return sends
    return (*sends, *stop_removed_replicas(cluster, change.rows.tolist(), cluster.unfenced()))


def _tell_what_was_found(cluster: Cluster, change: changes.StatesObserved) -> tuple[Send, ...]:
    """Apply states as they were found written, and tell of those that are others than were known.

    They may be our own: written, and the connection went before we heard of it. Then nobody else will tell them, and once
    they are known nothing is left to decide.
    """
    before = cluster.columns.partition_epoch[change.rows], cluster.columns.leader_epoch[change.rows]
    first_state = before[0] == NO_EPOCH
    apply(cluster, change)
    in_service = np.isin(change.rows, cluster.without_pending_deletion(change.rows))
    led_anew = in_service & (change.leader_epoch != before[1])
    changed = in_service & ~led_anew & (change.partition_epoch != before[0])
    return (
        *state_requests(
            cluster, change.rows[led_anew], changes.RequestsToBrokers.LEADER_AND_ISR, first_state[led_anew]
        ),
        *state_requests(cluster, change.rows[changed], changes.RequestsToBrokers.METADATA_ONLY),
    )


def _send_new_topic_id(cluster: Cluster, change: changes.TopicIdAssigned | changes.TopicObserved) -> tuple[Send, ...]:
    """Apply a change of a topic, and send the topic's id to the brokers if it had none before.

    Brokers take the id from a LeaderAndIsr under the leader epoch that they know (ReplicaManager.becomeLeaderOrFollower).
    """
    topic = cluster.topics[change.topic if isinstance(change, changes.TopicIdAssigned) else change.name]
    had_id = topic.topic_id is not None
    apply(cluster, change)
    if had_id or topic.topic_id is None:
        return ()
    with_state = topic.rows[cluster.columns.partition_epoch[topic.rows] != NO_EPOCH]
    return state_requests(
        cluster, cluster.without_pending_deletion(with_state), changes.RequestsToBrokers.LEADER_AND_ISR
    )


def _tell_who_is_offline(cluster: Cluster, change: changes.OfflineReplicasObserved) -> tuple[Send, ...]:
    """Apply what became of replicas in failed log directories, and tell everybody: it need change no leader and no ISR.

    After a take-over they are out of both already, and brokers were told of all partitions as if every replica were there.
    """
    apply(cluster, change)
    found = (cluster.row_of(*name) for name in (*change.offline, *change.online, *change.refused))
    rows = np.array(sorted(row for row in found if row is not None), dtype=np.int32)
    return state_requests(cluster, cluster.without_pending_deletion(rows), changes.RequestsToBrokers.METADATA_ONLY)


def stop_removed_replicas(cluster: Cluster, rows: Iterable[int], brokers: Container[int]) -> Iterator[Send]:
    """Tell those of the brokers that moved partitions leave to delete their replicas, one request a broker."""
    waiting = ((row, broker) for row in rows for broker in cluster.moves[row].waiting)
    return _delete_replicas(cluster, ((row, broker) for row, broker in waiting if broker in brokers))


def stop_stray_replicas(cluster: Cluster, brokers: Container[int]) -> Iterator[Send]:
    """Tell brokers that came back to delete what moved away from them, while they were there or away.

    One that was only frozen still takes itself for the leader, and has producers wait for a high watermark that no follower
    will raise.
    """
    left = [(row, broker) for row, move in cluster.moves.items() for broker in move.waiting]
    left += [(row, broker) for row, away in cluster.stray_replicas.items() for broker in sorted(away)]
    return _delete_replicas(cluster, ((row, broker) for row, broker in left if broker in brokers))


def _delete_replicas(cluster: Cluster, replicas: Iterable[tuple[int, int]]) -> Iterator[Send]:
    by_broker: dict[int, list[tuple[TopicPartition, int]]] = {}
    for row, broker in replicas:
        epoch = int(cluster.columns.leader_epoch[row])
        by_broker.setdefault(broker, []).append((cluster.name_of(row), epoch))
    for broker, left in by_broker.items():
        names, epochs = zip(*left, strict=True)
        yield SendStopReplica(broker, names, epochs, delete=True)


def state_requests(
    cluster: Cluster, rows: IntArray, requests: changes.RequestsToBrokers, first_state: BoolArray | None = None
) -> tuple[Send, ...]:
    """Tell replicas and everybody the present state of rows."""
    everybody = tuple(sorted(cluster.unfenced()))
    if not len(rows) or not everybody:
        return ()
    metadata = SendMetadata(everybody, rows)
    if requests is changes.RequestsToBrokers.METADATA_ONLY:
        return (metadata,)
    return (*leader_and_isr_requests(cluster, everybody, rows, first_state), metadata)


def leader_and_isr_requests(
    cluster: Cluster, brokers: Iterable[int], rows: IntArray, first_state: BoolArray | None = None
) -> Iterator[SendLeaderAndIsr]:
    """Tell each broker the present state of those rows that it holds a replica of; nothing to one that holds none."""
    replicas = cluster.columns.replicas[rows]
    for broker in brokers:
        hosted = any_of(replicas == broker)
        if not hosted.any():
            continue
        mine = rows[hosted]
        is_new = np.zeros(len(mine), dtype=np.bool_) if first_state is None else first_state[hosted]
        if cluster.moves:
            added = [_is_being_added(cluster, row, broker) for row in mine.tolist()]
            is_new = is_new | np.array(added, dtype=np.bool_)
        yield SendLeaderAndIsr(broker, mine, is_new)


def _is_being_added(cluster: Cluster, row: int, broker: int) -> bool:
    """Whether a move brings a replica in: at its end the replica is in sync, and new no more."""
    move = cluster.moves.get(row)
    return move is not None and move.stage is not MoveStage.REMOVING and broker in move.adding


def full_metadata_request(cluster: Cluster, brokers: tuple[int, ...]) -> SendMetadata:
    """Tell brokers all that there is: every live broker and every partition that has a state."""
    rows = cluster.columns.used()
    with_state = rows[cluster.columns.partition_epoch[rows] != NO_EPOCH]
    return SendMetadata(brokers, cluster.without_pending_deletion(with_state))
