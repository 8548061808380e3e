"""Transitions of topics, deletions, settings and requests of old tools in ZooKeeper mode."""

from collections.abc import Mapping
from typing import TypeVar

from controller_core.decisions import transitions
from controller_core.model import Cluster, Deletion, Origin, changes, zookeeper_changes

Key = TypeVar("Key")


def observe_unclean_election(change: zookeeper_changes.UncleanElectionObserved, cluster: Cluster) -> None:
    """Update `unclean.leader.election.enable`."""
    _update_settings(cluster.unclean_topics, change.topics)
    _update_settings(cluster.unclean_defaults, change.defaults)


def observe_topic_deletion_setting(change: zookeeper_changes.TopicDeletionObserved, cluster: Cluster) -> None:
    """Update `delete.topic.enable`."""
    cluster.topic_deletion = change.setting


def add_topic(change: changes.TopicAdded, cluster: Cluster) -> None:
    """Add a topic, its partitions and its running moves."""
    rows = transitions.add_topic(change, cluster)
    for position, partition in enumerate(change.partitions.tolist()):
        if (move := change.moves.get(partition)) is not None:
            cluster.moves[int(rows[position])] = move


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


def _update_settings(known: dict[Key, bool], reported: Mapping[Key, bool | None]) -> None:
    """Set the reported values, and remove those that are None."""
    for key, value in reported.items():
        if value is None:
            known.pop(key, None)
        else:
            known[key] = value
