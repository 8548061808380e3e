"""Running reassignment of a partition (KIP-455).

The three lists are those of Kafka's `ReplicaAssignment`: `replicas` is the union of old and target replicas, `adding` the replicas that
the move adds, `removing` those that leave at its end; target = replicas - removing, origin = replicas - adding.
A replica is in both `adding` and `removing` if it was being added when the move was cancelled or changed. A cancelled move is thus
recognisable from its lists, and a controller that takes over finishes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from controller_core.model.ids import NO_EPOCH

Replicas = tuple[int, ...]


class MoveStage(Enum):
    """Progress of a move. It is not written: a controller that takes over starts each move at PLANNED again."""

    PLANNED = "planned"
    """Written; no request has been sent to brokers yet."""
    UNION = "union"
    """Brokers replicate to the union; the controller waits until the target is in sync."""
    REMOVING = "removing"
    """Brokers know only the target; the controller waits until the brokers of removed replicas have deleted their logs."""


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's running reassignment."""

    replicas: Replicas
    adding: Replicas
    removing: Replicas
    stage: MoveStage = MoveStage.PLANNED
    waiting: Replicas = ()
    """In REMOVING: brokers that have not answered the request to delete their replica."""
    removal_epoch: int = NO_EPOCH
    """In REMOVING: the leader epoch of the change that dropped the removed replicas, and of the requests to delete them."""

    @property
    def target(self) -> Replicas:
        """The replicas at the end, in order: the first is the preferred leader."""
        return without(self.replicas, self.removing)

    @property
    def origin(self) -> Replicas:
        """The replicas before the move, to which a cancellation returns; their order as far as it is known."""
        return without(self.replicas, self.adding)

    def completed_isr(self, isr: Sequence[int]) -> Replicas | None:
        """Return the ISR with which the move ends in KRaft mode; None while it has to wait.

        All added replicas must be in sync, at least one replica must stay, and all of the target if the number of replicas falls: the ISR
        might become smaller than it is (PartitionReassignmentReplicas.maybeCompleteReassignment).

        >>> Move((2, 3, 4, 1), adding=(4,), removing=(1,)).completed_isr((1, 2, 4))
        (2, 4)
        """
        staying, target = without(isr, self.removing), self.target
        if (self.removing and not (staying and target)) or not set(self.adding) <= set(staying):
            return None
        if len(self.adding) < len(self.removing) and not set(target) <= set(staying):
            return None
        return staying

    @property
    def returns_to_origin(self) -> bool:
        """Whether the target is the origin: the move was cancelled, or changes only the order of replicas.

        >>> plan_move((2, 3, 4, 1), (4,), (2, 3, 1)).returns_to_origin
        True

        A move that is changed while it runs may drop all added replicas and still not return to the origin.

        >>> plan_move((2, 3, 4, 1), (4,), (2, 3)).returns_to_origin
        False
        """
        return set(self.adding) == set(self.removing)


def without(replicas: Sequence[int], others: Sequence[int]) -> Replicas:
    """Return the replicas that are not among the others, in order.

    >>> without((1, 2, 3), (2,))
    (1, 3)
    """
    return tuple(replica for replica in replicas if replica not in others)


def current_replicas(replicas: Replicas, running: Move | None) -> tuple[Replicas, Replicas]:
    """Return the replicas from which a new move of a partition starts, and those of them that are not or no longer in service."""
    if running is None:
        return replicas, ()
    if running.stage is not MoveStage.REMOVING:
        return running.replicas, running.adding
    # Replicas whose deletion is not confirmed stay in the lists: otherwise nothing would wait for the confirmation.
    return (*running.target, *running.waiting), running.waiting


def plan_move(replicas: Sequence[int], adding: Sequence[int], target: Sequence[int]) -> Move:
    """Compute the move to a target from the current replicas and those that a running move is adding (empty if none is running).

    The target comes first, so that its first replica is the preferred one from the start.

    >>> plan_move((1, 2, 3), (), (2, 3, 4))
    Move(replicas=(2, 3, 4, 1), adding=(4,), removing=(1,), stage=<MoveStage.PLANNED: 'planned'>, waiting=(), removal_epoch=-1)

    A cancellation is the move to the origin: the replicas that were being added are removed.

    >>> plan_move((2, 3, 4, 1), (4,), (2, 3, 1))
    Move(replicas=(2, 3, 1, 4), adding=(4,), removing=(4,), stage=<MoveStage.PLANNED: 'planned'>, waiting=(), removal_epoch=-1)
    """
    union = (*target, *without(replicas, target))
    origin = without(replicas, adding)
    return Move(union, adding=without(union, origin), removing=without(union, target))
