"""Registered brokers: what brokers are sent when they come, leave or restart, and when a controller becomes active.

Brokers' registrations are read as a level. A broker that left, or is back under another epoch (it restarted: what it had not
written is lost), is first taken out: `RepairPartitions` then elects without it. Only after that are new brokers added.

A broker without the inter-broker listener counts as down: Kafka's controller fails to add it, too
(ControllerChannelManager.addNewBroker needs the endpoint of that listener).
"""

from collections.abc import Iterator

import numpy as np

from controller_core.model import changes, events
from controller_core.model.cluster import Cluster
from controller_core.model.decision import Decision, decision
from controller_core.model.ids import NO_EPOCH
from controller_core.model.sends import Send, SendMetadata
from controller_core.zookeeper_mode.propagation import (
    full_metadata_request,
    leader_and_isr_requests,
    stop_stray_replicas,
)

CHECK_EVERYTHING: tuple[events.Event, ...] = (
    events.RepairPartitions(),
    events.RepairAssignments(),
    events.AdvanceMoves(),
    events.AdvanceDeletions(retry=True),
)
"""What may be possible after a take-over, or with a broker more. Leaders come first: moves and deletions need them."""


def decide_activated(cluster: Cluster) -> Decision[None]:
    """Tell every broker all that there is, then mend what happened while nobody held the cluster."""
    brokers = tuple(sorted(cluster.unfenced()))
    sends: list[Send] = [full_metadata_request(cluster, brokers), *leader_and_isr_for_hosted(cluster, brokers)]
    return decision(sends=sends if brokers else (), then=CHECK_EVERYTHING)


def decide_brokers_read(cluster: Cluster, event: events.BrokersRead) -> Decision[None]:
    """Take out the brokers that left or bounced, else add those that are new."""
    read = {broker.id: broker for broker in event.brokers}
    gone = {
        broker_id
        for broker_id, known in cluster.brokers.items()
        if broker_id not in read or read[broker_id].epoch != known.epoch
    }
    if gone:
        return _take_out(cluster, gone, event)
    staying = tuple(sorted(cluster.brokers))
    added = tuple(sorted(set(read) - set(staying)))
    unreachable = {broker.id: broker for broker in event.unreachable}
    is_same = all(read[broker_id] == known for broker_id, known in cluster.brokers.items())
    if not added and is_same and unreachable == cluster.unreachable:
        return decision(then=(events.AdvanceMoves(), events.AdvanceDeletions()))
    sends: list[Send] = [_who_lives(staying)]
    if added:
        left_behind = stop_stray_replicas(cluster, added)
        sends += [full_metadata_request(cluster, added), *leader_and_isr_for_hosted(cluster, added), *left_behind]
    observed = changes.BrokersObserved(event.brokers, event.unreachable)
    return decision(observed, sends=sends, then=CHECK_EVERYTHING)


def _take_out(cluster: Cluster, gone: set[int], event: events.BrokersRead) -> Decision[None]:
    """Go on without brokers. What they had been told and had not answered, those that bounced are told again."""
    staying = tuple(broker for broker in cluster.brokers.values() if broker.id not in gone)
    deletions = [
        changes.DeletionBlocked(name, f"brokers {sorted(gone)} are away")
        for name, deletion in cluster.deletions.items()
        if not gone.isdisjoint(deletion.waiting)
    ]
    told = _who_lives(tuple(sorted(broker.id for broker in staying)))
    observed = changes.BrokersObserved(staying, event.unreachable)
    return decision(observed, *deletions, sends=[told], then=(events.RepairPartitions(), event))


def _who_lives(brokers: tuple[int, ...]) -> SendMetadata:
    """Tell brokers who is alive, and nothing of partitions."""
    return SendMetadata(brokers, np.zeros(0, dtype=np.int32))


def leader_and_isr_for_hosted(cluster: Cluster, brokers: tuple[int, ...]) -> Iterator[Send]:
    """Tell each broker to lead or follow all that it has replicas of."""
    rows = cluster.columns.hosted_by(cluster.columns.flags(brokers))
    with_state = cluster.without_pending_deletion(rows[cluster.columns.partition_epoch[rows] != NO_EPOCH])
    return leader_and_isr_requests(cluster, brokers, with_state)
