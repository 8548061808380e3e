"""Auto leader rebalance: preferred leaders back in their place, broker by broker, where too many of them are not (C14).

A broker that was away comes back to partitions that others lead by now. Every so often the controller looks at each broker:

    imbalance = partitions that prefer the broker and that it does not lead / partitions that prefer it

Where that is more than the percentage of the event (`leader.imbalance.per.broker.percentage`), those of them are elected
whose preferred replica lives, outside of failed log directories, is in the ISR and is not shutting down. All others stay as
they are until the next look.

A worked example: broker 1 is preferred by ten partitions and leads eight of them: 20 percent, over 10, so that it gets the
two that it lacks. Had it led nine of them, 10 percent would not be over 10, and nothing would happen.

As in Kafka, partitions of topics that are queued for deletion count for nothing, and those that never had a leader are
preferred but not led elsewhere. Partitions that move count, and are left alone: the end of their move gives them their leader
(Kafka 3.9 elects for them as well; earlier versions elected nobody while any partition moved). Decided anew after a write
that was refused in part, brokers that are within the percentage by then keep the rest of their imbalance.

Source: KafkaController.checkAndTriggerAutoLeaderRebalance (protocol notes, Z65). Leaves out when to look (the shell's timer).
"""

import numpy as np

from controller_core.model import events
from controller_core.model.cluster import Cluster
from controller_core.model.columns import BoolArray, IntArray
from controller_core.model.decision import Decision, decision
from controller_core.model.ids import NO_BROKER, NO_EPOCH
from controller_core.rules.election_columns import elect_preferred
from controller_core.rules.offline_replicas import offline_flags
from controller_core.rules.partition_change import change_leaders

PERCENT = 100


def decide_balance_leaders(cluster: Cluster, event: events.BalanceLeaders) -> Decision[None]:
    """Elect preferred leaders for the brokers that lack more of their leaderships than the event's percentage."""
    columns = cluster.columns
    rows = _counted(cluster)
    preferred = columns.replicas[rows, 0]
    elsewhere = (columns.leader[rows] != preferred) & (columns.partition_epoch[rows] != NO_EPOCH)
    over = brokers_over(preferred, elsewhere, event.imbalance_percentage)
    available = ~offline_flags(cluster, rows, preferred)
    candidates = _at_rest(cluster, rows[elsewhere & over[preferred] & available])
    elections = elect_preferred(
        columns.leader[candidates],
        columns.replicas[candidates],
        columns.isr[candidates],
        columns.flags(cluster.may_lead()),
    )
    return decision(change_leaders(cluster, candidates, elections))


def brokers_over(preferred: IntArray, elsewhere: BoolArray, percentage: int) -> BoolArray:
    """Tell which brokers lack more than a percentage of the leaderships that are theirs.

    Takes each partition's preferred replica and whether another broker, or nobody, leads it. Returns flags by broker id.

    >>> brokers_over(np.array([1, 1, 2, 2]), np.array([True, False, False, False]), 49).tolist()
    [False, True, False]
    """
    wanted = np.bincount(preferred)
    lacking = np.bincount(preferred[elsewhere], minlength=len(wanted))
    # The quotient is compared without dividing: Kafka's doubles say the same, and whole numbers cannot say otherwise.
    over: BoolArray = lacking * PERCENT > wanted * percentage
    return over


def _counted(cluster: Cluster) -> IntArray:
    """Rows of all partitions but those of topics that are queued for deletion, and those without any replica."""
    columns = cluster.columns
    rows = columns.used()
    queued = [cluster.topics[name].index for name in cluster.deletions if name in cluster.topics]
    counted: IntArray = rows[columns.replicas[rows, 0] != NO_BROKER]
    return counted[~np.isin(columns.topic[counted], queued)] if queued else counted


def _at_rest(cluster: Cluster, rows: IntArray) -> IntArray:
    """Leave out the rows of partitions that move."""
    if not cluster.moves:
        return rows
    at_rest: IntArray = rows[~np.isin(rows, list(cluster.moves))]
    return at_rest
