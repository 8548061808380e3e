"""Conditions of a status, and events for changes of Ready."""

from __future__ import annotations

from datetime import datetime

from kafka_operator.decide.steps import ResourceEvent
from kafka_operator.resources.metadata import READY, Condition, write_time

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"

UNDER_WAY = frozenset({"ReplicationChanging", "Deleting"})
"""Reasons of a False Ready that is no problem: work in progress."""


def ready_of(conditions: tuple[Condition, ...]) -> Condition | None:
    """Return the Ready condition."""
    return condition_of(conditions, READY)


def condition_of(conditions: tuple[Condition, ...], condition_type: str) -> Condition | None:
    """Return one condition."""
    return next((condition for condition in conditions if condition.type == condition_type), None)


def with_ready(
    conditions: tuple[Condition, ...], *, status: str, reason: str, message: str, generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with Ready set, as the first of them; the others stay as they are."""
    ready = _condition(conditions, READY, status, reason, message, generation, now)
    return (ready, *(condition for condition in conditions if condition.type != READY))


def with_condition(
    conditions: tuple[Condition, ...],
    condition_type: str,
    *,
    status: str,
    reason: str,
    message: str,
    generation: int,
    now: datetime,
) -> tuple[Condition, ...]:
    """Return the conditions with one of them set in its place, or added at the end."""
    wanted = _condition(conditions, condition_type, status, reason, message, generation, now)
    if all(condition.type != condition_type for condition in conditions):
        return (*conditions, wanted)
    return tuple(wanted if condition.type == condition_type else condition for condition in conditions)


def without_condition(conditions: tuple[Condition, ...], condition_type: str) -> tuple[Condition, ...]:
    """Return the conditions without one of them."""
    return tuple(condition for condition in conditions if condition.type != condition_type)


def _condition(
    conditions: tuple[Condition, ...],
    condition_type: str,
    status: str,
    reason: str,
    message: str,
    generation: int,
    now: datetime,
) -> Condition:
    """Return the new condition; its transition time moves only with its status."""
    before = next((condition for condition in conditions if condition.type == condition_type), None)
    unchanged = before is not None and before.status == status
    return Condition(
        type=condition_type,
        status=status,
        reason=reason,
        message=message,
        observed_generation=generation,
        last_transition_time=before.last_transition_time if before is not None and unchanged else write_time(now),
    )


def event_of_change(
    before: tuple[Condition, ...], after: tuple[Condition, ...], condition_type: str = READY
) -> ResourceEvent | None:
    """Return the event for a change of a condition: a new problem, or its end. A first success has no event."""
    old, new = condition_of(before, condition_type), condition_of(after, condition_type)
    if new is None or (old is not None and old.status == new.status and old.reason == new.reason):
        return None
    if new.status != TRUE:
        return ResourceEvent(warning=new.reason not in UNDER_WAY, reason=new.reason, message=new.message)
    if old is None:
        return None
    return ResourceEvent(warning=False, reason=new.reason, message=new.message)
