"""Dispatch of events to their deciding functions.

The order of events is in `shell.scheduler`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from controller_core.decisions import broker_requests, leader_elections, topics
from controller_core.model import Cluster, events, zookeeper_events
from controller_core.model.decision import Decision
from controller_core.zookeeper_mode import (
    broker_settings,
    controlled_shutdown,
    deletion,
    failover,
    leader_and_isr_answers,
    legacy_requests,
    moves,
    observed_topics,
    registered_brokers,
    stray_logs,
)

DECIDERS: Mapping[type[events.Event], Callable[[Cluster, Any], Decision[Any]]] = {
    zookeeper_events.Activated: lambda cluster, _: registered_brokers.decide_activated(cluster),
    zookeeper_events.BrokersRead: registered_brokers.decide_brokers_read,
    zookeeper_events.TopicsRead: observed_topics.decide_topics_read,
    zookeeper_events.TopicsChanged: observed_topics.decide_topics_changed,
    zookeeper_events.AssignTopicIds: observed_topics.decide_assign_topic_ids,
    zookeeper_events.DeletionsRead: deletion.decide_deletions_read,
    zookeeper_events.TopicDeletionRead: broker_settings.decide_topic_deletion_read,
    zookeeper_events.ResumeTopics: broker_settings.decide_resume_topics,
    zookeeper_events.IsrChangesRead: registered_brokers.decide_isr_changes_read,
    zookeeper_events.LogDirsFailed: registered_brokers.decide_log_dirs_failed,
    zookeeper_events.ReassignmentRequestsRead: legacy_requests.decide_reassignment_requests_read,
    zookeeper_events.ReviewReassignmentRequests: legacy_requests.decide_review_reassignment_requests,
    zookeeper_events.ElectionRequestsRead: legacy_requests.decide_election_requests_read,
    zookeeper_events.RemoveElectionRequests: legacy_requests.decide_remove_election_requests,
    zookeeper_events.UncleanElectionRead: broker_settings.decide_unclean_election_read,
    events.RepairPartitions: failover.decide_repair_partitions,
    zookeeper_events.RepairAssignments: lambda cluster, _: observed_topics.decide_repair_assignments(cluster),
    events.AdvanceMoves: moves.decide_advance_moves,
    zookeeper_events.AdvanceDeletions: deletion.decide_advance_deletions,
    zookeeper_events.StopReplicaAnswered: deletion.decide_stop_replica_answered,
    zookeeper_events.LeaderAndIsrAnswered: leader_and_isr_answers.decide_leader_and_isr_answered,
    zookeeper_events.LeaderAndIsrRejected: leader_and_isr_answers.decide_leader_and_isr_rejected,
    zookeeper_events.ReplaceStaleLogs: stray_logs.decide_replace_stale_logs,
    zookeeper_events.StrayLogsFound: stray_logs.decide_stray_logs_found,
    events.UnregisterBroker: stray_logs.decide_unregister_broker,
    events.CreateTopics: topics.decide_create_topics,
    events.DeleteTopics: deletion.decide_delete_topics,
    events.CreatePartitions: topics.decide_create_partitions,
    events.AlterReassignments: moves.decide_alter_reassignments,
    events.ElectLeaders: leader_elections.decide_elect_leaders,
    events.BalanceLeaders: leader_elections.decide_balance_leaders,
    events.AlterPartition: broker_requests.decide_alter_partition,
    zookeeper_events.ControlledShutdown: controlled_shutdown.decide_controlled_shutdown,
    events.AllocateProducerIds: broker_requests.decide_allocate_producer_ids,
}


def decide(cluster: Cluster, event: events.Event) -> Decision[Any]:
    """Return the decision about an event on the current state. Changes nothing."""
    return DECIDERS[type(event)](cluster, event)
