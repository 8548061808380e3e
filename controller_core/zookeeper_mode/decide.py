"""Dispatch of events to their deciding functions.

The order of events is in `shell.scheduler`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from controller_core.decisions.failover import decide_repair_partitions
from controller_core.decisions.isr import decide_alter_partition
from controller_core.decisions.leader_balance import decide_balance_leaders
from controller_core.decisions.leader_elections import decide_elect_leaders
from controller_core.decisions.producer_ids import decide_allocate_producer_ids
from controller_core.decisions.reassignment import decide_advance_moves, decide_alter_reassignments
from controller_core.decisions.shutdown import decide_controlled_shutdown
from controller_core.decisions.topics import decide_create_partitions, decide_create_topics
from controller_core.model import events
from controller_core.model.cluster import Cluster
from controller_core.model.decision import Decision
from controller_core.zookeeper_mode import deletion, legacy_requests, observed_topics
from controller_core.zookeeper_mode.broker_notifications import decide_isr_changes_read, decide_log_dirs_failed
from controller_core.zookeeper_mode.broker_settings import (
    decide_resume_topics,
    decide_topic_deletion_read,
    decide_unclean_election_read,
)
from controller_core.zookeeper_mode.leader_and_isr_answers import (
    decide_leader_and_isr_answered,
    decide_leader_and_isr_rejected,
)
from controller_core.zookeeper_mode.registered_brokers import decide_activated, decide_brokers_read
from controller_core.zookeeper_mode.stray_logs import (
    decide_replace_stale_logs,
    decide_stray_logs_found,
    decide_unregister_broker,
)

DECIDERS: Mapping[type[events.Event], Callable[[Cluster, Any], Decision[Any]]] = {
    events.Activated: lambda cluster, _: decide_activated(cluster),
    events.BrokersRead: decide_brokers_read,
    events.TopicsRead: observed_topics.decide_topics_read,
    events.TopicsChanged: observed_topics.decide_topics_changed,
    events.AssignTopicIds: observed_topics.decide_assign_topic_ids,
    events.DeletionsRead: deletion.decide_deletions_read,
    events.TopicDeletionRead: decide_topic_deletion_read,
    events.ResumeTopics: decide_resume_topics,
    events.IsrChangesRead: decide_isr_changes_read,
    events.LogDirsFailed: decide_log_dirs_failed,
    events.ReassignmentRequestsRead: legacy_requests.decide_reassignment_requests_read,
    events.ReviewReassignmentRequests: legacy_requests.decide_review_reassignment_requests,
    events.ElectionRequestsRead: legacy_requests.decide_election_requests_read,
    events.RemoveElectionRequests: legacy_requests.decide_remove_election_requests,
    events.UncleanElectionRead: decide_unclean_election_read,
    events.RepairPartitions: decide_repair_partitions,
    events.RepairAssignments: lambda cluster, _: observed_topics.decide_repair_assignments(cluster),
    events.AdvanceMoves: decide_advance_moves,
    events.AdvanceDeletions: deletion.decide_advance_deletions,
    events.StopReplicaAnswered: deletion.decide_stop_replica_answered,
    events.LeaderAndIsrAnswered: decide_leader_and_isr_answered,
    events.LeaderAndIsrRejected: decide_leader_and_isr_rejected,
    events.ReplaceStaleLogs: decide_replace_stale_logs,
    events.StrayLogsFound: decide_stray_logs_found,
    events.UnregisterBroker: decide_unregister_broker,
    events.CreateTopics: decide_create_topics,
    events.DeleteTopics: deletion.decide_delete_topics,
    events.CreatePartitions: decide_create_partitions,
    events.AlterReassignments: decide_alter_reassignments,
    events.ElectLeaders: decide_elect_leaders,
    events.BalanceLeaders: decide_balance_leaders,
    events.AlterPartition: decide_alter_partition,
    events.ControlledShutdown: decide_controlled_shutdown,
    events.AllocateProducerIds: decide_allocate_producer_ids,
}


def decide(cluster: Cluster, event: events.Event) -> Decision[Any]:
    """Return the decision about an event on the present state. Changes nothing."""
    return DECIDERS[type(event)](cluster, event)
