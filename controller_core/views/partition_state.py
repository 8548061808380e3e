"""Partition states by Kafka's names.

Source: PartitionState and PartitionStateMachine.initializePartitionState of Kafka 3.9.
"""

from enum import IntEnum


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
