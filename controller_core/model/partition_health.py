"""Partition health for metrics, resource statuses, rolling restarts and analytics, computed over columns.

A partition that is being reassigned needs as many replicas in sync as it had before (KIP-455): replicas that the reassignment adds do not
count as missing. A partition without a leader is not led by its preferred replica either (KafkaController.preferredReplicaImbalanceCount).
Callers exclude the rows of topics that are being deleted.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controller_core.model.ids import NO_BROKER, NO_LEADER

IntArray = npt.NDArray[np.signedinteger]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class PartitionHealth:
    """Flags of partitions, each of shape (n,)."""

    offline: BoolArray
    """No live leader (OfflinePartitionsCount). A partition with unknown replicas does not count."""
    under_replicated: BoolArray
    """Fewer replicas in sync than required (UnderReplicatedPartitions)."""
    not_led_by_preferred: BoolArray
    """Led by another replica than the first one, or offline (PreferredReplicaImbalanceCount)."""


@dataclass(frozen=True, slots=True)
class LeaderImbalance:
    """Number of partitions that are not led by their preferred replica: in total, and of the broker with the highest share of them."""

    not_led_by_preferred: int
    worst_broker: int | None
    """The lowest id of the brokers with the highest share; None if there are no partitions."""
    worst_not_led: int
    """Partitions that prefer the worst broker and are not led by it."""
    worst_preferring: int
    """All partitions that prefer the worst broker."""


def partition_health(
    leader: IntArray, preferred: IntArray, replicas: IntArray, in_sync: IntArray, adding: IntArray | int = 0
) -> PartitionHealth:
    """Compute flags from columns of shape (n,).

    `leader` is a broker id, NO_LEADER where no live broker leads; `preferred` the first replica, NO_BROKER where there is none;
    `replicas`, `in_sync` and `adding` are the numbers of all replicas, of those in the ISR, and of those that a reassignment adds.

    >>> health = partition_health(*(np.array(column) for column in ([1, 2, -1], [1, 1, 3], [3, 3, 2], [3, 2, 1])))
    >>> health.offline.tolist(), health.under_replicated.tolist(), health.not_led_by_preferred.tolist()
    ([False, False, True], [False, True, True], [False, True, True])
    """
    return PartitionHealth(
        offline=(leader == NO_LEADER) & (replicas > 0),
        under_replicated=in_sync < replicas - adding,
        not_led_by_preferred=(leader != preferred) & (preferred != NO_BROKER),
    )


def is_under_min_isr(in_sync: int, min_isr: int) -> bool:
    """Whether producers with acks=all are refused (UnderMinIsrPartitionCount)."""
    return in_sync < min_isr


def under_min_isr(in_sync: IntArray, min_isr: IntArray) -> BoolArray:
    """Compute `is_under_min_isr` over columns of shape (n,).

    >>> under_min_isr(np.array([1, 2]), np.array([2, 2])).tolist()
    [True, False]
    """
    flags: BoolArray = in_sync < min_isr
    return flags


def leader_imbalance(preferred: IntArray, not_led_by_preferred: BoolArray) -> LeaderImbalance:
    """Count by preferred broker; `leader.imbalance.per.broker.percentage` limits the share of one broker.

    >>> leader_imbalance(np.array([1, 2, 2, 3]), np.array([False, True, False, False]))
    LeaderImbalance(not_led_by_preferred=1, worst_broker=2, worst_not_led=1, worst_preferring=2)
    """
    has_preferred = preferred != NO_BROKER
    brokers, row = np.unique(preferred[has_preferred], return_inverse=True)
    if not len(brokers):
        return LeaderImbalance(0, None, 0, 0)
    preferring = np.bincount(row)
    not_led = np.bincount(row, weights=not_led_by_preferred[has_preferred]).astype(np.int64)
    worst = int((not_led / preferring).argmax())
    return LeaderImbalance(
        int(not_led_by_preferred.sum()), int(brokers[worst]), int(not_led[worst]), int(preferring[worst])
    )
