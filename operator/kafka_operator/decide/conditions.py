"""The Ready condition, and the event that its change is worth."""

from __future__ import annotations

from datetime import datetime

from kafka_operator.decide.steps import Announcement
from kafka_operator.resources.metadata import READY, Condition, write_time

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"


def ready_of(conditions: tuple[Condition, ...]) -> Condition | None:
    """Return the Ready condition."""
    return next((condition for condition in conditions if condition.type == READY), None)


def with_ready(
    conditions: tuple[Condition, ...], *, status: str, reason: str, message: str, generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with Ready set; its transition time moves only with its status, the others stay as they are."""
    before = ready_of(conditions)
    unchanged = before is not None and before.status == status
    ready = Condition(
        type=READY,
        status=status,
        reason=reason,
        message=message,
        observed_generation=generation,
        last_transition_time=before.last_transition_time if before is not None and unchanged else write_time(now),
    )
    return (ready, *(condition for condition in conditions if condition.type != READY))


def announce(before: tuple[Condition, ...], after: tuple[Condition, ...]) -> Announcement | None:
    """Return the event for a change of Ready: a new trouble, or the end of one. A first success is no news."""
    old, new = ready_of(before), ready_of(after)
    if new is None or (old is not None and old.status == new.status and old.reason == new.reason):
        return None
    if new.status != TRUE:
        return Announcement(warning=True, reason=new.reason, message=new.message)
    if old is None:
        return None
    return Announcement(warning=False, reason=new.reason, message=new.message)
