"""Errors in LeaderAndIsr responses: rejected requests, refused replicas and failed log directories.

A broker rejects a whole LeaderAndIsr if one partition throws (ReplicaManager.becomeLeaderOrFollower). Some partitions may then have
the leader epoch but neither a log nor a fetcher. The broker ignores them in a repeated request, since it has that epoch; only
a higher one makes it start them again. Leader and ISR stay as they are. Kafka's controller only logs such a response, and the
replicas stay out of sync until something else changes them. `shell.brokers.answers` decides when partitions are sent again, and
how many at a time.

A broker permanently refuses a single partition with INCONSISTENT_TOPIC_ID if it has the log of another topic of that name. Another
replica has to lead then, but only one that accepts the partition. If all replicas refuse it (another process wrote another topic
id to the znode), the brokers continue with their current state, and a new leader would serve no requests. The other members of the
ISR are therefore sent the same LeaderAndIsr again: a broker checks the topic id before the leader epoch, so the response shows
whether it accepts the partition. As soon as one does, the refused replica counts as offline (`rules.election_columns`).
"""

from collections.abc import Collection, Iterable

import numpy as np

from controller_core.model import Cluster, TopicPartition, events, zookeeper_changes, zookeeper_events
from controller_core.model.decision import Decision, SendLeaderAndIsr, decision
from controller_core.rules.partition_change import raise_epochs
from controller_core.zookeeper_mode.propagation import leader_and_isr_requests


def decide_leader_and_isr_answered(cluster: Cluster, event: zookeeper_events.LeaderAndIsrAnswered) -> Decision[None]:
    """Record replicas that went offline, came back or are refused, and repair their partitions."""
    known = cluster.brokers.get(event.broker)
    if known is None or known.epoch != event.broker_epoch:
        return decision()
    offline = tuple(name for name in event.offline if _has_replica(cluster, event.broker, name, offline=False))
    online = tuple(name for name in event.online if _has_replica(cluster, event.broker, name, offline=True))
    refused = newly_refused(cluster, event)
    failed = refused_but_accepted(cluster, event)
    topics = frozenset(name.topic for name in (*offline, *online, *refused, *(name for _, name in failed)))
    if not topics:
        return decision()
    # The change may block a deletion, or end its block.
    later = (zookeeper_events.AdvanceDeletions(),) if cluster.deletions else ()
    made = (
        [zookeeper_changes.OfflineReplicasObserved(event.broker, offline, online, refused)]
        if offline or online or refused
        else []
    )
    then: list[events.Event] = [events.RepairPartitions(topics), events.AdvanceMoves(topics)]
    for broker in sorted({broker for broker, _ in failed}):
        names = tuple(name for other, name in failed if other == broker)
        made.append(zookeeper_changes.OfflineReplicasObserved(broker, names, ()))
        # Only after the broker has lost leadership and left the ISR.
        then.append(zookeeper_events.ReplaceStaleLogs(broker, cluster.brokers[broker].epoch, names))
    return decision(*made, sends=query_other_members(cluster, event.broker, refused), then=then, later=later)


def _has_replica(cluster: Cluster, broker: int, name: TopicPartition, *, offline: bool) -> bool:
    """Whether a broker has a replica that so far counts as online or offline (a refused one counts as either)."""
    row = cluster.row_of(*name)
    if row is None or broker not in cluster.columns.replicas_of(row):
        return False
    is_offline = broker in cluster.offline_at(row)
    return is_offline or broker in cluster.refused_at(row) if offline else not is_offline


def decide_leader_and_isr_rejected(cluster: Cluster, event: zookeeper_events.LeaderAndIsrRejected) -> Decision[None]:
    """Raise the leader epoch of those partitions that the broker still has and that it was not sent with a newer epoch."""
    rows = [
        row
        for partition, leader_epoch in event.leader_epochs.items()
        if (row := cluster.row_of(*partition)) is not None
        and _is_to_be_repeated(cluster, row, event.broker, leader_epoch)
    ]
    return decision(raise_epochs(cluster, rows))


def _is_to_be_repeated(cluster: Cluster, row: int, broker: int, leader_epoch: int) -> bool:
    columns = cluster.columns
    return (
        broker in cluster.unfenced()
        and broker in columns.replicas_of(row)
        and int(columns.leader_epoch[row]) == leader_epoch
        # Without a live leader there is nothing to follow; the next leader has a higher epoch.
        and int(columns.leader[row]) in cluster.unfenced()
        # A topic whose deletion waits for a move is in service: without this replica the move might never end.
        and not cluster.is_pending_deletion(cluster.name_of(row).topic)
    )


def newly_refused(cluster: Cluster, event: zookeeper_events.LeaderAndIsrAnswered) -> dict[TopicPartition, str]:
    """Return the new refusals that concern the current topics, with their errors."""
    refused: dict[TopicPartition, str] = {}
    for name, error in event.refused.items():
        row = cluster.row_of(*name)
        if row is None or not _is_same_topic(cluster, event, name):
            continue
        if event.broker in cluster.columns.replicas_of(row) and event.broker not in cluster.refused_at(row):
            refused[name] = error
    return refused


def refused_but_accepted(
    cluster: Cluster, event: zookeeper_events.LeaderAndIsrAnswered
) -> list[tuple[int, TopicPartition]]:
    """Return replicas (broker, partition) that are refused and whose partition this member of the ISR has accepted."""
    found: list[tuple[int, TopicPartition]] = []
    for name in event.accepted:
        row = cluster.row_of(*name)
        if row is None or not _is_same_topic(cluster, event, name):
            continue
        refusing = cluster.refused_at(row)
        if event.broker in cluster.columns.isr_of(row) and event.broker not in refusing:
            found += [(broker, name) for broker in sorted(refusing - cluster.offline_at(row))]
    return found


def query_other_members(
    cluster: Cluster, broker: int, refused: Collection[TopicPartition]
) -> Iterable[SendLeaderAndIsr]:
    """Send the same LeaderAndIsr again to the other live ISR members of refused replicas, to get their responses."""
    rows = np.array([row for name in refused if (row := cluster.row_of(*name)) is not None], dtype=np.int32)
    if not len(rows):
        return ()
    columns = cluster.columns
    members = {member for row in rows.tolist() for member in columns.isr_of(row)} - {broker}
    sends: list[SendLeaderAndIsr] = []
    for member in sorted(members.intersection(cluster.unfenced())):
        shared = [
            row for row in rows.tolist() if member in columns.isr_of(row) and member not in cluster.refused_at(row)
        ]
        sends += leader_and_isr_requests(
            cluster, (member,), cluster.without_pending_deletion(np.array(shared, dtype=np.int32))
        )
    return sends


def _is_same_topic(cluster: Cluster, event: zookeeper_events.LeaderAndIsrAnswered, name: TopicPartition) -> bool:
    """Whether a response concerns the current topic, and not an earlier one of that name."""
    return cluster.topics[name.topic].topic_id == event.topic_ids.get(name.topic)
