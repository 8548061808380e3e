"""Transitions of topics and partitions in KRaft mode."""

from itertools import accumulate, pairwise

import numpy as np

from controller_core.decisions import transitions
from controller_core.model import NO_BROKER, Cluster, IntArray, changes, quorum_changes, settings
from controller_core.model.cluster import NO_ROW
from controller_core.model.columns import any_of
from controller_core.model.ids import INITIAL_LEADER_EPOCH
from controller_core.quorum_mode import directory_transitions


def add_topic(change: changes.TopicAdded, cluster: Cluster) -> None:
    """Add a topic and its partitions with their first states."""
    rows = transitions.add_topic(change, cluster)
    _set_first_states(cluster, rows, change)
    if settings.MIN_ISR in change.configs:
        cluster.min_isr_topics[change.name] = int(change.configs[settings.MIN_ISR])


def add_partitions(change: changes.PartitionsAdded, cluster: Cluster) -> None:
    """Add partitions to a topic with their first states."""
    _set_first_states(cluster, transitions.add_partitions(change, cluster), change)


def _set_first_states(cluster: Cluster, rows: IntArray, change: changes.TopicAdded | changes.PartitionsAdded) -> None:
    if (states := change.states) is None:
        return
    first = np.full(len(rows), INITIAL_LEADER_EPOCH, dtype=np.int32)
    cluster.columns.set_states(rows, states.leader, first, states.isr, first, cluster.controller_epoch)
    directory_transitions.set_first_directories(cluster, rows, change.replicas, states)


def remove_topic(change: changes.TopicRemoved, cluster: Cluster) -> None:
    """Remove a deleted topic."""
    cluster.remove_topic(change.topic)


def change_states(change: changes.PartitionStates, cluster: Cluster) -> None:
    """Set new states, eligible leader replicas and directories; start, change and (None) end moves."""
    transitions.change_states(change, cluster)
    if change.elr is not None and change.last_known_elr is not None:
        cluster.columns.set_elr(change.rows, change.elr, change.last_known_elr)
    directory_transitions.set_directories(cluster, change.directories or {})
    for row, move in (change.moves or {}).items():
        if move is None:
            cluster.moves.pop(row, None)
        else:
            cluster.moves[row] = move


def replay_states(change: quorum_changes.StatesReplayed, cluster: Cluster) -> None:
    """Set the states that records of the log describe."""
    cluster.columns.set_elr(change.rows, change.elr, change.last_known_elr)
    transitions.set_states(cluster, change.rows, change.leader, change.leader_epoch, change.isr, change.recovering)


def replay_partitions(change: quorum_changes.PartitionsReplayed, cluster: Cluster) -> None:
    """Set whole states, and add the partitions that are new."""
    columns, rows = cluster.columns, _replayed_rows(change, cluster)
    columns.set_replicas(rows, change.replicas)
    columns.set_states(
        rows,
        change.leader,
        change.leader_epoch,
        change.isr,
        change.partition_epoch,
        cluster.controller_epoch,
        change.recovering,
    )
    columns.set_elr(rows, change.elr, change.last_known_elr)
    numbers = np.array([*map(cluster.directory_number, change.directory_ids), NO_BROKER], dtype=np.int32)
    directory_transitions.set_directory_numbers(cluster, rows, numbers[change.directories])
    listed = rows.tolist()
    for row in cluster.moves.keys() & listed:
        del cluster.moves[row]
    cluster.moves.update({listed[place]: move for place, move in change.moves.items()})


def _replayed_rows(change: quorum_changes.PartitionsReplayed, cluster: Cluster) -> IntArray:
    """Return the rows of partitions; those that are new get theirs."""
    topics = [cluster.topics[name] for name, _ in change.topics]
    ends = list(accumulate(count for _, count in change.topics))
    places = [slice(begin, end) for begin, end in pairwise((0, *ends))]
    known = (cluster.rows_of(topic, change.partitions[place]) for topic, place in zip(topics, places, strict=True))
    rows = np.concatenate(list(known))
    is_new = rows == NO_ROW
    if is_new.any():
        indices = np.repeat([topic.index for topic in topics], [count for _, count in change.topics])
        rows[is_new] = cluster.columns.add(indices[is_new], change.partitions[is_new], change.replicas[is_new])
        for topic, place in zip(topics, places, strict=True):
            with_new = np.concatenate((topic.rows, rows[place][is_new[place]]))
            topic.rows = with_new[np.argsort(cluster.columns.partition[with_new], kind="stable")]
    return rows


def clear_elr(change: quorum_changes.ElrCleared, cluster: Cluster) -> None:
    """Discard eligible leader replicas; as in Kafka, only the partition epochs of partitions that had some grow."""
    columns = cluster.columns
    rows = columns.used() if change.topic is None else cluster.topics[change.topic].rows
    had_any = any_of(columns.elr_in(rows) != NO_BROKER) | any_of(columns.last_known_elr_in(rows) != NO_BROKER)
    cleared = rows[had_any]
    nothing = np.full((len(cleared), 1), NO_BROKER, dtype=np.int32)
    columns.set_elr(cleared, nothing, nothing)
    columns.partition_epoch[cleared] += 1
