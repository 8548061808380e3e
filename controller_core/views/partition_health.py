"""Health of the partitions in service, and partition states by Kafka's names.

As in Kafka, topics that are being deleted count neither as offline nor as imbalanced.
Source: PartitionState and PartitionStateMachine.initializePartitionState of Kafka 3.9.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from controller_core.model import NO_BROKER, NO_LEADER, Cluster, IntArray
from controller_core.model.columns import positions_of
from controller_core.model.partition_health import PartitionHealth, partition_health


class PartitionState(IntEnum):
    """State of a partition, by Kafka's numbers. An existing partition is never NonExistentPartition (3)."""

    NEW = 0
    """Has replicas, has no leader and no ISR yet."""
    ONLINE = 1
    """Has a leader on a registered broker."""
    OFFLINE = 2
    """Has a state, but no leader on a registered broker."""

    @property
    def label(self) -> str:
        """Kafka's name, as in its state-change log."""
        return f"{self.name.title()}Partition"


def partition_state(*, has_leader_and_isr: bool, leader_is_live: bool) -> PartitionState:
    """Return a partition's state.

    >>> partition_state(has_leader_and_isr=True, leader_is_live=False).label
    'OfflinePartition'
    """
    if not has_leader_and_isr:
        return PartitionState.NEW
    return PartitionState.ONLINE if leader_is_live else PartitionState.OFFLINE


@dataclass(frozen=True, slots=True, eq=False)
class ServiceHealth:
    """Rows in service, and flags over them."""

    rows: IntArray
    flags: PartitionHealth


def service_health(cluster: Cluster) -> ServiceHealth:
    """Compute the health of all partitions that are not being deleted."""
    columns = cluster.columns
    rows = cluster.without_pending_deletion(columns.used())
    leader, replicas = columns.leader[rows], columns.replicas[rows]
    adding = np.zeros(len(rows), dtype=np.int32)
    for position in positions_of(cluster.moves, rows):
        adding[position] = len(cluster.moves[int(rows[position])].adding)
    return ServiceHealth(
        rows,
        partition_health(
            np.where(columns.flags(cluster.unfenced())[leader], leader, NO_LEADER),
            replicas[:, 0],
            (replicas != NO_BROKER).sum(axis=1),
            (columns.isr[rows] != NO_BROKER).sum(axis=1),
            adding,
        ),
    )
