"""Health of the partitions in service: topics that are being deleted are neither offline nor out of balance, as with Kafka."""

from dataclasses import dataclass

import numpy as np

from controller_core.model.cluster import Cluster
from controller_core.model.columns import IntArray, places_of
from controller_core.model.ids import NO_LEADER, NOBODY
from controller_core.model.partition_health import PartitionHealth, partition_health


@dataclass(frozen=True, slots=True, eq=False)
class ServiceHealth:
    """Rows in service, and flags over them."""

    rows: IntArray
    flags: PartitionHealth


def health_of(cluster: Cluster) -> ServiceHealth:
    """Compute the health of all partitions that are not being deleted."""
    columns = cluster.columns
    rows = cluster.not_deleting(columns.used())
    leader, replicas = columns.leader[rows], columns.replicas[rows]
    adding = np.zeros(len(rows), dtype=np.int32)
    for place in places_of(cluster.moves, rows):
        adding[place] = len(cluster.moves[int(rows[place])].adding)
    return ServiceHealth(
        rows,
        partition_health(
            np.where(columns.flags(cluster.unfenced())[leader], leader, NO_LEADER),
            replicas[:, 0],
            (replicas != NOBODY).sum(axis=1),
            (columns.isr[rows] != NOBODY).sum(axis=1),
            adding,
        ),
    )
