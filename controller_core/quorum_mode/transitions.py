"""The state after a change in KRaft mode: a table from changes to the functions that apply them."""

from controller_core.decisions.transitions import Transitions, allocate_producer_ids, observe_producer_ids
from controller_core.model import Cluster, changes, quorum_changes
from controller_core.quorum_mode import broker_transitions, partition_transitions

TRANSITIONS: Transitions = {
    quorum_changes.BrokerRegistered: broker_transitions.register_broker,
    quorum_changes.BrokerChanged: broker_transitions.change_broker,
    changes.BrokerUnregistered: broker_transitions.unregister_broker,
    quorum_changes.HeartbeatObserved: broker_transitions.observe_heartbeat,
    quorum_changes.ShutdownOffsetObserved: broker_transitions.observe_shutdown_offset,
    quorum_changes.BrokerSuspected: broker_transitions.suspect_broker,
    quorum_changes.BrokerLeaving: broker_transitions.begin_leaving,
    quorum_changes.ConfigsChanged: broker_transitions.change_configs,
    quorum_changes.FeatureLevelChanged: broker_transitions.change_feature_level,
    changes.TopicAdded: partition_transitions.add_topic,
    changes.PartitionsAdded: partition_transitions.add_partitions,
    changes.TopicRemoved: partition_transitions.remove_topic,
    changes.PartitionStates: partition_transitions.change_states,
    quorum_changes.PartitionsReplayed: partition_transitions.replay_partitions,
    quorum_changes.StatesReplayed: partition_transitions.replay_states,
    quorum_changes.ElrCleared: partition_transitions.clear_elr,
    changes.ProducerIdsAllocated: allocate_producer_ids,
    changes.ProducerIdsObserved: observe_producer_ids,
}


def apply(cluster: Cluster, change: changes.Change) -> None:
    """Apply a change that is committed, or kept in memory only. Nothing else changes the state of a cluster in KRaft mode."""
    TRANSITIONS[type(change)](change, cluster)
