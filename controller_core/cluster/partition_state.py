"""The state of a partition by Kafka's names, derived from its leader.

Source: Kafka 3.9's PartitionState and PartitionStateMachine.initializePartitionState. Leaves out elections (`election`).
"""

from enum import IntEnum


class PartitionState(IntEnum):
    """A partition's state, by Kafka's numbers. A partition that exists is never NonExistentPartition (3)."""

    NEW = 0
    """Has replicas, has no leader and no ISR yet."""
    ONLINE = 1
    """Has a leader on a registered broker."""
    OFFLINE = 2
    """Had a leader, whose broker is not registered."""

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
