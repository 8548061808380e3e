"""Failover: leaders for partitions without a live leader, and ISRs without dead brokers.

`RepairPartitions` checks all partitions (or those of some topics) and changes what the current state allows:

    new partition, a live replica       first leader and ISR: every live replica
    dead leader, a live ISR member      that member leads; dead brokers leave the ISR
    dead leader, no live ISR member     unclean election if the topic allows it, else no leader; the ISR stays, since only its
                                        members may lead again
    live leader, dead ISR members       these leave the ISR, with a higher leader epoch
    written ISR contains non-replicas   the corrected state is written, with a higher leader epoch

A dead broker, a new broker, a takeover and a retry after a refused write all use the same check, so none of them misses a partition.
A replica in a failed log directory counts as dead (`rules.election_columns`). Registrations of brokers are in
`zookeeper_mode.registered_brokers`.
"""

import numpy as np

from controller_core.model import NO_BROKER, NO_LEADER, BoolArray, Cluster, IntArray, changes, events
from controller_core.model.columns import any_of
from controller_core.model.decision import Decision, decision
from controller_core.rules import election, election_columns, partition_change


def decide_repair_partitions(cluster: Cluster, event: events.RepairPartitions) -> Decision[None]:
    """Elect leaders and shrink ISRs by the table above."""
    columns = cluster.columns
    unfenced, may_lead = columns.flags(cluster.unfenced()), columns.flags(cluster.may_lead())
    leaderless = columns.without_live_leader(unfenced)
    if lost := election_columns.rows_led_by_offline_replica(cluster):
        leaderless = np.union1d(leaderless, np.array(lost, dtype=np.int32))
    return decision(
        _first_leaders(cluster, _within(cluster, columns.new(), event), may_lead),
        _next_leaders(cluster, _within(cluster, leaderless, event), may_lead),
        _shrink(cluster, _within(cluster, columns.used(), event), unfenced),
    )


def _within(cluster: Cluster, rows: IntArray, event: events.RepairPartitions) -> IntArray:
    """Return the rows that are in the event's topics and not being deleted."""
    kept = cluster.without_pending_deletion(rows)
    if event.topics is None:
        return kept
    indices = [cluster.topics[name].index for name in event.topics if name in cluster.topics]
    return kept[np.isin(cluster.columns.topic[kept], indices)]


def _first_leaders(cluster: Cluster, rows: IntArray, may_lead: BoolArray) -> changes.PartitionStates | None:
    return partition_change.change_leaders(
        cluster, rows, election_columns.elect_new(cluster.columns.replicas[rows], may_lead)
    )


def _next_leaders(cluster: Cluster, rows: IntArray, may_lead: BoolArray) -> changes.PartitionStates | None:
    columns = cluster.columns
    unclean = cluster.unclean_allowed(rows)
    elections = election_columns.elect_offline(columns.replicas[rows], columns.isr[rows], may_lead, unclean)
    eligible = cluster.may_lead()

    def elect(position: int, row: int) -> election.Election:
        online = eligible - cluster.offline_at(row)
        allowed = bool(unclean[position])
        return election.elect_offline(columns.replicas_of(row), columns.isr_of(row), online, unclean_allowed=allowed)

    elections = election_columns.elect_rows_with_offline_replicas(cluster, rows, elections, elect)
    # If no replica can lead, the dead leader is removed once; after that there is nothing to write.
    written = elections.elected | (columns.leader[rows] != NO_LEADER) | _is_corrected(cluster, rows)
    return partition_change.change_leaders(cluster, rows, elections, written)


def _shrink(cluster: Cluster, rows: IntArray, unfenced: BoolArray) -> changes.PartitionStates | None:
    """Write ISRs of partitions with a live leader that lose dead brokers, or that are corrected only in memory."""
    columns = cluster.columns
    leader, isr = columns.leader[rows], columns.isr[rows]
    leading = unfenced[leader] & ~election_columns.offline_flags(cluster, rows, leader)
    kept = unfenced[isr] & ~election_columns.offline_flags(cluster, rows, isr)
    shrinking = leading & (any_of(~kept & (isr != NO_BROKER)) | _is_corrected(cluster, rows))
    return partition_change.shrink_isr(cluster, rows[shrinking], kept[shrinking])


def _is_corrected(cluster: Cluster, rows: IntArray) -> BoolArray:
    return (
        np.isin(rows, list(cluster.corrected_rows)) if cluster.corrected_rows else np.zeros(len(rows), dtype=np.bool_)
    )
