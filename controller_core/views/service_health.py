"""Health of the partitions in service.

As in Kafka, topics that are being deleted count neither as offline nor as imbalanced. `model.partition_health` has the definitions.
"""

from dataclasses import dataclass

import numpy as np

from controller_core.model import NO_BROKER, NO_LEADER, Cluster, IntArray
from controller_core.model.columns import positions_of
from controller_core.model.partition_health import PartitionHealth, partition_health


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
