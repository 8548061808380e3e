"""The decision about any event of KRaft mode: a table from events to the functions that decide about them.

Decisions on topics, partitions, moves and elections are shared with ZooKeeper mode; `Cluster.rules` specify what differs.
"""

from collections.abc import Callable, Mapping
from typing import Any

from controller_core.decisions import broker_requests, leader_elections, topics
from controller_core.model import Cluster, Origin, changes, events, quorum_changes, quorum_events, settings
from controller_core.model.decision import Decision, decision
from controller_core.quorum_mode import directories, heartbeats, leaving, moves, registration
from controller_core.rules.complete_change import complete_change, current_target, electing
from kafka_metadata.records import ResourceType
from kafka_wire import Failure


def decide_delete_topics(cluster: Cluster, event: events.DeleteTopics) -> Decision[dict[str, Failure | None]]:
    """Delete topics at once: brokers delete logs whose topic id is gone."""
    results = topics.check_deletions(cluster, event)
    made = (changes.TopicRemoved(name, Origin.REQUESTED) for name, failure in results.items() if failure is None)
    return Decision(tuple(made), reply=results)


def decide_change_configs(cluster: Cluster, event: quorum_events.ChangeConfigs) -> Decision[None]:
    """Write configurations. Another min.insync.replicas makes eligible leader replicas unsafe: they are discarded (KIP-966).

    Source: ConfigurationControlManager.createClearElrRecordsAsNeeded.
    """
    made: list[changes.Change] = list(event.changes)
    if cluster.rules.elr:
        made += (
            quorum_changes.ElrCleared(change.name if change.type is ResourceType.TOPIC else None)
            for change in event.changes
            if settings.MIN_ISR in change.values
        )
    return decision(*made)


def decide_elect_unclean_leaders(cluster: Cluster, event: quorum_events.ElectUncleanLeaders) -> Decision[None]:
    """Elect leaders for partitions without one whose topics allow an unclean leader.

    Source: ReplicationControlManager.maybeElectUncleanLeaders, which runs periodically and when the setting changes.
    """
    columns = cluster.columns
    rows = columns.without_live_leader(columns.flags(cluster.registered()))
    rows = rows[cluster.unclean_allowed(rows)][: event.count]
    return decision(complete_change(cluster, rows, current_target(cluster, rows), electing(cluster, rows)))


DECIDERS: Mapping[type, Callable[[Cluster, Any], Decision[Any]]] = {
    quorum_events.RegisterBroker: registration.decide_register_broker,
    events.UnregisterBroker: registration.decide_unregister_broker,
    quorum_events.Heartbeat: heartbeats.decide_heartbeat,
    quorum_events.ReportDirectories: heartbeats.decide_report_directories,
    quorum_events.NoteShutdownOffset: heartbeats.decide_note_shutdown_offset,
    quorum_events.FenceBroker: heartbeats.decide_fence_broker,
    quorum_events.HeartbeatConnectionEnded: heartbeats.decide_heartbeat_connection_ended,
    quorum_events.AssignReplicasToDirs: directories.decide_assign_replicas_to_dirs,
    quorum_events.ChangeConfigs: decide_change_configs,
    quorum_events.ElectWaitingLeaders: leaving.decide_elect_waiting_leaders,
    quorum_events.ElectUncleanLeaders: decide_elect_unclean_leaders,
    events.CreateTopics: topics.decide_create_topics,
    events.DeleteTopics: decide_delete_topics,
    events.CreatePartitions: topics.decide_create_partitions,
    events.AlterReassignments: moves.decide_alter_reassignments,
    events.ElectLeaders: leader_elections.decide_elect_leaders,
    events.BalanceLeaders: leader_elections.decide_balance_leaders,
    events.AlterPartition: broker_requests.decide_alter_partition,
    events.AllocateProducerIds: broker_requests.decide_allocate_producer_ids,
}


def decide(cluster: Cluster, event: events.Event) -> Decision[Any]:
    """Return the decision about an event on the current state. Changes nothing."""
    return DECIDERS[type(event)](cluster, event)
