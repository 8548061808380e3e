"""Broker registrations and notifications: requests and follow-up events of what brokers write to ZooKeeper.

Registrations are read as a level. A broker that left, or registered again with another epoch (it restarted and lost unflushed records),
is first removed, and `RepairPartitions` elects without it. New brokers are added only after that. When a controller becomes active, all
registered brokers are new to it.

A broker without the inter-broker listener counts as offline: Kafka's controller fails to add it, too
(ControllerChannelManager.addNewBroker needs the endpoint of that listener).

Brokers with an inter.broker.protocol.version below 2.7 write the ISR themselves and leave a notification. The written state is applied
and sent to all brokers, and moves that waited for it continue (KafkaController.processIsrChangeNotification). A notification of a failed
log directory does not list its partitions: the broker gets all its partitions again, and its response reports those that it has lost
(processLogDirEventNotification). A notification is removed by the decision that processes it. If the controller fails before the
removal, its successor reads all states and sends them to all brokers anyway.
"""

from collections.abc import Iterator

import numpy as np

from controller_core.model import NO_EPOCH, Cluster, events, zookeeper_changes, zookeeper_events
from controller_core.model.decision import Decision, Send, SendMetadata, decision
from controller_core.zookeeper_mode import propagation

CHECK_EVERYTHING: tuple[events.Event, ...] = (
    events.RepairPartitions(),
    zookeeper_events.RepairAssignments(),
    events.AdvanceMoves(),
    zookeeper_events.AdvanceDeletions(retry=True),
)
"""Checks after a takeover, or after a broker was added. Elections come first: moves and deletions need leaders."""


def decide_activated(cluster: Cluster) -> Decision[None]:
    """Send the full state to every broker, then repair what changed while no controller was active."""
    brokers = tuple(sorted(cluster.unfenced()))
    sends: list[Send] = [
        propagation.full_metadata_request(cluster, brokers),
        *_leader_and_isr_for_hosted(cluster, brokers),
    ]
    return decision(sends=sends if brokers else (), then=CHECK_EVERYTHING)


def decide_brokers_read(cluster: Cluster, event: zookeeper_events.BrokersRead) -> Decision[None]:
    """Remove the brokers that left or restarted; if there are none, add the new ones."""
    read = {broker.id: broker for broker in event.brokers}
    removed = {
        broker_id
        for broker_id, known in cluster.brokers.items()
        if broker_id not in read or read[broker_id].epoch != known.epoch
    }
    if removed:
        return _remove_brokers(cluster, removed, event)
    staying = tuple(sorted(cluster.brokers))
    added = tuple(sorted(set(read) - set(staying)))
    unreachable = {broker.id: broker for broker in event.unreachable}
    is_same = all(read[broker_id] == known for broker_id, known in cluster.brokers.items())
    if not added and is_same and unreachable == cluster.unreachable:
        return decision(then=(events.AdvanceMoves(), zookeeper_events.AdvanceDeletions()))
    sends: list[Send] = [_live_brokers_request(staying)]
    if added:
        stops = propagation.stop_stray_replicas(cluster, added)
        sends += [
            propagation.full_metadata_request(cluster, added),
            *_leader_and_isr_for_hosted(cluster, added),
            *stops,
        ]
    observed = zookeeper_changes.BrokersObserved(event.brokers, event.unreachable)
    return decision(observed, sends=sends, then=CHECK_EVERYTHING)


def _remove_brokers(cluster: Cluster, removed: set[int], event: zookeeper_events.BrokersRead) -> Decision[None]:
    """Remove brokers. Those that restarted get unanswered requests to delete replicas again when they are added."""
    staying = tuple(broker for broker in cluster.brokers.values() if broker.id not in removed)
    deletions = [
        zookeeper_changes.DeletionBlocked(name, f"brokers {sorted(removed)} are offline")
        for name, deletion in cluster.deletions.items()
        if not removed.isdisjoint(deletion.waiting)
    ]
    live_brokers = _live_brokers_request(tuple(sorted(broker.id for broker in staying)))
    observed = zookeeper_changes.BrokersObserved(staying, event.unreachable)
    return decision(observed, *deletions, sends=[live_brokers], then=(events.RepairPartitions(), event))


def _live_brokers_request(brokers: tuple[int, ...]) -> SendMetadata:
    """Return the request with the live brokers and without partitions."""
    return SendMetadata(brokers, np.zeros(0, dtype=np.int32))


def _leader_and_isr_for_hosted(cluster: Cluster, brokers: tuple[int, ...]) -> Iterator[Send]:
    """Return a request per broker to lead or follow all partitions of which it has replicas."""
    rows = cluster.columns.hosted_by(cluster.columns.flags(brokers))
    with_state = cluster.without_pending_deletion(rows[cluster.columns.partition_epoch[rows] != NO_EPOCH])
    return propagation.leader_and_isr_requests(cluster, brokers, with_state)


def decide_isr_changes_read(cluster: Cluster, event: zookeeper_events.IsrChangesRead) -> Decision[None]:
    """Apply the states that brokers wrote, and advance the moves that may have waited for them."""
    rows = [] if event.states is None else event.states.rows.tolist()
    moving = frozenset(cluster.topic_at(row).name for row in rows if row in cluster.moves)
    then = (events.AdvanceMoves(moving),) if moving else ()
    return decision(event.states, zookeeper_changes.NotificationsProcessed(event.notifications), then=then)


def decide_log_dirs_failed(cluster: Cluster, event: zookeeper_events.LogDirsFailed) -> Decision[None]:
    """Send brokers all partitions that they lead or follow, with the epochs that they know; they report lost replicas."""
    live = tuple(sorted(set(event.brokers).intersection(cluster.unfenced())))
    return decision(
        zookeeper_changes.NotificationsProcessed(event.notifications), sends=_leader_and_isr_for_hosted(cluster, live)
    )
