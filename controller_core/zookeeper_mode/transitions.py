"""The state after a change in ZooKeeper mode: a table from changes to the functions that apply them."""

from controller_core.decisions.transitions import (
    Transitions,
    add_partitions,
    allocate_producer_ids,
    observe_producer_ids,
)
from controller_core.model import Cluster, changes, zookeeper_changes
from controller_core.zookeeper_mode import partition_transitions, topic_transitions


def _apply_nothing(_change: changes.Change, _cluster: Cluster) -> None:
    """Apply a change of which no state is kept in memory."""


TRANSITIONS: Transitions = {
    zookeeper_changes.BrokersObserved: partition_transitions.observe_brokers,
    changes.BrokerUnregistered: partition_transitions.forget_stray_replicas,
    zookeeper_changes.ControlledShutdownStarted: partition_transitions.start_controlled_shutdown,
    zookeeper_changes.UncleanElectionObserved: topic_transitions.observe_unclean_election,
    zookeeper_changes.TopicDeletionObserved: topic_transitions.observe_topic_deletion_setting,
    changes.TopicAdded: topic_transitions.add_topic,
    zookeeper_changes.TopicObserved: partition_transitions.observe_assignment,
    zookeeper_changes.TopicIdAssigned: topic_transitions.assign_topic_id,
    zookeeper_changes.AssignmentRestored: _apply_nothing,
    changes.PartitionsAdded: add_partitions,
    changes.PartitionStates: partition_transitions.change_states,
    zookeeper_changes.StatesObserved: partition_transitions.observe_states,
    zookeeper_changes.OfflineReplicasObserved: partition_transitions.observe_offline_replicas,
    zookeeper_changes.NotificationsProcessed: _apply_nothing,
    zookeeper_changes.MovesStarted: partition_transitions.start_moves,
    zookeeper_changes.MovesFinished: partition_transitions.finish_moves,
    zookeeper_changes.ReplicaRemovalAnswered: partition_transitions.confirm_replica_removal,
    zookeeper_changes.StrayReplicasObserved: partition_transitions.observe_stray_replicas,
    zookeeper_changes.PendingReassignmentRequestsChanged: topic_transitions.set_reassignment_requests,
    zookeeper_changes.ElectionRequestsProcessed: _apply_nothing,
    zookeeper_changes.DeletionQueued: topic_transitions.queue_deletions,
    zookeeper_changes.DeletionDequeued: topic_transitions.dequeue_deletions,
    zookeeper_changes.DeletionStarted: topic_transitions.start_deletion,
    zookeeper_changes.DeletionBlocked: topic_transitions.block_deletion,
    zookeeper_changes.ReplicasDeleted: topic_transitions.confirm_deleted_replicas,
    changes.TopicRemoved: topic_transitions.remove_topic,
    changes.ProducerIdsAllocated: allocate_producer_ids,
    changes.ProducerIdsObserved: observe_producer_ids,
}

NOT_IN_METADATA = (
    zookeeper_changes.AssignmentRestored,
    zookeeper_changes.DeletionQueued,
    zookeeper_changes.ElectionRequestsProcessed,
    zookeeper_changes.PendingReassignmentRequestsChanged,
    zookeeper_changes.NotificationsProcessed,
    changes.ProducerIdsAllocated,
    changes.ProducerIdsObserved,
    zookeeper_changes.ReplicaRemovalAnswered,
    zookeeper_changes.ReplicasDeleted,
    zookeeper_changes.UncleanElectionObserved,
)
"""Changes that no Metadata response shows; every other kind increments `metadata_version`."""


def apply(cluster: Cluster, change: changes.Change) -> None:
    """Apply a change that is committed, observed, or kept in memory only. Nothing else changes the state of a cluster in ZooKeeper mode."""
    TRANSITIONS[type(change)](change, cluster)
    if not isinstance(change, NOT_IN_METADATA):
        cluster.metadata_version += 1
