"""Conditions of a status, and events for changes of Ready.

What the tools that wait for a resource (kstatus: Flux, Helm 4, kpt) read follows from Ready, for every kind (ADR 36):

    Ready          nothing happens before a user acts   Reconciling   Stalled   kstatus
    True                                                                        Current
    False/Unknown  no                                   True                    InProgress
    False/Unknown  yes                                                True      Failed

A resource that runs once also has Complete or Failed at its end, as a Job does. Such conditions are present only while they are True.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from reconciler.decide.steps import ResourceEvent
from reconciler.resources.metadata import READY, Condition, Metadata, write_time
from reconciler.resources.status import JobStatus

JobStatusT = TypeVar("JobStatusT", bound=JobStatus)
"""Status of a resource that runs once."""

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"

RECONCILING, STALLED = "Reconciling", "Stalled"
"""Conditions of kstatus (sigs.k8s.io/cli-utils)."""

COMPLETE, FAILED = "Complete", "Failed"
"""Conditions of a Job (batch/v1)."""

DERIVED = frozenset({RECONCILING, STALLED, COMPLETE, FAILED})

UNDER_WAY = frozenset({"ReplicationChanging", "Deleting"})
"""Reasons of a False Ready that is no problem: work in progress."""


def ready_of(conditions: tuple[Condition, ...]) -> Condition | None:
    """Return the Ready condition."""
    return condition_of(conditions, READY)


def condition_of(conditions: tuple[Condition, ...], condition_type: str) -> Condition | None:
    """Return one condition."""
    return next((condition for condition in conditions if condition.type == condition_type), None)


def with_ready(
    conditions: tuple[Condition, ...],
    *,
    status: str,
    reason: str,
    message: str,
    generation: int,
    now: datetime,
    stalled: bool = False,
) -> tuple[Condition, ...]:
    """Return the conditions with Ready set, as the first of them, and Reconciling or Stalled unless it is True; the others stay.

    `stalled` says that nothing happens before a user acts.
    """
    ready = _condition(conditions, READY, status, reason, message, generation, now)
    following = [] if status == TRUE else [STALLED if stalled else RECONCILING]
    return _derived(conditions, ready, following, now)


def with_job_ready(
    conditions: tuple[Condition, ...],
    *,
    status: str,
    reason: str,
    message: str,
    generation: int,
    now: datetime,
    ended: bool,
    stalled: bool = False,
) -> tuple[Condition, ...]:
    """Return the conditions of a resource that runs once: with Complete or Failed at its end, by Ready."""
    shown = with_ready(
        conditions,
        status=status,
        reason=reason,
        message=message,
        generation=generation,
        now=now,
        stalled=ended or stalled,
    )
    return with_job_end(shown, now) if ended else shown


def judged_job(
    metadata: Metadata,
    status: JobStatusT,
    *,
    ready: str,
    reason: str,
    message: str,
    now: datetime,
    ended: bool = False,
    stalled: bool = False,
) -> JobStatusT:
    """Return the status of a resource that runs once with the given Ready, for the current generation."""
    generation = metadata.generation
    conditions = with_job_ready(
        status.conditions,
        status=ready,
        reason=reason,
        message=message,
        generation=generation,
        now=now,
        ended=ended,
        stalled=stalled,
    )
    return replace(status, observed_generation=generation, conditions=conditions)


def with_job_end(conditions: tuple[Condition, ...], now: datetime) -> tuple[Condition, ...]:
    """Return the conditions of a resource that has run once and ended, with those that follow from its Ready."""
    ready = ready_of(conditions)
    if ready is None:
        return conditions
    return _derived(conditions, ready, [COMPLETE] if ready.status == TRUE else [STALLED, FAILED], now)


def _derived(
    conditions: tuple[Condition, ...], ready: Condition, following: list[str], now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with Ready first, then those that follow from it, with its reason and message."""
    held = {condition.type: condition for condition in conditions}
    shown = tuple(
        replace(
            ready,
            type=name,
            status=TRUE,
            last_transition_time=held[name].last_transition_time if name in held else write_time(now),
        )
        for name in following
    )
    others = tuple(condition for condition in conditions if condition.type not in {READY, *DERIVED})
    return (ready, *shown, *others)


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
    before = condition_of(conditions, condition_type)
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


def event_of_reasons(
    before: tuple[Condition, ...], after: tuple[Condition, ...], condition_type: str, reasons: Collection[str]
) -> ResourceEvent | None:
    """Return the event for a change of a condition to or from one of these reasons."""
    found = condition_of(before, condition_type), condition_of(after, condition_type)
    if not any(condition is not None and condition.reason in reasons for condition in found):
        return None
    return event_of_change(before, after, condition_type)
