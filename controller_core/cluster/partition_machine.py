"""The states of a partition and the moves between them, as data.

    target        may follow                what happens on the way
    New           NonExistent               the assignment is read; there is no leader and no ISR yet
    Online        New, Online, Offline      New: the first live replica leads, all live replicas are the ISR, the state is
                                            written for the first time; else an election (`election`), written over it
    Offline       New, Online, Offline      the leader is gone; nothing is written
    NonExistent   Offline                   the topic is deleted

Leaves out the elections and who is told. Source: Kafka 3.9's PartitionStateMachine (protocol notes, Z60).
Offline may follow Offline: a second broker failure moves a partition that is Offline already.
"""

from collections.abc import Mapping
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from controller_core.cluster.state_check import ALLOWED, Illegal, Transition


class PartitionState(IntEnum):
    """A partition's state, by Kafka's numbers."""

    NEW = 0
    """Has replicas, has no leader and no ISR yet."""
    ONLINE = 1
    """Has a leader that lives."""
    OFFLINE = 2
    """Had a leader; it is gone."""
    NON_EXISTENT = 3
    """Never was, or is deleted."""

    @property
    def label(self) -> str:
        """Kafka's name, as in its state-change log."""
        return f"{self.name.title().replace('_', '')}Partition"


PREDECESSORS: Mapping[PartitionState, frozenset[PartitionState]] = {
    PartitionState.NEW: frozenset({PartitionState.NON_EXISTENT}),
    PartitionState.ONLINE: frozenset({PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.OFFLINE: frozenset({PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.NON_EXISTENT: frozenset({PartitionState.OFFLINE}),
}

LEGAL: npt.NDArray[np.bool_] = np.array(
    [[state in PREDECESSORS[target] for state in PartitionState] for target in PartitionState]
)
"""The same for columns: bool[target, current]."""


def check_transition(current: PartitionState, target: PartitionState) -> Transition:
    """Tell whether a partition may go from one state to another.

    >>> check_transition(PartitionState.NON_EXISTENT, PartitionState.ONLINE).message
    'cannot go from NonExistentPartition to OnlinePartition: only NewPartition or OnlinePartition or OfflinePartition may come before'
    """
    legal = PREDECESSORS[target]
    return ALLOWED if current in legal else Illegal(current.label, target.label, tuple(s.label for s in sorted(legal)))


def legal_rows(states: npt.NDArray[np.int8], target: PartitionState) -> npt.NDArray[np.bool_]:
    """Tell row by row whether the partition may go to the target: shape (n,), from states of shape (n,)."""
    legal: npt.NDArray[np.bool_] = LEGAL[target].take(states)
    return legal


def initial_state(*, has_leader_and_isr: bool, leader_is_live: bool) -> PartitionState:
    """Return the state of a partition that a new controller finds written."""
    if not has_leader_and_isr:
        return PartitionState.NEW
    return PartitionState.ONLINE if leader_is_live else PartitionState.OFFLINE
