"""Transitions of topics, deletions, settings and producer ids.

`transition.apply` calls these functions.
"""

from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import TypeVar

import numpy as np

from controller_core.decisions.directory_transitions import set_directory_numbers, set_first_directories
from controller_core.model import (
    NO_BROKER,
    Cluster,
    Deletion,
    IntArray,
    Origin,
    changes,
    quorum_changes,
    zookeeper_changes,
)
from controller_core.model.cluster import NO_ROW
from controller_core.model.ids import INITIAL_LEADER_EPOCH
from kafka_node.configs.topic_configs import config_value

Key = TypeVar("Key")

MIN_ISR = "min.insync.replicas"
"""Topic configuration with which the members of an ISR are eligible leader replicas when they leave it (KIP-966)."""
UNCLEAN_ELECTION = "unclean.leader.election.enable"
"""Topic configuration that allows a replica from outside the ISR to lead if the ISR has no live member."""


def observe_unclean_election(change: changes.UncleanElectionObserved, cluster: Cluster) -> None:
    """Update `unclean.leader.election.enable`."""
    _update_settings(cluster.unclean_topics, change.topics)
    _update_settings(cluster.unclean_defaults, change.defaults)


def observe_topic_deletion_setting(change: zookeeper_changes.TopicDeletionObserved, cluster: Cluster) -> None:
    """Update `delete.topic.enable`."""
    cluster.topic_deletion = change.setting


def add_topic(change: changes.TopicAdded, cluster: Cluster) -> None:
    """Add a topic, its partitions and its running moves."""
    assert change.name not in cluster.topics, f"topic {change.name} exists already"
    topic = cluster.add_topic(change.name, change.topic_id)
    topic.rows = cluster.columns.add(topic.index, change.partitions, change.replicas)
    _set_first_states(cluster, topic.rows, change)
    for position, partition in enumerate(change.partitions.tolist()):
        if (move := change.moves.get(partition)) is not None:
            cluster.moves[int(topic.rows[position])] = move
    # Kafka parses a boolean regardless of case and of surrounding whitespace (ConfigDef.parseType).
    if UNCLEAN_ELECTION in change.configs:
        cluster.unclean_topics[change.name] = config_value(UNCLEAN_ELECTION, change.configs) is True
    if cluster.rules.elects_completely and MIN_ISR in change.configs:
        cluster.min_isr_topics[change.name] = int(change.configs[MIN_ISR])


def add_partitions(change: changes.PartitionsAdded, cluster: Cluster) -> None:
    """Add partitions to a topic."""
    topic = cluster.topics[change.topic]
    rows = cluster.columns.add(topic.index, change.partitions, change.replicas)
    _set_first_states(cluster, rows, change)
    topic.rows = np.concatenate([topic.rows, rows])


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
    set_directory_numbers(cluster, rows, numbers[change.directories])
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


def _set_first_states(cluster: Cluster, rows: IntArray, change: changes.TopicAdded | changes.PartitionsAdded) -> None:
    if (states := change.states) is None:
        return
    first = np.full(len(rows), INITIAL_LEADER_EPOCH, dtype=np.int32)
    cluster.columns.set_states(rows, states.leader, first, states.isr, first, cluster.controller_epoch)
    set_first_directories(cluster, rows, change.replicas, states)


def assign_topic_id(change: zookeeper_changes.TopicIdAssigned, cluster: Cluster) -> None:
    """Set a topic's id."""
    cluster.set_topic_id(cluster.topics[change.topic], change.topic_id)


def set_reassignment_requests(change: zookeeper_changes.PendingReassignmentRequestsChanged, cluster: Cluster) -> None:
    """Replace the list of running requested reassignments."""
    cluster.reassignment_requests = dict(change.targets)


def queue_deletions(change: zookeeper_changes.DeletionQueued, cluster: Cluster) -> None:
    """Queue topics for deletion."""
    for name in change.topics:
        cluster.deletions.setdefault(name, Deletion())


def dequeue_deletions(change: zookeeper_changes.DeletionDequeued, cluster: Cluster) -> None:
    """Remove names from the deletion queue."""
    for name in change.names:
        cluster.deletions.pop(name, None)


def start_deletion(change: zookeeper_changes.DeletionStarted, cluster: Cluster) -> None:
    """Record the replicas whose deletion is not confirmed."""
    waiting = {broker: set(partitions) for broker, partitions in change.waiting.items()}
    cluster.deletions[change.topic] = Deletion(waiting, started=True)


def block_deletion(change: zookeeper_changes.DeletionBlocked, cluster: Cluster) -> None:
    """Record why a deletion cannot continue."""
    cluster.deletions[change.topic] = Deletion(blocked=change.reason, refused=change.refused)


def confirm_deleted_replicas(change: zookeeper_changes.ReplicasDeleted, cluster: Cluster) -> None:
    """Stop waiting for deleted replicas."""
    deletion = cluster.deletions.get(change.topic)
    if deletion is None or change.broker not in deletion.waiting:
        return
    deletion.waiting[change.broker] -= set(change.partitions)
    if not deletion.waiting[change.broker]:
        del deletion.waiting[change.broker]


def remove_topic(change: changes.TopicRemoved, cluster: Cluster) -> None:
    """Remove a deleted topic."""
    cluster.remove_topic(change.topic)
    if change.origin is Origin.REQUESTED:
        cluster.record_deleted_topic(change.topic)


def allocate_producer_ids(change: changes.ProducerIdsAllocated, cluster: Cluster) -> None:
    """Advance the end of allocated producer ids."""
    cluster.last_producer_id = change.last


def observe_producer_ids(change: changes.ProducerIdsObserved, cluster: Cluster) -> None:
    """Set the end of allocated producer ids as found written."""
    cluster.last_producer_id = change.block_end


def _update_settings(known: dict[Key, bool], reported: Mapping[Key, bool | None]) -> None:
    """Set the reported values, and remove those that are None."""
    for key, value in reported.items():
        if value is None:
            known.pop(key, None)
        else:
            known[key] = value
