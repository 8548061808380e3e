"""How a cluster's partitions do, as metrics count it and a person who looks inside is told: one pass over the columns.

As with Kafka, topics that are to be deleted are neither offline nor out of balance. Leaves out who asks.
"""

from dataclasses import dataclass

from controller_core.model.cluster import Cluster
from controller_core.model.columns import BoolArray, IntArray
from controller_core.model.ids import NOBODY


@dataclass(frozen=True, slots=True, eq=False)
class Health:
    """Flags over the rows in service: shapes (n,)."""

    rows: IntArray
    offline: BoolArray
    """No registered leader."""
    under_replicated: BoolArray
    """Fewer in sync than there are replicas."""
    not_led_by_preferred: BoolArray


def health_of(cluster: Cluster) -> Health:
    """Look at all partitions."""
    columns = cluster.columns
    rows = cluster.not_deleting(columns.used())
    leader, replicas, isr = columns.leader[rows], columns.replicas[rows], columns.isr[rows]
    preferred = replicas[:, 0]
    return Health(
        rows,
        offline=~columns.flags(cluster.unfenced())[leader],
        under_replicated=(isr != NOBODY).sum(axis=1) < (replicas != NOBODY).sum(axis=1),
        not_led_by_preferred=(leader != preferred) & (preferred != NOBODY),
    )
