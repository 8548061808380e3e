"""Decision about one event: changes to write and apply, requests to send, the reply, and follow-up events.

A request to brokers is a value here: the receiving brokers and the rows that it covers. The shell reads the rows from the columns when
it encodes the request (`shell.brokers`), in the same scheduled event as the change that caused it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from controller_core.model.changes import Change
from controller_core.model.columns import BoolArray, IntArray
from controller_core.model.events import Event
from controller_core.model.ids import TopicPartition


@dataclass(frozen=True, slots=True, eq=False)
class SendLeaderAndIsr:
    """LeaderAndIsr to one broker: lead or follow these partitions."""

    broker: int
    rows: IntArray
    is_new: BoolArray
    """Per row: whether the broker has no replica yet."""


@dataclass(frozen=True, slots=True, eq=False)
class SendMetadata:
    """UpdateMetadata to brokers: the live brokers, and the state of these rows. All receivers get the same body."""

    brokers: tuple[int, ...]
    rows: IntArray
    deleting: bool = False
    """Whether the rows' topics are being deleted: they are sent with leader -2, and clients see no such topic."""


@dataclass(frozen=True, slots=True)
class SendStopReplica:
    """StopReplica to one broker: stop following these partitions and, with `delete`, delete their logs."""

    broker: int
    partitions: tuple[TopicPartition, ...]
    leader_epochs: tuple[int, ...]
    """Per partition; -2 when its topic is being deleted, which passes every check."""
    delete: bool


Send = SendLeaderAndIsr | SendMetadata | SendStopReplica

Reply_co = TypeVar("Reply_co", covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class Decision(Generic[Reply_co]):
    """The outcome of one event.

    Order: changes are written (fenced) and applied, and the requests that follow from them are sent; `sends` follow; then the
    events in `then` are decided in the same scheduled event, on the cluster's new state; the reply is sent last. Events in
    `later` are scheduled separately, since their scopes are larger. When a write is refused, the shell reads the current state
    and the event is decided again. A decision must therefore follow from the state only, and `sends` must do no harm when the
    decision's changes are refused.
    """

    changes: tuple[Change, ...] = ()
    sends: tuple[Send, ...] = ()
    then: tuple[Event, ...] = ()
    later: tuple[Event, ...] = ()
    reply: Reply_co | None = None
    retry_event: Event | None = None
    """Decided in place of the event if a write is refused: for replies that depend on an earlier attempt."""
    rest: tuple[Event, ...] = ()
    """Events for the rows that this decision leaves (KRaft mode): decided once its changes are committed, after what arrives in the
    meantime. Their replies replace this one. A decision takes at most `Cluster.step_rows` rows, so that nothing holds the loop for long."""


def decision(
    *changes: Change | None, sends: Iterable[Send] = (), then: Iterable[Event] = (), later: Iterable[Event] = ()
) -> Decision[None]:
    """Return a decision without a reply; changes that are None are dropped."""
    kept = tuple(change for change in changes if change is not None)
    return Decision(kept, tuple(sends), tuple(then), tuple(later))
