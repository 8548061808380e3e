"""What `decide` answers: changes to persist and apply, requests to send, the reply, and what to look at next."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from controller_core.model.changes import Change
from controller_core.model.events import Event
from controller_core.model.sends import Send

Reply_co = TypeVar("Reply_co", covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class Decision(Generic[Reply_co]):
    """The outcome of one event.

    Order: changes are persisted (fenced), then applied, then announced to brokers; `sends` follow; then the events in
    `then` are decided, in the same turn, on the cluster as it is by then; at last the reply leaves. Events in `later` get
    turns of their own, since they touch more than this one. When a write is refused, the shell reads the present state and
    the event is decided again, so a decision must follow from the state alone; `sends` must do no harm when what the
    decision changes is refused.
    """

    changes: tuple[Change, ...] = ()
    sends: tuple[Send, ...] = ()
    then: tuple[Event, ...] = ()
    later: tuple[Event, ...] = ()
    reply: Reply_co | None = None
    retry_event: Event | None = None
    """What is decided in place of the event, should a write be refused: for a reply that depends on what was tried before."""


def decision(
    *changes: Change | None, sends: Iterable[Send] = (), then: Iterable[Event] = (), later: Iterable[Event] = ()
) -> Decision[None]:
    """Make a decision that answers nobody; changes that are None are left out."""
    kept = tuple(change for change in changes if change is not None)
    return Decision(kept, tuple(sends), tuple(then), tuple(later))
