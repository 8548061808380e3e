"""Partition states with any numbers, sound or not, as a change: `partition_change` makes only sound ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controller_core.model.changes import PartitionStates, RequestsToBrokers
from controller_core.model.columns import IntArray, pad
from controller_core.model.move import Replicas


@dataclass(frozen=True, slots=True)
class NewState:
    """One partition's state to be."""

    row: int
    leader: int
    leader_epoch: int
    isr: Replicas
    replicas: Replicas | None = None
    unclean: bool = False
    recovering: bool | None = None
    """What the leader says of itself (KIP-704). None: as it was before; told for all the rows of a change or for none."""


def partition_states(states: Sequence[NewState], requests: RequestsToBrokers) -> PartitionStates | None:
    """Turn values into one change; None for none. Either all of them name their replicas or none does."""
    if not states:
        return None
    told = [state.replicas for state in states if state.replicas is not None]
    said = [state.recovering for state in states if state.recovering is not None]
    assert len(said) in {0, len(states)}, "whether leaders recover is told for all the rows of a change or for none"
    assert len(told) in {0, len(states)}, "replicas are told for all the rows of a change or for none"
    return PartitionStates(
        rows=column([state.row for state in states]),
        leader=column([state.leader for state in states]),
        leader_epoch=column([state.leader_epoch for state in states]),
        isr=pad([state.isr for state in states]),
        requests=requests,
        replicas=pad(told) if told else None,
        unclean=np.array([state.unclean for state in states], dtype=np.bool_),
        recovering=np.array(said, dtype=np.bool_) if said else None,
    )


def column(values: Sequence[int]) -> IntArray:
    """Make a column of integers."""
    return np.array(values, dtype=np.int32)
