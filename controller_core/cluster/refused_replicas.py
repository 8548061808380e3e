"""What a broker refused to lead or follow is told again, under a higher leader epoch.

A broker answers a LeaderAndIsr with an error for the whole of it when one partition throws (ReplicaManager's
becomeLeaderOrFollower): some partitions may then have the leader epoch and neither a log nor a fetcher. Told the same once
more it passes over them, since it has that epoch; only a higher one makes it begin anew. Leader and ISR stay as they are.

Kafka's controller writes such an answer down and does no more, and the replicas stay out of sync until something else moves
them. Leaves out when, and how many at once (`shell.brokers.refusals`).
"""

from controller_core.cluster.states import partition_states, raised_epoch
from controller_core.model.changes import Announcement
from controller_core.model.cluster import Cluster
from controller_core.model.decision import Decision, decision
from controller_core.model.events import ReplicasRefused


def decide_replicas_refused(cluster: Cluster, event: ReplicasRefused) -> Decision[None]:
    """Raise the leader epoch of those partitions that the broker still holds and has been told nothing newer of."""
    rows = [
        row
        for partition, leader_epoch in event.leader_epochs.items()
        if (row := cluster.row_of(*partition)) is not None and _is_unheard(cluster, row, event.broker, leader_epoch)
    ]
    states = [raised_epoch(cluster, row) for row in rows]
    return decision(partition_states(states, Announcement.LEADER_AND_ISR))


def _is_unheard(cluster: Cluster, row: int, broker: int, leader_epoch: int) -> bool:
    columns = cluster.columns
    return (
        broker in cluster.brokers
        and broker in columns.replicas_of(row)
        and int(columns.leader_epoch[row]) == leader_epoch
        # Without a live leader there is nothing to follow; the one that comes brings a higher epoch.
        and int(columns.leader[row]) in cluster.brokers
        # One whose deletion waits for a move is in service: without this replica the move might never end.
        and not cluster.is_doomed(cluster.name_of(row).topic)
    )
