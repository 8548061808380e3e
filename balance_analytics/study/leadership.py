"""Leader imbalance: the part of partitions that are not led by their preferred replica, of all brokers and of one."""

from __future__ import annotations

from dataclasses import dataclass

from balance_analytics.study.arrays import IntArray
from controller_core.model.partition_health import leader_imbalance, partition_health


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Over all partitions, and of the broker with the highest ratio (of equals the lowest id; None without partitions)."""

    partitions: int
    not_preferred: int
    without_leader: int
    worst_broker: int | None
    worst_ratio: float

    @property
    def ratio(self) -> float:
        """Part of all partitions that are led by another replica, or have no leader."""
        return self.not_preferred / self.partitions if self.partitions else 0.0


def imbalance(leaders: IntArray, preferred: IntArray) -> Imbalance:
    """Return the imbalance; both columns have one broker id for each partition, -1 for a partition without a leader.

    >>> import numpy as np
    >>> imbalance(np.array([1, 1, 2]), np.array([1, 2, 2]))
    Imbalance(partitions=3, not_preferred=1, without_leader=0, worst_broker=2, worst_ratio=0.5)
    """
    ones = leaders * 0 + 1
    flags = partition_health(leaders, preferred, ones, ones)
    found = leader_imbalance(preferred, flags.not_led_by_preferred)
    return Imbalance(
        len(leaders),
        found.not_led_by_preferred,
        int(flags.offline.sum()),
        found.worst_broker,
        found.worst_not_led / found.worst_preferring if found.worst_preferring else 0.0,
    )
