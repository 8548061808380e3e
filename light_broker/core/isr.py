"""In-sync replicas of a partition, and changes of them that the controller has not answered.

    Committed ── a follower has caught up ──────► PendingExpansion ──┐
        ▲   └─── a follower is too slow ────────► PendingShrink ─────┤
        └──── the controller's answer, or a state from the controller┘

One change is in flight at a time. Until it is answered the leader cannot know which ISR the controller has, so that the high watermark waits
for the larger one (`maximal`), and min.insync.replicas is compared with the committed one. Source: KIP-497, Kafka's PartitionState.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from kafka_wire import ErrorCode
from light_broker.core.follower_progress import ANY_BROKER_EPOCH


@dataclass(frozen=True, slots=True)
class Committed:
    """The ISR that the controller has."""

    members: tuple[int, ...]

    @property
    def maximal(self) -> tuple[int, ...]:
        """Every replica that may be in the ISR."""
        return self.members


@dataclass(frozen=True, slots=True)
class PendingExpansion:
    """A replica that the controller was asked to add."""

    members: tuple[int, ...]
    added: int

    @property
    def maximal(self) -> tuple[int, ...]:
        """Every replica that may be in the ISR: the added one may be already."""
        return (*self.members, self.added)

    @property
    def proposed(self) -> tuple[int, ...]:
        """The ISR that the controller was asked for."""
        return (*self.members, self.added)


@dataclass(frozen=True, slots=True)
class PendingShrink:
    """Replicas that the controller was asked to remove."""

    members: tuple[int, ...]
    removed: frozenset[int]

    @property
    def maximal(self) -> tuple[int, ...]:
        """Every replica that may be in the ISR: the removed ones may be still."""
        return self.members

    @property
    def proposed(self) -> tuple[int, ...]:
        """The ISR that the controller was asked for."""
        return tuple(member for member in self.members if member not in self.removed)


Pending = PendingExpansion | PendingShrink
Isr = Committed | Pending


@dataclass(frozen=True, slots=True)
class AlterPartitionAnswer:
    """The controller's answer about one partition: an error, or the state that it has now."""

    error: ErrorCode = ErrorCode.NONE
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[int, ...] = ()


class AfterAnswer(Enum):
    """What follows from an answer of the controller."""

    COMMITTED = "the controller has a newer ISR"
    WITHDRAWN = "the controller refused the change without doing it, so that the committed ISR counts"
    IGNORED = "a newer state from the controller came or will come"
    RETRY = "the same change is sent again"


_REFUSED = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""With these errors the controller states that it has the partition epoch of the request, and did not do the change."""
_STALE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""The controller has another state than this leader, which will get it. Until then the maximal ISR counts."""


def is_eligible(broker_id: int, broker_epoch: int | None, eligible_epochs: Mapping[int, int]) -> bool:
    """Return whether a replica may join the ISR (KIP-841, KIP-903).

    `eligible_epochs` has the broker epochs of the registered brokers that are neither fenced nor shutting down. A fetch of an earlier
    incarnation of the broker does not count: it may have lost records in its restart. In ZooKeeper mode the epochs of other brokers are
    unknown (ANY_BROKER_EPOCH): being alive is enough, as in Kafka.
    """
    current = eligible_epochs.get(broker_id)
    if current is None or broker_epoch is None:
        return False
    return broker_epoch == current or ANY_BROKER_EPOCH in {broker_epoch, current}


def after_answer(answer: AlterPartitionAnswer, *, leader_epoch: int, partition_epoch: int) -> AfterAnswer:
    """Return what follows from the answer to the pending change. An equal partition epoch means that nothing was to change.

    Source: Kafka's Partition.handleAlterPartitionError and handleAlterPartitionUpdate.
    """
    if answer.error in _REFUSED:
        return AfterAnswer.WITHDRAWN
    if answer.error in _STALE:
        return AfterAnswer.IGNORED
    if answer.error is not ErrorCode.NONE:
        return AfterAnswer.RETRY
    if answer.leader_epoch != leader_epoch or answer.partition_epoch < partition_epoch:
        return AfterAnswer.IGNORED
    return AfterAnswer.COMMITTED
