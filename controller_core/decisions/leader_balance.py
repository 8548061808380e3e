"""Automatic preferred leader election for brokers with a high leader imbalance (C14).

A broker that restarts finds its partitions led by other brokers. The controller periodically computes for each broker:

    imbalance = partitions that prefer the broker and are not led by it / partitions that prefer it

Where the imbalance exceeds the percentage of the event (`leader.imbalance.per.broker.percentage`), the preferred replicas become
leaders again if they are live, not in a failed log directory, in the ISR and not shutting down. Other partitions wait for the next
check.

Worked example: ten partitions prefer broker 1, and it leads eight of them. The imbalance of 20 percent exceeds 10, so broker 1 gets
the other two. If it led nine, 10 percent would not exceed 10 and nothing would change.

As in Kafka, topics that are queued for deletion do not count, and partitions that never had a leader count as preferred but not as
led by another broker. Moving partitions count but are not elected: the end of the move elects their leader (Kafka 3.9 elects for them
as well; earlier versions elect for no partition while any partition moves). If a write is refused in part, the event is decided
again, and brokers that are then within the percentage keep the rest of their imbalance.

Source: KafkaController.checkAndTriggerAutoLeaderRebalance (protocol notes, Z65).
"""

import numpy as np

from controller_core.model import BoolArray, Cluster, IntArray, events
from controller_core.model.decision import Decision, decision
from controller_core.model.ids import NO_BROKER, NO_EPOCH
from controller_core.rules.election_columns import elect_preferred
from controller_core.rules.offline_replicas import offline_flags
from controller_core.rules.partition_change import change_leaders

PERCENT = 100


def decide_balance_leaders(cluster: Cluster, event: events.BalanceLeaders) -> Decision[None]:
    """Elect preferred leaders for the brokers whose imbalance exceeds the event's percentage."""
    columns = cluster.columns
    rows = _counted(cluster)
    preferred = columns.replicas[rows, 0]
    elsewhere = (columns.leader[rows] != preferred) & (columns.partition_epoch[rows] != NO_EPOCH)
    over = brokers_over_limit(preferred, elsewhere, event.imbalance_percentage)
    available = ~offline_flags(cluster, rows, preferred)
    candidates = _not_moving(cluster, rows[elsewhere & over[preferred] & available])
    elections = elect_preferred(
        columns.leader[candidates],
        columns.replicas[candidates],
        columns.isr[candidates],
        columns.flags(cluster.may_lead()),
    )
    return decision(change_leaders(cluster, candidates, elections))


def brokers_over_limit(preferred: IntArray, elsewhere: BoolArray, percentage: int) -> BoolArray:
    """Return flags by broker id: whether a broker does not lead more than a percentage of the partitions that prefer it.

    Takes each partition's preferred replica and whether it is not led by it.

    >>> brokers_over_limit(np.array([1, 1, 2, 2]), np.array([True, False, False, False]), 49).tolist()
    [False, True, False]
    """
    preferring = np.bincount(preferred)
    not_led = np.bincount(preferred[elsewhere], minlength=len(preferring))
    # Compared without dividing: the result is that of Kafka's doubles, without rounding.
    over: BoolArray = not_led * PERCENT > preferring * percentage
    return over


def _counted(cluster: Cluster) -> IntArray:
    """Return the rows of all partitions that have replicas and whose topic is not queued for deletion."""
    columns = cluster.columns
    rows = columns.used()
    queued = [cluster.topics[name].index for name in cluster.deletions if name in cluster.topics]
    counted: IntArray = rows[columns.replicas[rows, 0] != NO_BROKER]
    return counted[~np.isin(columns.topic[counted], queued)] if queued else counted


def _not_moving(cluster: Cluster, rows: IntArray) -> IntArray:
    """Drop the rows of partitions that are moving."""
    if not cluster.moves:
        return rows
    not_moving: IntArray = rows[~np.isin(rows, list(cluster.moves))]
    return not_moving
