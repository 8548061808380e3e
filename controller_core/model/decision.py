"""Decision about one event: changes to write and apply, requests to send, the reply, and follow-up events."""

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

    Order: changes are written (fenced) and applied, and the requests that follow from them are sent; `sends` follow; then the
    events in `then` are decided in the same scheduled event, on the cluster's new state; the reply is sent last. Events in
    `later` are scheduled separately, since their scopes are larger. When a write is refused, the shell reads the present state
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


def decision(
    *changes: Change | None, sends: Iterable[Send] = (), then: Iterable[Event] = (), later: Iterable[Event] = ()
) -> Decision[None]:
    """Return a decision without a reply; changes that are None are dropped."""
    kept = tuple(change for change in changes if change is not None)
    return Decision(kept, tuple(sends), tuple(then), tuple(later))
