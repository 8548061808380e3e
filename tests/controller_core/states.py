"""Changes with any partition states, valid or not: `partition_change` builds only valid ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controller_core.model import IntArray, Replicas
from controller_core.model.changes import PartitionStates, RequestsToBrokers
from controller_core.model.columns import pad


@dataclass(frozen=True, slots=True)
class NewState:
    """New state of one partition."""

    row: int
    leader: int
    leader_epoch: int
    isr: Replicas
    replicas: Replicas | None = None
    unclean: bool = False
    recovering: bool | None = None
    """Recovery state that the leader reports (KIP-704). None: unchanged; given for all rows of a change or for none."""


def partition_states(states: Sequence[NewState], requests: RequestsToBrokers) -> PartitionStates | None:
    """Return one change with these states, or None without states. Either all of them have new replicas or none has."""
    if not states:
        return None
    replicas = [state.replicas for state in states if state.replicas is not None]
    recovering = [state.recovering for state in states if state.recovering is not None]
    assert len(recovering) in {0, len(states)}, "either all rows of a change have a recovery state or none has"
    assert len(replicas) in {0, len(states)}, "either all rows of a change have new replicas or none has"
    return PartitionStates(
        rows=column([state.row for state in states]),
        leader=column([state.leader for state in states]),
        leader_epoch=column([state.leader_epoch for state in states]),
        isr=pad([state.isr for state in states]),
        requests=requests,
        replicas=pad(replicas) if replicas else None,
        unclean=np.array([state.unclean for state in states], dtype=np.bool_),
        recovering=np.array(recovering, dtype=np.bool_) if recovering else None,
    )


def column(values: Sequence[int]) -> IntArray:
    """Return a column of integers."""
    return np.array(values, dtype=np.int32)
