"""Leader imbalance: partitions led by another replica than the preferred one, counted as Kafka's controller counts.

A broker's ratio is the part of the partitions that prefer it which it does not lead (`leader.imbalance.per.broker.percentage`,
KafkaController.checkAndTriggerAutoLeaderRebalance). Leaves out elections.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from balance_analytics.study.arrays import IntArray

NO_LEADER = -1


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
        """Part of all partitions that another replica leads, or none."""
        return self.not_preferred / self.partitions if self.partitions else 0.0


def imbalance(leaders: IntArray, preferred: IntArray) -> Imbalance:
    """Count; both columns have one broker id for each partition, `NO_LEADER` where nobody leads.

    >>> imbalance(np.array([1, 1, 2]), np.array([1, 2, 2]))
    Imbalance(partitions=3, not_preferred=1, without_leader=0, worst_broker=2, worst_ratio=0.5)
    """
    away = leaders != preferred
    brokers, row = np.unique(preferred, return_inverse=True)
    without = int((leaders == NO_LEADER).sum())
    if not len(brokers):
        return Imbalance(0, 0, 0, None, 0.0)
    ratios = np.bincount(row, weights=away) / np.bincount(row)
    worst = int(ratios.argmax())
    return Imbalance(len(leaders), int(away.sum()), without, int(brokers[worst]), float(ratios[worst]))
