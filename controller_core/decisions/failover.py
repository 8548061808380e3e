"""Brokers come and go; partitions get a leader whenever they can have one.

Brokers' registrations are read as a level. A broker that left, or is back under another epoch (it bounced: whatever it had
not written is gone), is first taken out: `RepairPartitions` then elects without it. Only after that are brokers added that are new.

A broker without the inter-broker listener counts as down: Kafka's controller fails to add it, too
(ControllerChannelManager.addNewBroker needs the endpoint of that listener).

`RepairPartitions` looks at all partitions and mends whatever the present state allows:

    New, a replica lives              first leader and ISR: every live replica
    leader gone, an ISR member lives  that one leads; the ISR loses the dead
    leader gone, nobody in the ISR    unclean election where the topic allows it, else no leader; the ISR stays as it was,
                                      since its members are the ones that may lead again
    leader lives, ISR members gone    the ISR loses these, under a higher leader epoch
    written ISR names non-replicas    the corrected state is written, under a higher leader epoch

It is the same look for a dead broker, a new one, a take-over and a retry after a refused write, so it cannot miss one.

A replica whose log directory failed counts like one of a dead broker (offline_replicas).

Leaves out brokers that say good-bye (shutdown), and preferred leaders.
"""

import numpy as np

from controller_core.model import changes, events
from controller_core.model.cluster import Cluster
from controller_core.model.columns import BoolArray, IntArray, any_of
from controller_core.model.decision import Decision, decision
from controller_core.model.ids import NO_BROKER, NO_LEADER
from controller_core.rules import election
from controller_core.rules.election import Election
from controller_core.rules.election_columns import elect_new, elect_offline
from controller_core.rules.offline_replicas import (
    elect_rows_with_offline_replicas,
    offline_flags,
    rows_led_by_offline_replica,
)
from controller_core.rules.partition_change import change_leaders, shrink_isr


def decide_repair_partitions(cluster: Cluster, event: events.RepairPartitions) -> Decision[None]:
    """Mend what the present state allows; see the module's table."""
    columns = cluster.columns
    unfenced, may_lead = columns.flags(cluster.unfenced()), columns.flags(cluster.may_lead())
    leaderless = columns.without_live_leader(unfenced)
    if lost := rows_led_by_offline_replica(cluster):
        leaderless = np.union1d(leaderless, np.array(lost, dtype=np.int32))
    return decision(
        _first_leaders(cluster, _within(cluster, columns.new(), event), may_lead),
        _next_leaders(cluster, _within(cluster, leaderless, event), may_lead),
        _shrink(cluster, _within(cluster, columns.used(), event), unfenced),
    )


def _within(cluster: Cluster, rows: IntArray, event: events.RepairPartitions) -> IntArray:
    """Keep the rows that an event is about and that are not being deleted."""
    kept = cluster.without_pending_deletion(rows)
    if event.topics is None:
        return kept
    indices = [cluster.topics[name].index for name in event.topics if name in cluster.topics]
    return kept[np.isin(cluster.columns.topic[kept], indices)]


def _first_leaders(cluster: Cluster, rows: IntArray, may_lead: BoolArray) -> changes.PartitionStates | None:
    return change_leaders(cluster, rows, elect_new(cluster.columns.replicas[rows], may_lead))


def _next_leaders(cluster: Cluster, rows: IntArray, may_lead: BoolArray) -> changes.PartitionStates | None:
    columns = cluster.columns
    unclean = cluster.unclean_allowed(rows)
    elections = elect_offline(columns.replicas[rows], columns.isr[rows], may_lead, unclean)
    able = cluster.may_lead()

    def elect(place: int, row: int) -> Election:
        online = able - cluster.offline_at(row)
        allowed = bool(unclean[place])
        return election.elect_offline(columns.replicas_of(row), columns.isr_of(row), online, unclean_allowed=allowed)

    elections = elect_rows_with_offline_replicas(cluster, rows, elections, elect)
    # Where nobody can lead, the dead leader's name is taken off once; after that there is nothing to write.
    written = elections.elected | (columns.leader[rows] != NO_LEADER) | _is_corrected(cluster, rows)
    return change_leaders(cluster, rows, elections, written)


def _shrink(cluster: Cluster, rows: IntArray, unfenced: BoolArray) -> changes.PartitionStates | None:
    """Write the ISR of partitions with a live leader, where it loses dead brokers or is corrected in memory only."""
    columns = cluster.columns
    leader, isr = columns.leader[rows], columns.isr[rows]
    leading = unfenced[leader] & ~offline_flags(cluster, rows, leader)
    kept = unfenced[isr] & ~offline_flags(cluster, rows, isr)
    shrinking = leading & (any_of(~kept & (isr != NO_BROKER)) | _is_corrected(cluster, rows))
    return shrink_isr(cluster, rows[shrinking], kept[shrinking])


def _is_corrected(cluster: Cluster, rows: IntArray) -> BoolArray:
    return (
        np.isin(rows, list(cluster.corrected_rows)) if cluster.corrected_rows else np.zeros(len(rows), dtype=np.bool_)
    )
