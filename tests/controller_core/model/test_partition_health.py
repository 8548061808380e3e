"""Partition health over columns agrees with the definitions for single partitions.

Sources: KIP-455, KafkaController.preferredReplicaImbalanceCount, Partition.isUnderReplicated.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model import NO_BROKER, NO_LEADER
from controller_core.model.partition_health import is_under_min_isr, leader_imbalance, partition_health

BROKERS = st.integers(0, 4)


@dataclass(frozen=True)
class One:
    """One partition."""

    leader: int
    replicas: list[int]
    in_sync: int
    adding: int

    @property
    def preferred(self) -> int:
        """The first replica."""
        return self.replicas[0] if self.replicas else NO_BROKER

    @property
    def is_led_by_preferred(self) -> bool:
        """Whether the preferred replica leads."""
        return not self.replicas or self.leader == self.replicas[0]


PARTITIONS = st.lists(
    st.builds(
        One,
        st.one_of(BROKERS, st.just(NO_LEADER)),
        st.lists(BROKERS, max_size=4, unique=True),
        st.integers(0, 4),
        st.integers(0, 2),
    ),
    max_size=30,
)


def column(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """One column."""
    return np.array(values, dtype=np.int64)


@given(PARTITIONS)
def test_flags_agree_with_each_partition(partitions: list[One]) -> None:
    """Offline, under-replicated while replicas are added, and not led by the preferred replica."""
    flags = partition_health(
        column([partition.leader for partition in partitions]),
        column([partition.preferred for partition in partitions]),
        column([len(partition.replicas) for partition in partitions]),
        column([partition.in_sync for partition in partitions]),
        column([partition.adding for partition in partitions]),
    )

    assert flags.offline.tolist() == [
        partition.leader == NO_LEADER and bool(partition.replicas) for partition in partitions
    ]
    assert flags.under_replicated.tolist() == [
        partition.in_sync < len(partition.replicas) - partition.adding for partition in partitions
    ]
    assert flags.not_led_by_preferred.tolist() == [not partition.is_led_by_preferred for partition in partitions]


@given(PARTITIONS)
def test_the_worst_broker_leads_the_smallest_share_of_partitions_that_prefer_it(partitions: list[One]) -> None:
    """leader.imbalance.per.broker.percentage; of equal shares the lowest id."""
    preferring = Counter(partition.preferred for partition in partitions if partition.replicas)
    not_led = Counter(partition.preferred for partition in partitions if not partition.is_led_by_preferred)
    shares = {broker: not_led[broker] / count for broker, count in preferring.items()}
    worst = min(shares, key=lambda broker: (-shares[broker], broker), default=None)

    found = leader_imbalance(
        column([partition.preferred for partition in partitions]),
        np.array([not partition.is_led_by_preferred for partition in partitions], dtype=np.bool_),
    )

    assert found.not_led_by_preferred == sum(not_led.values())
    assert found.worst_broker == worst
    assert (found.worst_not_led, found.worst_preferring) == (not_led[worst or 0], preferring[worst or 0]) or not shares


def test_a_partition_with_fewer_replicas_in_sync_is_under_min_isr() -> None:
    """UnderMinIsrPartitionCount: an equal number is sufficient."""
    assert [is_under_min_isr(in_sync, 2) for in_sync in (1, 2, 3)] == [True, False, False]
