"""State transitions: `apply` is the only function that changes the cluster's state.

Every applied change has been committed, is observed, or is kept in memory only. Nothing here can therefore fail because of the
state of the cluster; an assertion that fails is a defect of this program.
"""

from collections.abc import Callable, Mapping
from typing import Any

from controller_core.decisions import broker_transitions, partition_transitions, topic_transitions
from controller_core.model import Cluster, changes, quorum_changes, zookeeper_changes

NOT_IN_METADATA = (
    zookeeper_changes.AssignmentRestored,
    quorum_changes.BrokerLeaving,
    quorum_changes.BrokerSuspected,
    zookeeper_changes.DeletionQueued,
    zookeeper_changes.ElectionRequestsProcessed,
    quorum_changes.HeartbeatObserved,
    zookeeper_changes.PendingReassignmentRequestsChanged,
    zookeeper_changes.NotificationsProcessed,
    changes.ProducerIdsAllocated,
    changes.ProducerIdsObserved,
    zookeeper_changes.ReplicaRemovalAnswered,
    zookeeper_changes.ReplicasDeleted,
    quorum_changes.ShutdownOffsetObserved,
    changes.UncleanElectionObserved,
)
"""Changes that no Metadata response shows; every other kind increments `metadata_version`."""


def apply(cluster: Cluster, change: changes.Change) -> None:
    """Apply a committed change in memory."""
    TRANSITIONS[type(change)](change, cluster)
    if not isinstance(change, NOT_IN_METADATA):
        cluster.metadata_version += 1


def _apply_nothing(_change: changes.Change, _cluster: Cluster) -> None:
    """Apply a change of which no state is kept in memory."""


TRANSITIONS: Mapping[type[changes.Change], Callable[[Any, Cluster], None]] = {
    zookeeper_changes.BrokersObserved: partition_transitions.observe_brokers,
    quorum_changes.BrokerRegistered: broker_transitions.register_broker,
    quorum_changes.BrokerChanged: broker_transitions.change_broker,
    quorum_changes.HeartbeatObserved: broker_transitions.observe_heartbeat,
    quorum_changes.ShutdownOffsetObserved: broker_transitions.observe_shutdown_offset,
    quorum_changes.BrokerSuspected: broker_transitions.suspect_broker,
    quorum_changes.BrokerLeaving: broker_transitions.begin_leaving,
    quorum_changes.ConfigsChanged: broker_transitions.change_configs,
    quorum_changes.FeatureLevelChanged: broker_transitions.change_feature_level,
    quorum_changes.ElrCleared: broker_transitions.clear_elr,
    changes.ControlledShutdownStarted: partition_transitions.start_controlled_shutdown,
    changes.UncleanElectionObserved: topic_transitions.observe_unclean_election,
    zookeeper_changes.TopicDeletionObserved: topic_transitions.observe_topic_deletion_setting,
    changes.TopicAdded: topic_transitions.add_topic,
    changes.PartitionsAdded: topic_transitions.add_partitions,
    changes.PartitionStates: partition_transitions.change_states,
    quorum_changes.PartitionsReplayed: topic_transitions.replay_partitions,
    quorum_changes.StatesReplayed: partition_transitions.replay_states,
    zookeeper_changes.StatesObserved: partition_transitions.observe_states,
    zookeeper_changes.OfflineReplicasObserved: partition_transitions.observe_offline_replicas,
    zookeeper_changes.NotificationsProcessed: _apply_nothing,
    zookeeper_changes.TopicObserved: partition_transitions.observe_assignment,
    zookeeper_changes.TopicIdAssigned: topic_transitions.assign_topic_id,
    zookeeper_changes.AssignmentRestored: _apply_nothing,
    changes.MovesStarted: partition_transitions.start_moves,
    changes.MovesFinished: partition_transitions.finish_moves,
    zookeeper_changes.PendingReassignmentRequestsChanged: topic_transitions.set_reassignment_requests,
    zookeeper_changes.ElectionRequestsProcessed: _apply_nothing,
    zookeeper_changes.ReplicaRemovalAnswered: partition_transitions.confirm_replica_removal,
    zookeeper_changes.StrayReplicasObserved: partition_transitions.observe_stray_replicas,
    changes.BrokerUnregistered: partition_transitions.unregister_broker,
    zookeeper_changes.DeletionQueued: topic_transitions.queue_deletions,
    zookeeper_changes.DeletionDequeued: topic_transitions.dequeue_deletions,
    zookeeper_changes.DeletionStarted: topic_transitions.start_deletion,
    zookeeper_changes.DeletionBlocked: topic_transitions.block_deletion,
    zookeeper_changes.ReplicasDeleted: topic_transitions.confirm_deleted_replicas,
    changes.TopicRemoved: topic_transitions.remove_topic,
    changes.ProducerIdsAllocated: topic_transitions.allocate_producer_ids,
    changes.ProducerIdsObserved: topic_transitions.observe_producer_ids,
}
