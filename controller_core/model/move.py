"""A partition's reassignment (KIP-455): the union of old and target replicas, and the way to the target.

The three lists are Kafka's own (`ReplicaAssignment`): `replicas` is the union, `adding` what the move brings in,
`removing` what leaves at its end; target = replicas - removing, origin = replicas - adding.
A replica may stand in both lists: it was being added when the move was cancelled or changed, and now has to go.
So a cancelled move can be told from its lists alone, and a controller that takes over finishes it.

Leaves out when a move may start or end: `controller_core.decisions.reassignment` decides that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from controller_core.model.ids import NO_EPOCH

Replicas = tuple[int, ...]


class MoveStage(Enum):
    """How far a move has come. Only UNION and what follows from the lists survive a change of controller."""

    PLANNED = "planned"
    """Persisted; brokers have not been told yet."""
    UNION = "union"
    """Brokers replicate to the union; waiting for the target to be in sync."""
    REMOVING = "removing"
    """Brokers know the target alone; waiting for the removed replicas' brokers to drop their logs."""


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's running reassignment."""

    replicas: Replicas
    adding: Replicas
    removing: Replicas
    stage: MoveStage = MoveStage.PLANNED
    waiting: Replicas = ()
    """In REMOVING: brokers that were told to delete their replica and have not answered."""
    removal_epoch: int = NO_EPOCH
    """In REMOVING: the leader epoch under which the removed replicas were left, and told so."""

    @property
    def target(self) -> Replicas:
        """The replicas at the end, in order: the first is the preferred leader."""
        return without(self.replicas, self.removing)

    @property
    def origin(self) -> Replicas:
        """The replicas before the move, in order as far as it is known: what a cancel returns to."""
        return without(self.replicas, self.adding)

    @property
    def returns_to_origin(self) -> bool:
        """Whether the target is the origin: the move was cancelled, or changes the order of replicas alone.

        >>> plan_move((2, 3, 4, 1), (4,), (2, 3, 1)).returns_to_origin
        True

        A move that is changed while it runs may drop all that it was adding and yet not return.

        >>> plan_move((2, 3, 4, 1), (4,), (2, 3)).returns_to_origin
        False
        """
        return set(self.adding) == set(self.removing)


def without(replicas: Sequence[int], others: Sequence[int]) -> Replicas:
    """Keep the replicas that are not among the others, in order.

    >>> without((1, 2, 3), (2,))
    (1, 3)
    """
    return tuple(replica for replica in replicas if replica not in others)


def current_replicas(replicas: Replicas, running: Move | None) -> tuple[Replicas, Replicas]:
    """Tell where a new move of a partition begins: its replicas, and which of them are not in service yet, or no longer."""
    if running is None:
        return replicas, ()
    if running.stage is not MoveStage.REMOVING:
        return running.replicas, running.adding
    # Replicas that were told to delete and have not answered stay in the lists, or nothing would wait for the answer.
    return (*running.target, *running.waiting), running.waiting


def plan_move(replicas: Sequence[int], adding: Sequence[int], target: Sequence[int]) -> Move:
    """Compute the move to a target from the present replicas and what a running move is adding (empty where none runs).

    The target comes first, so that its first replica is preferred from the start.

    >>> plan_move((1, 2, 3), (), (2, 3, 4))
    Move(replicas=(2, 3, 4, 1), adding=(4,), removing=(1,), stage=<MoveStage.PLANNED: 'planned'>, waiting=(), removal_epoch=-1)

    A cancel is the move to the origin: what was being added is removed.

    >>> plan_move((2, 3, 4, 1), (4,), (2, 3, 1))
    Move(replicas=(2, 3, 1, 4), adding=(4,), removing=(4,), stage=<MoveStage.PLANNED: 'planned'>, waiting=(), removal_epoch=-1)
    """
    union = (*target, *without(replicas, target))
    origin = without(replicas, adding)
    return Move(union, adding=without(union, origin), removing=without(union, target))
