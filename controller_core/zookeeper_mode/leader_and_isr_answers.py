"""Replicas that brokers refuse: whole requests that throw, and single partitions that are answered with an error.

A broker answers a LeaderAndIsr with an error for the whole of it when one partition throws (ReplicaManager's
becomeLeaderOrFollower): some partitions may then have the leader epoch and neither a log nor a fetcher. Told the same once
more it passes over them, since it has that epoch; only a higher one makes it begin anew. Leader and ISR stay as they are.

Kafka's controller writes such an answer down and does no more, and the replicas stay out of sync until something else moves
them. Leaves out when, and how many at once (`shell.brokers.answers`).

A single partition is refused for good with INCONSISTENT_TOPIC_ID: the broker has the log of another topic of that name. Another
replica has to lead then, but only one that has taken the partition on. Where all replicas refuse (somebody wrote another topic
id into the znode) the brokers go on as they are, and a new leader would be one that serves nobody. So the other members of the
ISR are sent the same LeaderAndIsr once more: a broker checks the topic id before the leader epoch, so the answer tells whether
it has the partition. As soon as one has, the refused replica is offline (`offline_replicas`).
"""

from collections.abc import Collection, Iterable

import numpy as np

from controller_core.model import changes, events
from controller_core.model.cluster import Cluster
from controller_core.model.decision import Decision, decision
from controller_core.model.ids import TopicPartition
from controller_core.model.sends import SendLeaderAndIsr
from controller_core.rules.partition_change import raise_epochs
from controller_core.zookeeper_mode.propagation import leader_and_isr_requests


def decide_leader_and_isr_answered(cluster: Cluster, event: events.LeaderAndIsrAnswered) -> Decision[None]:
    """Take note of replicas that went offline or came back, and do what is possible or needed now."""
    known = cluster.brokers.get(event.broker)
    if known is None or known.epoch != event.broker_epoch:
        return decision()
    offline = tuple(name for name in event.offline if _is_held(cluster, event.broker, name, offline=False))
    online = tuple(name for name in event.online if _is_held(cluster, event.broker, name, offline=True))
    refused = newly_refused(cluster, event)
    lost = refused_but_taken(cluster, event)
    topics = frozenset(name.topic for name in (*offline, *online, *refused, *(name for _, name in lost)))
    if not topics:
        return decision()
    # A deletion may be blocked by it from now on, or no longer.
    later = (events.AdvanceDeletions(),) if cluster.deletions else ()
    made = (
        [changes.OfflineReplicasObserved(event.broker, offline, online, refused)]
        if offline or online or refused
        else []
    )
    then: list[events.Event] = [events.RepairPartitions(topics), events.AdvanceMoves(topics)]
    for broker in sorted({broker for broker, _ in lost}):
        names = tuple(name for one, name in lost if one == broker)
        made.append(changes.OfflineReplicasObserved(broker, names, ()))
        # Only after the leadership and the ISR have left the broker.
        then.append(events.ReplaceStaleLogs(broker, cluster.brokers[broker].epoch, names))
    return decision(*made, sends=ask_others(cluster, event.broker, refused), then=then, later=later)


def _is_held(cluster: Cluster, broker: int, name: TopicPartition, *, offline: bool) -> bool:
    """Whether a broker holds a replica that counts as online or offline (a refused one: either) so far."""
    row = cluster.row_of(*name)
    if row is None or broker not in cluster.columns.replicas_of(row):
        return False
    is_offline = broker in cluster.offline_at(row)
    return is_offline or broker in cluster.refused_at(row) if offline else not is_offline


def decide_leader_and_isr_rejected(cluster: Cluster, event: events.LeaderAndIsrRejected) -> Decision[None]:
    """Raise the leader epoch of those partitions that the broker still holds and has been told nothing newer of."""
    rows = [
        row
        for partition, leader_epoch in event.leader_epochs.items()
        if (row := cluster.row_of(*partition)) is not None and _is_unheard(cluster, row, event.broker, leader_epoch)
    ]
    return decision(raise_epochs(cluster, rows))


def _is_unheard(cluster: Cluster, row: int, broker: int, leader_epoch: int) -> bool:
    columns = cluster.columns
    return (
        broker in cluster.unfenced()
        and broker in columns.replicas_of(row)
        and int(columns.leader_epoch[row]) == leader_epoch
        # Without a live leader there is nothing to follow; the one that comes brings a higher epoch.
        and int(columns.leader[row]) in cluster.unfenced()
        # One whose deletion waits for a move is in service: without this replica the move might never end.
        and not cluster.is_pending_deletion(cluster.name_of(row).topic)
    )


def newly_refused(cluster: Cluster, event: events.LeaderAndIsrAnswered) -> dict[TopicPartition, str]:
    """Keep the refusals that are news and that are about the present topics, with their errors."""
    refused: dict[TopicPartition, str] = {}
    for name, error in event.refused.items():
        row = cluster.row_of(*name)
        if row is None or not _is_same_topic(cluster, event, name):
            continue
        if event.broker in cluster.columns.replicas_of(row) and event.broker not in cluster.refused_at(row):
            refused[name] = error
    return refused


def refused_but_taken(cluster: Cluster, event: events.LeaderAndIsrAnswered) -> list[tuple[int, TopicPartition]]:
    """List replicas (broker, partition) that are refused, and whose partition this member of the ISR has taken on."""
    found: list[tuple[int, TopicPartition]] = []
    for name in event.taken:
        row = cluster.row_of(*name)
        if row is None or not _is_same_topic(cluster, event, name):
            continue
        refusing = cluster.refused_at(row)
        if event.broker in cluster.columns.isr_of(row) and event.broker not in refusing:
            found += [(broker, name) for broker in sorted(refusing - cluster.offline_at(row))]
    return found


def ask_others(cluster: Cluster, broker: int, refused: Collection[TopicPartition]) -> Iterable[SendLeaderAndIsr]:
    """Send the other live members of the ISR of refused replicas what they have been sent already, for their answer."""
    rows = np.array([row for name in refused if (row := cluster.row_of(*name)) is not None], dtype=np.int32)
    if not len(rows):
        return ()
    columns = cluster.columns
    members = {one for row in rows.tolist() for one in columns.isr_of(row)} - {broker}
    sends: list[SendLeaderAndIsr] = []
    for member in sorted(members.intersection(cluster.unfenced())):
        shared = [
            row for row in rows.tolist() if member in columns.isr_of(row) and member not in cluster.refused_at(row)
        ]
        sends += leader_and_isr_requests(
            cluster, (member,), cluster.without_pending_deletion(np.array(shared, dtype=np.int32))
        )
    return sends


def _is_same_topic(cluster: Cluster, event: events.LeaderAndIsrAnswered, name: TopicPartition) -> bool:
    """Whether an answer is about the present topic, and not about an earlier one of that name."""
    return cluster.topics[name.topic].topic_id == event.topic_ids.get(name.topic)
