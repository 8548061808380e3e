"""The states of a replica and the moves between them, as data.

    target               may follow                                  what happens on the way
    New                  NonExistent                                 it is told the partition's leader, if there is one, and
                                                                     follows; a leader cannot become New
    Online               New, Online, Offline, DeletionIneligible    New: it joins the assignment; else it is told the leader
    Offline              New, Online, Offline, DeletionIneligible    it is told to stop (and to keep its log), leaves the ISR
                                                                     if another member stays, the others are told
    DeletionStarted      Offline                                     it is told to stop and to delete its log
    DeletionSuccessful   DeletionStarted                             it has answered that the log is gone
    DeletionIneligible   Offline, DeletionStarted                    it cannot be deleted now: its broker is away, or failed
    NonExistent          DeletionSuccessful                          it leaves the assignment

Leaves out requests and ISRs. Source: Kafka 3.9's ReplicaStateMachine (protocol notes, Z61).
DeletionIneligible may come before Online: a broker comes back during a deletion. Offline may come before
DeletionIneligible: a topic is deleted while a broker is away.
"""

from collections.abc import Mapping
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from controller_core.cluster.state_check import ALLOWED, Illegal, Transition


class ReplicaState(IntEnum):
    """A replica's state, by Kafka's numbers."""

    NEW = 1
    """Just made, by a new topic or a reassignment; it can only follow."""
    ONLINE = 2
    """Runs, and is part of the assignment."""
    OFFLINE = 3
    """Its broker, or its log directory, is gone."""
    DELETION_STARTED = 4
    """Told to delete its log; it has not answered."""
    DELETION_SUCCESSFUL = 5
    """Its log is gone."""
    DELETION_INELIGIBLE = 6
    """Cannot be deleted now; tried again when its broker is back."""
    NON_EXISTENT = 7
    """Never was, or is deleted."""

    @property
    def label(self) -> str:
        """Kafka's name, as in its state-change log."""
        words = self.name.title().replace("_", "")
        return f"Replica{words}" if words.startswith("Deletion") else f"{words}Replica"


RUNNING_OR_BACK = frozenset(
    {ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE}
)
"""Before Online and before Offline alike."""

PREDECESSORS: Mapping[int, frozenset[ReplicaState]] = {
    ReplicaState.NEW: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.ONLINE: RUNNING_OR_BACK,
    ReplicaState.OFFLINE: RUNNING_OR_BACK,
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.OFFLINE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.DELETION_STARTED}),
    ReplicaState.DELETION_INELIGIBLE: frozenset({ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED}),
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.DELETION_SUCCESSFUL}),
}

NUMBERS = range(max(ReplicaState) + 1)
"""Kafka's numbers begin at 1: state 0 is nobody's, and legal before and after nothing."""

LEGAL: npt.NDArray[np.bool_] = np.array(
    [[state in PREDECESSORS.get(target, ()) for state in NUMBERS] for target in NUMBERS]
)
"""The same for columns: bool[target, current]."""


def check_transition(current: ReplicaState, target: ReplicaState) -> Transition:
    """Tell whether a replica may go from one state to another.

    >>> check_transition(ReplicaState.ONLINE, ReplicaState.DELETION_STARTED).message
    'cannot go from OnlineReplica to ReplicaDeletionStarted: only OfflineReplica may come before'
    """
    legal = PREDECESSORS[target]
    return ALLOWED if current in legal else Illegal(current.label, target.label, tuple(s.label for s in sorted(legal)))


def legal_rows(states: npt.NDArray[np.int8], target: ReplicaState) -> npt.NDArray[np.bool_]:
    """Tell row by row whether the replica may go to the target: shape (n,), from states of shape (n,)."""
    legal: npt.NDArray[np.bool_] = LEGAL[target].take(states)
    return legal


def initial_state(*, is_live: bool) -> ReplicaState:
    """Return the state of a replica that a new controller finds written.

    One whose broker is away counts as not deletable, to be on the safe side should its topic be queued for deletion; the
    start-up then moves it to Offline.
    """
    return ReplicaState.ONLINE if is_live else ReplicaState.DELETION_INELIGIBLE
