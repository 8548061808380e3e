"""Brokers come and go; partitions get a leader whenever they can have one.

Brokers' registrations are read as a level. A broker that left, or is back under another epoch (it bounced: whatever it had
not written is gone), is first taken out: `Heal` then elects without it. Only after that are brokers added that are new.

A broker without the inter-broker listener counts as down: Kafka's controller fails to add it, too
(ControllerChannelManager.addNewBroker needs the endpoint of that listener).

`Heal` looks at all partitions and mends whatever the present state allows:

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

from collections.abc import Iterator

import numpy as np

from controller_core.cluster import election
from controller_core.cluster.election import Election
from controller_core.cluster.election_columns import elect_new, elect_offline
from controller_core.cluster.offline_replicas import elect_apart, led_offline, offline_among
from controller_core.cluster.partition_change import change_leaders, shrink_isr
from controller_core.cluster.propagation import delete_forgotten_replicas, full_metadata, lead_or_follow
from controller_core.model.changes import (
    BrokersObserved,
    DeletionBlocked,
    PartitionStates,
)
from controller_core.model.cluster import Cluster
from controller_core.model.columns import BoolArray, IntArray, any_of
from controller_core.model.decision import Decision, decision
from controller_core.model.events import AdvanceDeletions, AdvanceMoves, BrokersRead, Event, Heal, RepairAssignments
from controller_core.model.ids import NO_EPOCH, NO_LEADER, NOBODY
from controller_core.model.sends import Send, SendMetadata

LOOK_AT_EVERYTHING: tuple[Event, ...] = (Heal(), RepairAssignments(), AdvanceMoves(), AdvanceDeletions(retry=True))
"""What may be possible after a take-over, or with a broker more. Leaders come first: moves and deletions need them."""


def decide_activated(cluster: Cluster) -> Decision[None]:
    """Tell every broker all that there is, then mend what happened while nobody held the cluster."""
    brokers = tuple(sorted(cluster.unfenced()))
    sends: list[Send] = [full_metadata(cluster, brokers), *hosted_by(cluster, brokers)]
    return decision(sends=sends if brokers else (), then=LOOK_AT_EVERYTHING)


def decide_brokers_read(cluster: Cluster, event: BrokersRead) -> Decision[None]:
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
        return decision(then=(AdvanceMoves(), AdvanceDeletions()))
    sends: list[Send] = [_who_lives(staying)]
    if added:
        left_behind = delete_forgotten_replicas(cluster, added)
        sends += [full_metadata(cluster, added), *hosted_by(cluster, added), *left_behind]
    observed = BrokersObserved(event.brokers, event.unreachable)
    return decision(observed, sends=sends, then=LOOK_AT_EVERYTHING)


def _take_out(cluster: Cluster, gone: set[int], event: BrokersRead) -> Decision[None]:
    """Go on without brokers. What they had been told and had not answered, those that bounced are told again."""
    staying = tuple(broker for broker in cluster.brokers.values() if broker.id not in gone)
    deletions = [
        DeletionBlocked(name, f"brokers {sorted(gone)} are away")
        for name, deletion in cluster.deletions.items()
        if not gone.isdisjoint(deletion.waiting)
    ]
    told = _who_lives(tuple(sorted(broker.id for broker in staying)))
    observed = BrokersObserved(staying, event.unreachable)
    return decision(observed, *deletions, sends=[told], then=(Heal(), event))


def _who_lives(brokers: tuple[int, ...]) -> SendMetadata:
    """Tell brokers who is alive, and nothing of partitions."""
    return SendMetadata(brokers, np.zeros(0, dtype=np.int32))


def hosted_by(cluster: Cluster, brokers: tuple[int, ...]) -> Iterator[Send]:
    """Tell each broker to lead or follow all that it has replicas of."""
    rows = cluster.columns.hosted_by(cluster.columns.flags(brokers))
    with_state = cluster.not_deleting(rows[cluster.columns.partition_epoch[rows] != NO_EPOCH])
    return lead_or_follow(cluster, brokers, with_state)


def decide_heal(cluster: Cluster, event: Heal) -> Decision[None]:
    """Mend what the present state allows; see the module's table."""
    columns = cluster.columns
    unfenced, may_lead = columns.flags(cluster.unfenced()), columns.flags(cluster.may_lead())
    leaderless = columns.without_live_leader(unfenced)
    if lost := led_offline(cluster):
        leaderless = np.union1d(leaderless, np.array(lost, dtype=np.int32))
    return decision(
        _first_leaders(cluster, _within(cluster, columns.new(), event), may_lead),
        _next_leaders(cluster, _within(cluster, leaderless, event), may_lead),
        _shrink(cluster, _within(cluster, columns.used(), event), unfenced),
    )


def _within(cluster: Cluster, rows: IntArray, event: Heal) -> IntArray:
    """Keep the rows that an event is about and that are not being deleted."""
    kept = cluster.not_deleting(rows)
    if event.topics is None:
        return kept
    indices = [cluster.topics[name].index for name in event.topics if name in cluster.topics]
    return kept[np.isin(cluster.columns.topic[kept], indices)]


def _first_leaders(cluster: Cluster, rows: IntArray, may_lead: BoolArray) -> PartitionStates | None:
    return change_leaders(cluster, rows, elect_new(cluster.columns.replicas[rows], may_lead))


def _next_leaders(cluster: Cluster, rows: IntArray, may_lead: BoolArray) -> PartitionStates | None:
    columns = cluster.columns
    unclean = cluster.unclean_at(rows)
    elections = elect_offline(columns.replicas[rows], columns.isr[rows], may_lead, unclean)
    able = cluster.may_lead()

    def elect(place: int, row: int) -> Election:
        online = able - cluster.offline_at(row)
        allowed = bool(unclean[place])
        return election.elect_offline(columns.replicas_of(row), columns.isr_of(row), online, unclean_allowed=allowed)

    elections = elect_apart(cluster, rows, elections, elect)
    # Where nobody can lead, the dead leader's name is taken off once; after that there is nothing to write.
    written = elections.elected | (columns.leader[rows] != NO_LEADER) | _is_mended(cluster, rows)
    return change_leaders(cluster, rows, elections, written)


def _shrink(cluster: Cluster, rows: IntArray, unfenced: BoolArray) -> PartitionStates | None:
    """Write the ISR of partitions with a live leader, where it loses dead brokers or is corrected in memory only."""
    columns = cluster.columns
    leader, isr = columns.leader[rows], columns.isr[rows]
    leading = unfenced[leader] & ~offline_among(cluster, rows, leader)
    kept = unfenced[isr] & ~offline_among(cluster, rows, isr)
    shrinking = leading & (any_of(~kept & (isr != NOBODY)) | _is_mended(cluster, rows))
    return shrink_isr(cluster, rows[shrinking], kept[shrinking])


def _is_mended(cluster: Cluster, rows: IntArray) -> BoolArray:
    return np.isin(rows, list(cluster.mended)) if cluster.mended else np.zeros(len(rows), dtype=np.bool_)
